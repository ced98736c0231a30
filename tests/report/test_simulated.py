"""The clock in a run, from recipe and Python to the report; and a whole run of DoFed-SPP."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Run, Silo
from cosilo.config.settings import validate
from cosilo.errors import ConfigError
from cosilo.methods.cofed import CoFED
from cosilo.methods.local import Local
from cosilo.report import write_report
from cosilo.report.facts import gather
from cosilo.report.run_page import render
from cosilo.silo.target import Target
from cosilo.simulated_time.clock import Clock, Link

X, Y = load_digits(return_X_y=True)
SLOW, FAST = Clock(up=Link(rate=1e3)), Clock(up=Link(rate=(2e6, 1e7)))
RECIPE = {
    "simulation": {"dataset": "digits", "split": {"use": "iid", "silos": 2}, "learners": [{"use": "x"}]}
}


def federation(method=None, **options):
    silos = [
        Silo("tree", X[:150], Y[:150], DecisionTreeClassifier()),
        Silo("bayes", X[150:300], Y[150:300], GaussianNB()),
    ]
    return Federation(silos, pool=X[400:600], method=method or CoFED(), **options)


# ---------------------------------------------------------------------- in a run


def test_a_clock_is_kept_and_changes_no_result(tmp_path):
    plain = federation().run(tmp_path / "plain")
    run = federation(clock=FAST).run(tmp_path / "run")
    assert run.result == plain.result
    assert Run(run.folder).clock == FAST
    assert json.loads((run.folder / "run.json").read_text())["clock"] == {"up": {"rate": [2e6, 1e7]}}
    assert [moment.step for moment in run.moments()] == [ask["step"] for ask in run.asks()]
    assert run.moments() == Run(run.folder).moments()
    assert (plain.clock, plain.moments()) == (None, [])


def test_a_directory_may_be_opened_with_another_clock(tmp_path):
    first = federation(clock=FAST).run(tmp_path / "run")
    again = federation(clock=SLOW).run(tmp_path / "run")
    assert again.clock == SLOW
    assert again.result == first.result
    assert again.moments()[-1].at > first.moments()[-1].at
    assert federation().run(tmp_path / "run").clock is None


def test_a_clock_that_could_not_tell_the_time_is_refused_at_once():
    cycles = Clock(up=Link(rate=1.0), compute="cycles", cycles_per_second=1e9, cycles={"trian": 1.0})
    with pytest.raises(ConfigError, match=r"clock\.cycles: has no train; wants one number for every step"):
        federation(Local(), clock=cycles)


def test_cycles_are_kept_too(tmp_path):
    clock = Clock(up=Link(rate=1.0), compute="cycles", cycles_per_second=1e9, cycles={"train": 5e9})
    run = federation(Local(), clock=clock).run(tmp_path / "run")
    assert Run(run.folder).clock == clock
    assert run.moments()[-1].at == 5.0


def test_a_report_tells_of_downloads_and_of_the_budget(tmp_path):
    clock = Clock(up=Link(rate=1e6), down=Link(rate=1e3), budget=1e9)
    run = federation(clock=clock).run(tmp_path / "run")
    told = gather(run).simulated
    by_hand = sum(sum(ask["sent"].values()) for ask in run.asks() if ask["timed"]) / 1e3
    assert told.download == pytest.approx(by_hand)
    assert told.download > 0
    assert told.total == pytest.approx(told.download + told.compute + told.upload)
    page = render(gather(run))
    assert "of downloading" in page
    assert "Its budget was" in page


def test_a_recipe_may_have_a_clock():
    settings = validate({**RECIPE, "clock": {"up": {"rate": [2e6, 10e6]}}}, "r.toml")
    assert settings.clock == FAST
    assert validate(RECIPE, "r.toml").clock is None


@pytest.mark.parametrize(
    ("clock", "line"),
    [
        ({}, "r.toml: clock.up: is missing"),
        (
            {"up": {"rate": 1.0}, "sped": 2},
            "r.toml: clock.sped: there is no such key (did you mean 'speed'?)",
        ),
        ({"up": {"rate": [3.0, 1.0]}}, "r.toml: clock.up: wants rate = [low, high], the lower one first"),
        ({"up": {"rate": -1}}, "r.toml: clock.up.rate: got -1; wants more than 0"),
    ],
)
def test_a_wrong_clock_is_one_line(clock, line):
    with pytest.raises(ConfigError) as caught:
        validate({**RECIPE, "clock": clock}, "r.toml")
    assert str(caught.value).startswith(line)
    assert len(str(caught.value).splitlines()) == 1


# ---------------------------------------------------------------------- a whole run


def silo_with_target(name, own, wanted, seed):
    from cosilo.learners import Network, Training, zoo

    rng = np.random.default_rng(seed)
    pick = {c: rng.permutation(np.flatnonzero(c == Y)) for c in (*own, *wanted)}
    features = (X / 16).astype(np.float32)

    def some(classes, start, stop):
        rows = np.concatenate([pick[c][start:stop] for c in classes])
        return features[rows], Y[rows]

    rest = some(wanted, 60, 90)
    return Silo(
        name,
        *some(own, 0, 40),
        Network(lambda shape, k: zoo.mlp(shape, k, hidden=[16]), Training(lr=0.05, batch=16)),
        target=Target(*some(wanted, 40, 44), unlabelled=rest[0], truth=rest[1]),
        test=some(wanted, 100, 140),
        shares=["weights", "similarity", "metrics", "size"],
    )


def test_the_report_of_a_run_of_dofed_spp(tmp_path, reader_of):
    pytest.importorskip("torch")
    from cosilo.methods import DoFedSPP

    silos = [silo_with_target("north", (0, 1), (2, 3), 0), silo_with_target("south", (2, 3), (0, 1), 1)]
    silos.append(silo_with_target("east", (0, 1), (2, 3), 2))  # one component and the mean are two models
    method = DoFedSPP(
        rounds=2, warm_up=3, stop_below=0.0, components=1, budget={"total": 100, "uplink": {"rate": 1e4}}
    )
    run = Federation(silos, method=method, clock=FAST).run(tmp_path / "run")
    reader = reader_of(write_report(run).read_text("utf-8"))
    assert {"stages", "time-to-accuracy", "similarity", "travels", "budget", "left"} <= set(reader.ids)
    labels = [score["accuracy"] for score in run.result["labelling"]["federated"].values()]
    assert f"{100 * np.mean(labels):.1f}% of the unlabelled target points have the right label" in reader.text
    for accuracy in labels:
        assert f"{100 * accuracy:.1f}%" in reader.text
    assert "weights of its reciprocal model, trained on its training set" in reader.text
    assert "names of the classes of its target" in reader.text
    assert "wants 2, 3" in reader.text
    assert "cosilo labels run SILO --out labels.csv" in reader.text
    assert "Reconstruction error" in reader.text
    at = run.moments()[-1].at
    assert 0 < at < 600
