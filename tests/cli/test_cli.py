"""Whole commands, as a person types them."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from cosilo import Run

COSILO = str(Path(sys.executable).with_name("cosilo"))

RECIPE = """
[method]
use = "cofed"
alpha = 0.4
[pool]
path = "pool.csv"
[defaults]
label = "sick"
learner = { use = "sklearn.tree.DecisionTreeClassifier" }
[[silo]]
name = "north"
path = "north.csv"
[[silo]]
name = "south"
path = "south.csv"
learner = { use = "sklearn.neural_network.MLPClassifier", max_iter = 50 }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in ("north", "south", "pool"):
        rows = []
        for _ in range(60):
            age, job = rng.integers(20, 90), rng.choice(["cook", "nurse"])
            rows.append(f"{age},{job},{'yes' if age + rng.integers(20) > 60 else 'no'}")
        (tmp_path / f"{name}.csv").write_text("age,job,sick\n" + "\n".join(rows) + "\n")
    pool = (tmp_path / "pool.csv").read_text().splitlines()
    (tmp_path / "pool.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in pool) + "\n")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_check_runs_report_resume(folder, cosilo):
    code, output, _ = cosilo("check", "recipe.toml")
    assert code == 0
    assert "ready to run" in output
    assert not (folder / "runs").exists()  # checking leaves nothing behind

    code, output, _ = cosilo("run", "recipe.toml", "--set", "method.alpha=0.5", "--dir", "first")
    assert code == 0
    assert "mean relative accuracy" in output
    assert "north" in output
    run = Run(folder / "first")
    assert run.about["method"]["alpha"] == 0.5
    page = folder / "first/report.html"
    assert page.stat().st_size < 2_000_000

    page.unlink()
    assert cosilo("report", "first")[0] == 0
    assert page.exists()

    code, output, _ = cosilo("runs", ".")
    assert "first" in output
    assert "finished" in output
    assert f"{datetime.now():%Y-%m-%d}" in output  # a day in one piece
    code, output, _ = cosilo("resume", "first")
    assert code == 0
    assert "finished already" in output


def test_methods_say_what_has_to_be_shared(cosilo):
    code, output, _ = cosilo("methods")
    assert code == 0
    assert "labels (step 'label', field 'votes')" in output
    assert "alpha = 0.3" in output


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "recpie.toml"], "error: recpie.toml: no such file"),
        (["run", "recipe.toml", "--set", "method.alpha=2"], "error: recipe.toml: method.alpha: got 2; wants"),
        (["check", "recipe.toml", "--set", "silo.north.label=ill"], "ill"),
        (
            [
                "check",
                "recipe.toml",
                "--set",
                "method.margin=0.2",
                "--set",
                "silo.1.learner={use='sklearn.svm.LinearSVC'}",
            ],
            "silo 'south': LinearSVC has no predict_proba, so it cannot abstain; set margin = 0",
        ),
        (
            ["check", "recipe.toml", "--set", 'silo.1.shares=["metrics"]'],
            "silo 'south': does not share 'labels'",
        ),
        (["report", "nowhere"], "error: nowhere: is not a run directory"),
        (["resume", "."], "error: .: is not a run directory"),
        (["rnu"], "No such command"),
        (["run"], "Missing argument"),
        (["run", "recipe.toml", "--sat", "x=1"], "No such option"),
    ],
)
def test_a_mistake_is_one_line_and_no_traceback(folder, cosilo, arguments, line):
    code, output, errors = cosilo(*arguments)
    assert code == 2
    assert output == ""
    assert line in errors
    assert len(errors.strip().splitlines()) == 1


def test_help_and_version(cosilo):
    code, output, errors = cosilo()
    assert (code, errors) == (0, "")
    assert "resume" in output
    assert cosilo("--version")[1].startswith("cosilo 0.")


