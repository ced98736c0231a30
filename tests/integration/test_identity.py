"""A run directory answers for one run: with another learner or other data, it refuses in a line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Institution, Local, Silo, Target
from cosilo.errors import RunError

DIGITS_X, DIGITS_Y = load_digits(return_X_y=True)
X, Y = DIGITS_X[:120], DIGITS_Y[:120]
POOL = DIGITS_X[400:500]


def silo(name: str = "a", start: int = 0, depth: int | None = None, **options) -> Silo:
    y = options.pop("y", DIGITS_Y[start : start + 120])
    learner = options.pop("learner", DecisionTreeClassifier(max_depth=depth))
    return Silo(name, DIGITS_X[start : start + 120], y, learner, **options)


def run(folder: Path, first: Silo, pool=POOL, **options):
    return Federation([first, silo("b", 200)], pool, **{"method": CoFED(alpha=0.5), **options}).run(folder)


class Twice(GaussianNB):
    """Somebody's own."""


def test_another_learner_parameter_is_refused_in_one_line(tmp_path):
    before = run(tmp_path / "run", silo())
    with pytest.raises(RunError) as error:
        run(tmp_path / "run", silo(depth=1))
    assert str(error.value) == (
        f"{tmp_path / 'run'}: silo 'a': is not what it was when the run began: learner.max_depth "
        f"(was None, now 1); put it back, or choose another folder, such as {tmp_path / 'run-2'}, "
        "or delete this one"
    )
    assert run(tmp_path / "run", silo()).scores("federated") == before.scores("federated")
    assert run(tmp_path / "run-2", silo(depth=1)).scores("federated") != before.scores("federated")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"y": np.random.default_rng(0).permutation(Y)}, "silo 'a': .* began: training data; put it back"),
        ({"test": (X, Y)}, "test .was 0.25, now None., test data"),
        ({"test": 0.5}, "test .was 0.25, now 0.5."),
        ({"validation": 0.3}, "validation .was 0.2, now 0.3."),
        (
            {"learner": GaussianNB()},
            "learner.use .was 'sklearn.tree.*', now '.*GaussianNB'.",
        ),
        ({"task": [*map(str, range(10)), "x"]}, "task .was .*'x'"),
        ({"shares": ["labels"]}, "shares .was .'labels', 'metrics'., now .'labels'."),
    ],
)
def test_all_that_decides_a_result_is_compared(tmp_path, changed, words):
    run(tmp_path / "run", silo())
    with pytest.raises(RunError, match=words) as error:
        run(tmp_path / "run", silo(**changed))
    assert "\n" not in str(error.value)
    assert "such as" in str(error.value)


def test_so_are_the_pool_the_method_and_the_seed(tmp_path):
    run(tmp_path / "run", silo())
    for words, pool, options in [
        ("pool = '", POOL[::-1], {}),
        ("method.alpha = 0.5, now it is 0.4", POOL, {"method": CoFED(alpha=0.4)}),
        ("seed = 0, now it is 1", POOL, {"seed": 1}),
    ]:
        with pytest.raises(RunError, match=f"was begun with {words}.*; choose another folder, such as"):
            run(tmp_path / "run", silo(), pool, **options)


def test_the_code_of_ones_own_learner_and_method_counts(tmp_path, monkeypatch):
    run(tmp_path / "run", silo(learner=Twice()))
    monkeypatch.setattr(Twice, "predict", lambda self, X: np.zeros(len(X), int), raising=False)
    with pytest.raises(RunError, match=r"learner.use \(was '.*Twice [0-9a-f]{16}', now"):
        run(tmp_path / "run", silo(learner=Twice()))

    class Census(Local):
        def coordinate(self, silos):
            silos.ask("train")

    Federation([silo()], method=Census()).run(tmp_path / "own")
    Federation([silo()], method=Census()).run(tmp_path / "own")
    monkeypatch.setattr(Census, "coordinate", lambda self, silos: silos.ask("hello"))
    with pytest.raises(RunError, match="was run with other code of local; choose another folder"):
        Federation([silo()], method=Census()).run(tmp_path / "own")


def test_versions_count(tmp_path, monkeypatch):
    run(tmp_path / "run", silo())
    monkeypatch.setattr("sklearn.__version__", "99.0")
    with pytest.raises(RunError, match=r"version.sklearn \(was '1[^']*', now '99.0'\)"):
        run(tmp_path / "run", silo())


