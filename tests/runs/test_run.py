import json
import shutil

import pytest

from cosilo import CoFED, Run
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError, RunError


def test_a_finished_run_is_opened_not_repeated(tmp_path, federation):
    first = federation(CoFED()).run(tmp_path / "run")
    events = len(first.events())
    again = federation(CoFED()).run(tmp_path / "run")
    assert again.scores("federated") == first.scores("federated")
    assert len(again.events()) == events
    assert again.silos["tree"].predict([[0.0] * 64]).shape == (1,)


def test_a_stage_that_the_run_did_not_have(tmp_path, federation):
    run = federation(CoFED()).run(tmp_path / "run")
    for read in (run.scores, run.metrics):
        with pytest.raises(
            ConfigError, match=r"stage 'federatde' \(did you mean 'federated'\?\); wants local, fed"
        ):
            read("federatde")
    assert run.metrics("federated") == {}


def test_a_run_that_was_refused_can_be_mended_and_run(tmp_path, silos, pool):
    from cosilo import Federation

    with pytest.raises(RunError, match="does not share 'labels'"):
        Federation(silos(shares=["metrics"]), pool).run(tmp_path / "run")
    assert Run(tmp_path / "run").status == "refused"
    run = Federation(silos(), pool).run(tmp_path / "run")
    assert run.status == "finished"
    # What left before is still in the log.
    assert "failure" in run.audit("tree")[0]


def test_a_run_goes_on_with_the_same_data_only(tmp_path, silos, pool):
    from cosilo import Federation, Silo

    Federation(silos(), pool).run(tmp_path / "run")
    Run(tmp_path / "run").set_status("stopped")
    changed = silos()
    X, y = changed[0].data.all
    X = X.copy()
    X[0, 0] += 1
    changed[0] = Silo("tree", X, changed[0].task.decode(y), changed[0].learner)
    with pytest.raises(RunError, match="silo 'tree': is not what it was when the run began: training data; "):
        Federation(changed, pool).run(tmp_path / "run")
    # A worker opens a silo when it is asked for something; here that is the last ask of all.
    *_, last = sorted((tmp_path / "run/journal").iterdir())
    shutil.rmtree(last)
    with pytest.raises(RunError, match="silo 'tree': is not what it was when the run began: training data; "):
        Federation(changed, pool, engine=LocalEngine(2)).run(tmp_path / "run")
    assert Federation(silos(), pool).run(tmp_path / "run").status == "finished"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"method": 1}', "\x00"])
def test_a_damaged_run_is_named(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=r"run\.json: is damaged"):
        Run(tmp_path)


def test_no_run_at_all(tmp_path):
    with pytest.raises(RunError, match="is not a run directory"):
        Run(tmp_path / "nothing")


def test_an_unfinished_run_has_no_result(tmp_path):
    about = {"method": {"use": "cofed"}, "seed": 0, "silos": ["a"], "status": "stopped", "created": "now"}
    (tmp_path / "run.json").write_text(json.dumps(about))
    with pytest.raises(RunError, match="the run is stopped, not finished"):
        Run(tmp_path).scores("local")


def test_duplicate_names(silos, pool):
    from cosilo import Federation

    with pytest.raises(ConfigError, match="2 silos are called 'tree'"):
        Federation([*silos(), silos()[0]], pool)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"quorum": 2.0}, "quorum = 2"), ({"timeout": 0.0}, "timeout = 0")],
)
def test_settings_are_checked(federation, options, words):
    with pytest.raises(ConfigError, match=words):
        federation(CoFED(), **options)
