"""`cosilo compare`, as a person types it: whole grids, kills, growth, mistakes, a run that fails."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
from cosilo import Run
from cosilo.comparison.compare import read_comparison
from cosilo.config import build, recipe_file, settings
from cosilo.federation.federation import Federation
from cosilo.report.summary import Summary, summarise

COSILO = str(Path(sys.executable).with_name("cosilo"))

NETWORKS = """
seed = 2
[method]
use = "fedavg"
rounds = 3
epochs = 1
[compare.fedprox]
mu = 0.1
[simulation]
dataset = "digits"
split = { use = "iid", silos = 2, size = 60 }
learners = [{ use = "mlp", hidden = [8], training = { lr = 0.01, batch = 20 } }]
shares = ["weights", "size", "metrics"]
"""

TREES = """
[method]
use = "cofed"
[simulation]
dataset = "digits"
split = { use = "iid", silos = 2, size = 60 }
learners = [{ use = "sklearn.tree.DecisionTreeClassifier" }, { use = "sklearn.naive_bayes.GaussianNB" }]
[pool]
rest = true
size = 100
"""

# Learners that fail on the first seed's data only, with a text that must not get into a report.
FAILING = """
from sklearn.tree import DecisionTreeClassifier

class Choosy(DecisionTreeClassifier):
    def fit(self, X, y, **options):
        if abs(float(X.sum()) - FIRST) < 0.5:
            raise ValueError("patient 4711")
        return super().fit(X, y, **options)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "nets.toml").write_text(NETWORKS)
    (tmp_path / "trees.toml").write_text(TREES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(folder: Path) -> Summary:
    """All numbers of a comparison but the time it took."""
    found = summarise(read_comparison(folder))
    rows = [replace(row, runs=tuple(replace(run, seconds=0.0) for run in row.runs)) for row in found.rows]
    return replace(found, rows=tuple(rows))


def test_a_whole_comparison(folder, cosilo):
    code, output, errors = cosilo("compare", "nets.toml", "--methods", "fedavg, fedprox", "--seeds", "2")
    assert code == 0
    (place,) = (folder / "runs").iterdir()
    assert place.name.endswith("-compare-1")
    assert [line.split(" (")[0] for line in errors.splitlines()] == [
        f"{method}, seed {seed}" for seed in (2, 3) for method in ("fedavg", "fedprox")
    ]
    assert errors.splitlines()[2].endswith("(3 of 4)")
    assert Run(place / "fedprox-seed3").about["method"] == {
        **Run(place / "fedavg-seed3").about["method"],
        "use": "fedprox",
        "mu": 0.1,
    }
    # The table says what the runs say.
    runs = [Run(place / f"fedavg-seed{seed}") for seed in (2, 3)]
    means = [sum(run.scores("federated").values()) / 2 for run in runs]
    low, high = min(means), max(means)
    assert f"{50 * (low + high):.1f}% ± {100 * (high - low) / 2**0.5:.1f}" in output
    report = place / "comparison.html"
    assert f"report:     {report.relative_to(folder)}" in output
    assert "fedprox" in report.read_text()

    # The comparison can be told again, and a single run is a run like any other.
    report.unlink()
    assert cosilo("report", str(place))[0] == 0
    assert report.exists()
    code, output, _ = cosilo("resume", str(place / "fedavg-seed2"))
    assert code == 0
    assert "finished already" in output


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def results(folder: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("*/result.json")}


GRID = ("compare", "nets.toml", "--methods", "fedavg,fedprox", "--seeds", "2")


def test_killed_in_the_middle_of_the_grid_and_gone_on_with(folder, cosilo):
    command = [*GRID, "--set", "method.rounds=6"]
    assert cosilo(*command, "--dir", "whole")[0] == 0
    process = subprocess.Popen([COSILO, *command, "--dir", "cut"], stderr=subprocess.DEVNULL)
    wait_for((folder / "cut/fedprox-seed2/journal/mark.safetensors").exists)  # in a round of the second run
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    before = results(folder / "cut")
    assert "fedavg-seed2" in before
    assert len(before) < 4
    code, _, errors = cosilo(*command, "--dir", "cut")
    assert code == 0
    assert errors.splitlines()[0] == "fedavg, seed 2 (1 of 4): finished before"
    assert results(folder / "cut").items() > before.items()
    assert numbers(folder / "cut") == numbers(folder / "whole")
    went_on = [
        path.parent.name for path in (folder / "cut").glob("*/events.jsonl") if "resume" in path.read_text()
    ]
    assert len(went_on) == 1  # the one that was killed did not begin again


def test_stopped_by_hand_and_resumed(folder, cosilo, monkeypatch):
    run = Federation.run

    def stopped(federation, path, **options):
        if Path(path).name == "fedprox-seed2":
            raise KeyboardInterrupt
        return run(federation, path, **options)

    monkeypatch.setattr(Federation, "run", stopped)
    code, _, errors = cosilo(*GRID, "--dir", "cut")
    assert code == 130
    assert errors.splitlines()[-1] == "stopped; completed steps are kept: cosilo resume cut"
    assert list(results(folder / "cut")) == ["fedavg-seed2"]
    assert cosilo("report", "cut")[0] == 0  # as far as it is
    assert "1 of 4 finished" in (folder / "cut/comparison.html").read_text()
    monkeypatch.setattr(Federation, "run", run)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert cosilo("resume", "../cut")[0] == 0  # from another folder: the recipe's paths still hold
    assert len(results(folder / "cut")) == 4


def test_more_seeds_and_methods_reuse_the_runs_that_are_there(folder, cosilo):
    assert cosilo("compare", "trees.toml", "--methods", "cofed", "--seeds", "1", "--dir", "c")[0] == 0
    first = results(folder / "c")
    assert list(first) == ["cofed-seed0"]
    assert "±" not in (folder / "c/comparison.html").read_text().split("<footer")[0].split("<main>")[1]
    code, output, _ = cosilo(
        "compare", "trees.toml", "--methods", "cofed,local", "--seeds", "2", "--dir", "c"
    )
    assert code == 0
    assert "±" in output
    assert sorted(results(folder / "c")) == ["cofed-seed0", "cofed-seed1", "local-seed0", "local-seed1"]
    assert results(folder / "c").items() > first.items()
    assert json.loads((folder / "c/comparison.json").read_text())["seeds"] == [0, 1]

    other = ("compare", "trees.toml", "--methods", "cofed", "--set", "method.alpha=0.6", "--dir", "c")
    code, output, errors = cosilo(*other)
    assert (code, output) == (2, "")
    assert errors == (
        "error: c: is a comparison with cofed.alpha = 0.3, now it is 0.6; "
        "choose another directory or delete this one\n"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nets.toml", "--methods", "fedavg,fedporx"], "methods: there is no method 'fedporx' (did you mean"),
        (["nets.toml", "--methods", ","], "methods: got ','; wants some of"),
        (["nets.toml"], "Missing option '--methods'"),
        (["nets.toml", "--methods", "fedavg", "--seeds", "0"], "Invalid value for '--seeds'"),
        (["nets.tml", "--methods", "fedavg"], "nets.tml: no such file"),
        (
            ["nets.toml", "--methods", "fedavg", "--set", "method.epohcs=2"],
            "nets.toml: method.epohcs: none of the compared methods (fedavg) has it (did you mean 'epochs'?)",
        ),
        (
            ["nets.toml", "--methods", "fedavg,fedprox", "--set", "compare.fedprox.mue=2"],
            "nets.toml: compare.fedprox.mue: there is no such key (did you mean 'mu'?); wants one of",
        ),
        (["nets.toml", "--methods", "fedavg", "--dir", "."], "error: .: is not empty and not a comparison"),
        (["nets.toml", "--methods", "local,cofed"], "cofed needs a pool"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_trained(folder, cosilo, arguments, line):
    before = sorted(path.name for path in folder.iterdir())
    if "local,cofed" in arguments:
        arguments = [*arguments, "--set", "method={}"]
    code, output, errors = cosilo("compare", *arguments)
    assert (code, output) == (2, "")
    assert line in errors
    assert len(errors.strip().splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_table_of_a_comparison_does_not_keep_a_recipe_from_running(folder, cosilo):
    assert cosilo("check", "nets.toml")[0] == 0
    code, _, errors = cosilo("check", "nets.toml", "--set", "compare.fedprox=3")
    assert code == 2
    assert "nets.toml: compare.fedprox: got 3; wants" in errors


def test_one_method_with_several_sets_of_parameters(folder, cosilo):
    sets = ["compare.one={use='fedavg',epochs=1}", "compare.two={use='fedavg',epochs=2}", "reach=0.2"]
    options = [part for one in sets for part in ("--set", one)]
    grid = ("compare", "nets.toml", "--methods", "one,two", "--seeds", "1", "--dir", "c", *options)
    code, out, err = cosilo(*grid)
    assert code == 0
    assert "two, seed 2 (2 of 2)" in err
    assert [Run(folder / f"c/{name}-seed2").about["method"]["epochs"] for name in ("one", "two")] == [1, 2]
    assert "rounds to" in out
    assert "20.0%" in out
    one, two = numbers(folder / "c").rows
    assert (one.name, two.parameters["use"]) == ("one", "fedavg")
    assert [run.accuracy for run in one.runs] != [run.accuracy for run in two.runs]
    before = results(folder / "c")
    code, out, _ = cosilo(*grid[:-1], "reach=0.3")  # told again, not run again
    assert code == 0
    assert "30.0%" in out
    assert results(folder / "c") == before


def test_without_local_training(folder, cosilo):
    code, out, _ = cosilo("run", "nets.toml", "--set", "method.local=false", "--dir", "run")
    assert code == 0
    assert "federated" in out
    assert "local" not in out
    assert "relative" not in out
    assert Run(folder / "run").relative_accuracy() == {}

    wanted = ("--methods", "fedavg,fedprox", "--seeds", "1", "--set", "method.local=false", "--dir", "c")
    code, out, _ = cosilo("compare", "nets.toml", *wanted)
    assert code == 0
    assert "relative" not in out
    assert [run.accuracy is not None for row in numbers(folder / "c").rows for run in row.runs] == [True] * 2


def test_a_run_that_fails_is_named_and_the_others_go_on(folder, cosilo):
    source = build.Source("trees.toml", folder)
    silos, _ = build.make_members(settings.validate(recipe_file.read(folder / "trees.toml"), "t"), source)
    first = float(silos[0].data.train[0].sum())
    (folder / "choosy_learner.py").write_text(FAILING.replace("FIRST", repr(first)))
    text = TREES.replace("sklearn.tree.DecisionTreeClassifier", "choosy_learner.Choosy")
    (folder / "choosy.toml").write_text("quorum = 1\n" + text)

    code, output, errors = cosilo(
        "compare", "choosy.toml", "--methods", "local,cofed", "--seeds", "2", "--dir", "c"
    )
    assert code == 2, errors
    assert output.count("seed 0 failed") == 2, errors
    assert sorted(results(folder / "c")) == ["cofed-seed1", "local-seed1"]
    assert "error: local, seed 0: step 'train': 1 of 2 silos answered, the quorum is 2:" in errors
    assert "patient 4711" in errors  # for whoever runs it, from the silo's own log
    assert errors.splitlines()[-1] == "error: completed steps are kept: cosilo resume c"
    assert "Traceback" not in errors
    page = (folder / "c/comparison.html").read_text()
    assert "Choosy.fit raised ValueError" in page
    assert "4711" not in page

    (folder / "choosy.toml").unlink()  # `resume` needs the folder only
    before = results(folder / "c")
    assert cosilo("resume", "c")[0] == 2  # it is tried again, and fails again
    assert results(folder / "c") == before
