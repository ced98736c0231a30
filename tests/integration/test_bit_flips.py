"""One bit of one file of a run is flipped: the run says so, naming the file, or comes to the same result."""

import shutil

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Run, Silo
from cosilo.errors import CosiloError

X, Y = load_digits(return_X_y=True)


def federation() -> Federation:
    silos = [
        Silo(name, X[start : start + 80], Y[start : start + 80], learner)
        for name, start, learner in (("tree", 0, DecisionTreeClassifier()), ("bayes", 80, GaussianNB()))
    ]
    return Federation(silos, X[1000:1060], CoFED())


class Stop(Exception):
    pass


def stop_at_update(event) -> None:
    if event.what == "reply" and event.facts["step"] == "update":
        raise Stop


def outcome(run: Run) -> dict:
    return {key: run.result[key] for key in ("scores", "voting", "tasks")}


def test_no_flipped_bit_goes_unnoticed(tmp_path):
    with pytest.raises(Stop):
        federation().run(tmp_path / "begun", observers=[stop_at_update])
    whole = outcome(federation().run(tmp_path / "whole"))
    rng = np.random.default_rng(0)
    files = sorted(path for path in (tmp_path / "begun").rglob("*") if path.is_file() and path.stat().st_size)
    named = harmless = 0
    for path in files:
        if path.name in (".lock", "log.txt", "events.jsonl"):
            continue  # texts for people
        for _ in range(2):
            folder = tmp_path / "copy"
            shutil.copytree(tmp_path / "begun", folder)
            damaged = folder / path.relative_to(tmp_path / "begun")
            content = bytearray(damaged.read_bytes())
            content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
            damaged.write_bytes(content)
            try:
                assert outcome(federation().run(folder)) == whole, path
                harmless += 1
            except CosiloError:  # anything else is a traceback
                named += 1
            shutil.rmtree(folder)
    assert named > harmless
    print(f"{named} named, {harmless} without effect")
