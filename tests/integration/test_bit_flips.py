"""One bit of one file is flipped: whatever command reads it says so in one line that names the file, or
comes to the same result.

`benchmarks/flips.py` has the subjects and the commands, and flips more of them.
"""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Run, Silo
from cosilo.errors import CosiloError

X, Y = load_digits(return_X_y=True)
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "flips.py"


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
        if path.name in (".lock", "log.txt"):
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


@pytest.fixture(scope="module")
def flips() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flips", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flips"] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "count", "needs"),
    [
        ("institutions", 5, "torch"),
        ("finished", 4, "sklearn"),
        ("targets", 5, "sklearn"),
        ("compared", 2, "sklearn"),
        ("kits", 10, "nvflare"),
    ],
)
def test_no_command_reads_a_flipped_bit_without_a_word(flips, tmp_path, monkeypatch, name, count, needs):
    pytest.importorskip(needs)
    monkeypatch.setenv("COLUMNS", "200")
    kinds, lines = flips.count_flips(getattr(flips, name)(tmp_path), count, seed=34)
    assert kinds.keys() <= {"named", "harmless"}, "\n".join(lines)
    assert kinds.total() == count
    assert kinds["named"] > 0


def test_a_flip_that_goes_unnoticed_is_found_out(flips, tmp_path):
    """The judge itself: commands that read a file without a look at it, in three ways."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "figure.txt").write_text("7")

    def judged(command) -> str:
        subject = flips.Subject("one", tmp_path / "whole", tmp_path / "place", {"read": command})
        kind, _ = flips.judge(subject, Path("figure.txt"), 0, 0, subject.said())
        return kind

    def careful(folder: Path, words: str) -> str:
        if (folder / "figure.txt").read_text() != "7":
            raise CosiloError(words)
        return "7"

    assert judged(lambda folder: (folder / "figure.txt").read_text()) == "silent"
    assert judged(lambda folder: {"7": 7}[(folder / "figure.txt").read_text()]) == "tracebacks"
    assert judged(lambda folder: careful(folder, "figure.txt: is damaged")) == "named"
    assert judged(lambda folder: careful(folder, "something is damaged")) == "unnamed"
    assert judged(lambda folder: "always the same") == "harmless"
