"""Whole commands with silos that have a target: run, kill, resume, and get the labels."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cosilo import Run
from cosilo.config import build, recipe_file

pytest.importorskip("torch")
COSILO = str(Path(sys.executable).with_name("cosilo"))

RECIPE = """
seed = 1
[method]
use = "local"
[simulation]
dataset = "digits"
split = { use = "subset", silos = 4, clusters = 4, per_class = 40, labelled = 4, unlabelled = 25 }
learners = [{ use = "mlp", hidden = [32], training = { lr = 0.02, epochs = 10, batch = 20 } }]
shares = ["metrics", "weights", "size"]
"""
FEDAVG = ["--set", "method.use=fedavg", "--set", "method.rounds=4", "--set", "method.epochs=2"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def silos_of(folder: Path, *overrides: str):
    values = recipe_file.read(folder / "recipe.toml", overrides)
    return {silo.name: silo for silo in build.federation(values, build.Source("recipe.toml", folder)).silos}


@pytest.mark.parametrize("method", ["local", "fedavg"])
def test_run_and_labels(folder, cosilo, method):
    options = FEDAVG if method == "fedavg" else []
    code, output, _ = cosilo("check", "recipe.toml", *options)
    assert code == 0
    assert "; wants " in output
    assert cosilo("run", "recipe.toml", "--dir", "run", *options)[0] == 0
    run = Run(folder / "run")
    last = "federated" if method == "fedavg" else "local"
    found = run.result["labelling"][last]
    members = silos_of(folder)
    assert sorted(found) == sorted(members)
    code, output, _ = cosilo("labels", "run", "silo-1", "--out", "labels.csv")
    assert (code, output) == (0, f"{found['silo-1']['instances']} labels: labels.csv\n")
    silo, written = members["silo-1"], pd.read_csv("labels.csv", dtype={"label": str})
    assert list(written.columns) == ["row", "label", "confidence", "speakers"]
    assert written["row"].tolist() == list(range(1, len(written) + 1))
    truth = silo.task.decode(silo.data.target.truth)
    assert np.mean(written["label"] == truth) == found["silo-1"]["accuracy"] > 0.7
    assert set(written["label"]) <= set(silo.wanted.classes)
    assert written["confidence"].between(1 / len(silo.wanted), 1).all()
    assert written["speakers"].isna().all()  # its own model alone
    if method == "local":
        pytest.importorskip("pyarrow")
        assert cosilo("labels", "run", "silo-1", "--out", "labels.parquet")[0] == 0
        columns = ["label", "confidence"]
        assert np.allclose(pd.read_parquet("labels.parquet")["confidence"], written["confidence"])
        assert pd.read_parquet("labels.parquet")[columns[:1]].equals(written[columns[:1]])
        code, output, _ = cosilo("labels", "run", "silo-1")
        assert code == 0
        assert f"{len(truth)} labels: " in output
        assert len([line for line in output.splitlines() if "│" in line]) == 10


def test_mistakes_are_one_line(folder, cosilo):
    learner = "simulation.learners=[{use='sklearn.naive_bayes.GaussianNB'}]"
    assert cosilo("run", "recipe.toml", "--dir", "run", "--set", learner)[0] == 0
    plain = "simulation.split={use='iid',silos=2,size=50}"
    assert cosilo("run", "recipe.toml", "--dir", "plain", "--set", learner, "--set", plain)[0] == 0
    cases = [
        (
            ["run", "silo3"],
            "error: run: there is no silo 'silo3' (did you mean 'silo-3'?); wants silo-1, s",
        ),
        (
            ["run", "silo-1", "--out", "labels.xlsx"],
            "error: --out labels.xlsx: got the ending '.xlsx'; wants",
        ),
        (["run", "silo-1", "--out", "no/labels.csv"], "error: no/labels.csv: cannot be written ("),
        (["plain", "silo-1"], "error: silo 'silo-1': has no target; a run labels"),
        (["none", "silo-1"], "error: none: is neither the directory of a run nor a silo's record of one"),
    ]
    about = Run(folder / "run")
    for arguments, line in cases:
        code, output, errors = cosilo("labels", *arguments)
        assert (code, output) == (2, "")
        assert line in errors
        assert len(errors.strip().splitlines()) == 1
    about.set_status("stopped")
    errors = cosilo("labels", "run", "silo-1")[2]
    assert "error: run: the run is stopped, not finished; `cosilo resume` continues it" in errors
    about.set_status("finished")
    (folder / "run/recipe.json").unlink()  # neither the recipe nor its data is needed
    assert cosilo("labels", "run", "silo-1")[0] == 0


def test_killed_resumed_and_the_same_labels_for_any_number_of_workers(folder, cosilo):
    long = [*FEDAVG, "--set", "method.rounds=15"]
    assert cosilo("run", "recipe.toml", "--dir", "whole", *long)[0] == 0
    command = [COSILO, "run", "recipe.toml", "--dir", "cut", "--set", "workers=2", *long]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (folder / "cut/journal/mark.safetensors").exists():  # a round is done
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert Run(folder / "cut").status in ("running", "interrupted")  # its workers end a moment later
    assert cosilo("resume", "cut")[0] == 0
    assert Run(folder / "cut").result == Run(folder / "whole").result
    assert [ask["step"] for ask in Run(folder / "cut").asks()] == [
        ask["step"] for ask in Run(folder / "whole").asks()
    ]
    for name in ("silo-1", "silo-4"):
        for run in ("whole", "cut"):
            assert cosilo("labels", run, name, "--out", f"{run}.csv")[0] == 0
        assert (folder / "whole.csv").read_bytes() == (folder / "cut.csv").read_bytes()
