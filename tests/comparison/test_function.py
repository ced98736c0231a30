"""`cosilo.compare`, and what notebooks show."""

import numpy as np
import pytest

import cosilo
from cosilo import CoFED, ConfigError, FedAvg, Federation, Local, Silo, data
from cosilo.errors import SiloFailed


def test_a_federation_is_compared(federation, tmp_path):
    lines = []
    found = cosilo.compare(
        federation(), ["local", CoFED(alpha=0.3), CoFED(alpha=0.6)], 2, tmp_path / "c", lines.append
    )
    assert lines[:3] == ["local, seed 0", "cofed, seed 0", "cofed-2, seed 0"]
    assert sorted(found.runs) == [(name, seed) for name in ("cofed", "cofed-2", "local") for seed in (0, 1)]
    alone = federation(Local(), seed=1).run(tmp_path / "alone")
    assert found.runs["local", 1].scores("local") == alone.scores("local")
    frame = found.to_frame()
    assert frame.index.names == ["method", "seed", "silo"]
    assert len(frame) == 18
    page = found._repr_html_()
    assert "<td>cofed-2</td>" in page
    assert "over 2 seeds" in page
    link = found.report()
    assert link.name == "comparison.html"
    assert "comparison.html</a>" in link._repr_html_()
    again = cosilo.compare(federation(), ["local"], 2, tmp_path / "c")  # opened, not run
    assert again.runs["local", 0].scores("local") == found.runs["local", 0].scores("local")


def test_what_methods_are_not_equal_in_is_named(tmp_path):
    pytest.importorskip("torch")
    from cosilo.learners import Network, zoo

    X, y, shares = np.eye(8, dtype=np.float32), list("abababab"), ["weights", "size", "metrics"]
    silos = [Silo(name, X, y, Network(zoo.mlp), shares=shares) for name in ("north", "south")]
    methods, told = [FedAvg(rounds=2, epochs=3), FedAvg(rounds=1, epochs=2, fraction=0.5)], []
    found = cosilo.compare(Federation(silos, method=Local()), methods, 1, tmp_path / "c", told.append)
    lines = [
        "Not equal: models uploaded in a round: 2 (fedavg), 1 (fedavg-2)",
        "Not equal: epochs of a silo's training in all: 6 (fedavg), 1 (fedavg-2)",
    ]
    assert told[:3] == [*lines, "fedavg, seed 0"]
    assert found.unequal == tuple(lines)
    assert lines[0] in found._repr_html_()
    assert lines[0] in (tmp_path / "c" / found.report().name).read_text()


def test_a_recipe_is_compared(tmp_path):
    learners = [{"use": "sklearn.naive_bayes.GaussianNB"}]
    split = {"use": "iid", "silos": 2, "size": 100}
    simulation = {"dataset": "digits", "split": split, "learners": learners}
    values = {"simulation": simulation, "pool": {"rest": True, "size": 100}}
    found = cosilo.compare(values, ["local", "cofed"], 1, tmp_path / "c")
    assert sorted(found.runs) == [("cofed", 0), ("local", 0)]
    with pytest.raises(ConfigError, match=r"a recipe is compared by names"):
        cosilo.compare(values, [CoFED()], 1, tmp_path / "d")


def test_mistakes(federation):
    for methods, line in [
        (["cofde"], "there is no method 'cofde'"),
        ([], "methods: got none"),
        ("cofed,local", r"methods: got 'cofed,local'; wants a list, such as \[\"cofed\", \"local\"\]"),
        (5, "methods: got 5; wants a list"),
    ]:
        with pytest.raises(ConfigError, match=line):
            cosilo.compare(federation(), methods)
    with pytest.raises(ConfigError, match="seeds: got 0"):
        cosilo.compare(federation(), ["local"], 0)
    with pytest.raises(ConfigError, match="compare: got int; wants the path of a recipe, its values, or a"):
        cosilo.compare(5, ["local"])


def test_runs_that_failed_are_warned_of_and_shown(federation, tmp_path):
    with pytest.warns(SiloFailed, match=r"^1 of 2 runs failed, the first: fedavg, seed 0: silo 'tree': "):
        found = cosilo.compare(federation(), ["local", "fedavg"], 1, tmp_path / "c")
    assert repr(found) == f"<ComparedRuns {tmp_path / 'c'}: local, fedavg; seeds 0; 1 of 2 runs failed>"


def test_what_a_notebook_shows_of_a_federation_and_a_split(federation):
    page = federation(CoFED())._repr_html_()
    assert "<td>tree</td><td>60</td><td>0, 1, 2</td><td>DecisionTreeClassifier</td>" in page
    assert "a pool of 300 instances" in page
    split = data.iid(np.array([0, 1] * 50), silos=2, size=30)
    assert split.to_frame()["instances"].tolist() == [30, 30]
    assert "<table" in split._repr_html_()