def test_targets_and_members_count(tmp_path):
    target = Target(DIGITS_X[300:320], DIGITS_Y[300:320], DIGITS_X[320:330])
    other = Target(DIGITS_X[300:320], DIGITS_Y[300:320], DIGITS_X[330:340])
    Federation([silo(target=target)], method=Local()).run(tmp_path / "target")
    with pytest.raises(RunError, match="began: unlabelled target; "):
        Federation([silo(target=other)], method=Local()).run(tmp_path / "target")

    def institution(**options) -> Institution:
        return Institution("hospital", [silo(**options), silo("b", 200)])

    Federation([institution()], method=Local()).run(tmp_path / "members")
    Federation([institution()], method=Local()).run(tmp_path / "members")
    with pytest.raises(RunError, match=r"silo 'a': .* learner.max_depth \(was None, now 2\)"):
        Federation([institution(depth=2)], method=Local()).run(tmp_path / "members")


def test_nothing_of_it_leaves_a_silo(tmp_path):
    done = run(tmp_path / "run", silo())
    kept = json.loads((done.folder / "silos/a/identity.json").read_text())
    for text in (done.folder / "run.json", done.folder / "result.json", done.folder / "asks.jsonl"):
        assert kept["training data"] not in text.read_text()


# ---------------------------------------------------------------------- from a file

RECIPE = """
seed = 3
[method]
use = "cofed"
[pool]
path = "pool.csv"
[defaults]
label = "y"
learner = { use = "sklearn.tree.DecisionTreeClassifier", max_depth = 4 }
[[silo]]
name = "a"
path = "a.csv"
[[silo]]
name = "b"
path = "b.csv"
learner = { use = "mine.Mine" }
"""
MINE = """
from sklearn.naive_bayes import GaussianNB
class Mine(GaussianNB):
    def predict(self, X):
        return super().predict(X * {factor})
"""


@pytest.fixture
def recipe(tmp_path) -> Path:
    for name, start in (("a", 0), ("b", 200)):
        frame = pd.DataFrame(DIGITS_X[start : start + 100, 20:28]).add_prefix("c")
        frame.assign(y=DIGITS_Y[start : start + 100] % 3).to_csv(tmp_path / f"{name}.csv", index=False)
    pd.DataFrame(POOL[:, 20:28]).add_prefix("c").to_csv(tmp_path / "pool.csv", index=False)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "mine.py").write_text(MINE.format(factor=1))
    return tmp_path / "recipe.toml"


def command(*arguments: object) -> tuple[int, str, str]:
    """In a process of its own, which imports the recipe's module anew."""
    script = "from cosilo.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_from_a_file(recipe, cosilo):
    folder = recipe.parent / "run"
    assert command("run", recipe, "--dir", folder)[0] == 0
    code, _, told = cosilo("run", recipe, "--dir", folder, "--set", "defaults.learner.max_depth=1")
    assert code == 2
    assert "silo 'a': is not what it was" in told
    assert "max_depth (was 4, now 1); put it back, or choose another folder, such as" in told
    assert len(told.splitlines()) == 1

    (recipe.parent / "mine.py").write_text("# a comment\n" + MINE.format(factor=1))
    assert command("run", recipe, "--dir", folder)[0] == 0
    (recipe.parent / "mine.py").write_text(MINE.format(factor=2))
    code, _, told = command("run", recipe, "--dir", folder)
    assert (code, "silo 'b'" in told, "mine.Mine" in told) == (2, True, True)

    (recipe.parent / "mine.py").write_text(MINE.format(factor=1))
    lines = (recipe.parent / "a.csv").read_text().splitlines()
    (recipe.parent / "a.csv").write_text("\n".join([*lines[:-1], lines[-1][:-1] + "9"]))
    code, _, told = command("resume", folder)
    assert code == 2
    assert "silo 'a': is not what it was when the run began: training data" in told


def test_a_comparison_looks_before_it_shows_old_numbers(recipe, cosilo):
    folder = recipe.parent / "compared"
    arguments = ("compare", recipe, "--methods", "local", "--seeds", "1", "--dir", folder)
    assert cosilo(*arguments)[0] == 0
    assert cosilo(*arguments)[0] == 0
    lines = (recipe.parent / "a.csv").read_text().splitlines()
    (recipe.parent / "a.csv").write_text("\n".join(lines[:-1]))
    code, _, told = cosilo(*arguments)
    assert code == 2
    assert "silo 'a': is not what it was when the run began: training data" in told