def test_a_silo_whose_task_overlaps_nobodys_is_found_by_check(folder, cosilo):
    text = (folder / "south.csv").read_text().replace("yes", "ja").replace("no", "nein")
    (folder / "south.csv").write_text(text)
    code, _, errors = cosilo("check", "recipe.toml")
    assert code == 2
    assert "silo 'north': its task {no, yes} shares no class with any other" in errors


@pytest.mark.parametrize("command", [["run"], ["compare", "--methods", "cofed"]])
def test_the_file_of_a_party_is_no_recipe(cosilo, folder, command):
    (folder / "federation.toml").write_text('name = "clinics"\nmembers = ["north", "south"]\n')
    (folder / "north.toml").write_text('name = "north"\npath = "north.csv"\n')
    code, _, errors = cosilo(*command, "federation.toml")
    assert code == 2
    assert errors == (
        "error: federation.toml: is the file of a federation, not a recipe; `cosilo up federation.toml` "
        "runs it on this machine, `cosilo submit` between organisations\n"
    )
    code, _, errors = cosilo(*command, "north.toml")
    assert code == 2
    assert errors == (
        "error: north.toml: is the file of a silo, not a recipe; "
        "`cosilo join KIT north.toml` takes part with it\n"
    )


def test_a_learner_that_raises_is_explained_to_its_owner(folder, cosilo):
    (folder / "recipe.toml").write_text(
        RECIPE.replace("max_iter = 50", "hidden_layer_sizes = -3").replace("[defaults]", "[defaults]\n")
    )
    code, _, errors = cosilo("run", "recipe.toml", "--set", "quorum=1", "--dir", "run")
    assert code == 2
    assert "silo 'south': MLPClassifier.fit raised InvalidParameterError" in errors
    assert "hidden_layer_sizes" in errors  # the reason, from the silo's own log
    assert "hidden_layer_sizes" not in (folder / "run/events.jsonl").read_text()


def test_a_run_of_python_cannot_be_resumed_from_the_command_line(folder, cosilo, federation):
    federation().run(folder / "run")
    code, _, errors = cosilo("resume", "run")
    assert code == 2
    assert "was started from Python" in errors


def wait_for(condition, seconds=200):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def heeding_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


#: Waits in the update, which learns from more than its own data, if HOLD is in its environment.
WAITING = """
import os, time
from sklearn.tree import DecisionTreeClassifier

class Tree(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None, check_input=True):
        if "HOLD" in os.environ and X.shape[0] > 60:
            open("held", "w").close()
            time.sleep(600)
        return super().fit(X, y, sample_weight, check_input)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle_and_resumed(folder, cosilo, monkeypatch, how):
    (folder / "waiting.py").write_text(WAITING)
    (folder / "recipe.toml").write_text(RECIPE.replace("sklearn.tree.DecisionTreeClassifier", "waiting.Tree"))
    assert cosilo("run", "recipe.toml", "--dir", "whole")[0] == 0
    process = subprocess.Popen(
        [COSILO, "run", "recipe.toml", "--dir", "cut", "--set", "workers=2"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOLD": "yes"},
        preexec_fn=heeding_interrupts,
    )
    wait_for((folder / "held").exists)
    process.send_signal(how)
    errors = process.communicate(timeout=60)[1]
    if how == signal.SIGINT:
        assert "stopped; completed steps are kept: cosilo resume cut" in errors
        assert "Traceback" not in errors
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")  # the recipe's paths still hold
    assert cosilo("resume", "../cut")[0] == 0
    assert Run(folder / "cut").result == Run(folder / "whole").result


def test_the_demo(folder):
    environment = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run([COSILO, "demo"], capture_output=True, text=True, env=environment, check=True)
    (run,) = (folder / "runs").iterdir()
    assert f"report: {run}/report.html" in done.stdout
    result = Run(run)
    assert len(result.about["silos"]) == 12
    assert "The federation helped" in done.stdout
    assert len({tuple(task) for task in result.result["tasks"].values()}) > 1
    assert done.stderr == ""
    assert json.loads((run / "recipe.json").read_text())["source"] == "demo.toml"
