"""The coordinator's part of a run: what the partners agreed on holds before anything is computed."""

import pytest

from cosilo import Run
from cosilo.coordination.run_loop import PlannedRun, Stopped, Terms, coordinate_run
from cosilo.engines.local.in_process import InProcess
from cosilo.methods import Local
from cosilo.runs.run_folders import begin


def conducted(silos, folder, vocabulary):
    terms = Terms([silo.name for silo in silos], vocabulary=vocabulary)
    method = Local()
    about = {"method": {"use": method.name}, "seed": 0, "silos": terms.silos, "pool": None, "pool_size": 0}
    run = begin(folder, about, None)
    coordinate_run(PlannedRun(run, method, terms), InProcess(silos))
    return Run(folder)


def test_tasks_are_made_of_the_vocabulary_agreed_on(tmp_path, silos):
    assert conducted(silos(), tmp_path / "run", ("0", "1", "2", "3")).status == "finished"


def test_a_class_that_nobody_agreed_on_is_named_with_its_silo(tmp_path, silos):
    with pytest.raises(Stopped) as stopped:
        conducted(silos(), tmp_path / "run", ("0", "1", "2"))
    assert str(stopped.value).splitlines() == [
        f"silo {name!r}: its class '3' is not in the vocabulary agreed on; "
        "rename it at the silo or add it to the federation's vocabulary"
        for name in ("bayes", "nearest")
    ]
    run = Run(tmp_path / "run")
    assert run.status == "refused"
    assert [event["step"] for event in run.events() if event["event"] == "ask"] == ["hello"]
