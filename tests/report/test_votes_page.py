"""`cosilo votes`: the command as a person types it, and the page that it writes."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Local, Silo
from cosilo.methods.cofed.elections import Ballots, ByShares
from cosilo.methods.cofed.looking import by_agreement, look
from cosilo.report.elected_sheet import write_sheet
from cosilo.report.votes_page import verdict, write_votes_page

RECIPE = """
[method]
use = "cofed"

[simulation]
dataset = "digits"
split = { use = "iid", silos = 4, size = 150 }

[[simulation.learners]]
use = "sklearn.naive_bayes.GaussianNB"

[pool]
rest = true
size = 200
"""


def test_a_run_from_a_recipe_shows_what_was_elected(tmp_path, monkeypatch, cosilo):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.toml").write_text(RECIPE)
    assert cosilo("run", "r.toml", "--dir", "run")[0] == 0
    code, output, errors = cosilo("votes", "run", "--alpha", "0.3", "--alpha", "0.9", "--silos")
    assert (code, errors) == (0, "")
    assert "α = 0.9" in output
    assert "silo-4" in output
    assert "Silos go with each other's votes by a median κ of 0." in output
    page = (tmp_path / "run/votes.html").read_text()
    assert page.count("data:image/png;base64,") + page.count("<li>") > 50
    assert "<h3>7</h3>" in page
    assert "What was elected (winner, by agreement)" in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)  # opens anywhere, offline


def test_the_sheet_of_a_run_by_the_papers_rule_is_what_that_elected(tmp_path, monkeypatch, cosilo):
    """As in the paper's Fig. 4."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.toml").write_text(RECIPE.replace('"cofed"', '"cofed"\nrule = "paper"\nalpha = 0.6'))
    assert cosilo("run", "r.toml", "--dir", "run")[0] == 0
    assert cosilo("votes", "run")[0] == 0
    assert "What was elected (α = 0.6)" in (tmp_path / "run/votes.html").read_text()


def test_a_run_from_python_has_everything_but_the_instances(tmp_path, cosilo):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    silos = [Silo(name, X, y, GaussianNB()) for name in ("one", "two", "three")]
    Federation(silos, rng.normal(size=(30, 2)), CoFED()).run(tmp_path / "run")
    code, output, errors = cosilo("votes", tmp_path / "run")
    assert code == 0
    assert "winner, by agreement" in output
    assert errors.startswith("without what was elected: ")
    assert "was started from Python" in errors
    assert "What was elected" not in (tmp_path / "run/votes.html").read_text()


def test_a_run_without_votes(tmp_path, cosilo):
    X = np.eye(8)
    silos = [Silo(name, X, list("abababab"), DecisionTreeClassifier()) for name in ("one", "two")]
    Federation(silos, None, Local()).run(tmp_path / "run")
    code, _, errors = cosilo("votes", tmp_path / "run")
    assert code == 2
    assert errors.endswith("has no votes; wants a run of cofed that has come to its election\n")


def test_nonsense_is_called_that():
    rng = np.random.default_rng(1)
    votes = [rng.integers(0, 4, 500).astype(np.int8) for _ in range(6)]
    ballots = Ballots(list("abcdef"), votes, [[0, 1, 2, 3]] * 6, 4)
    assert verdict(look(ballots, list("wxyz"))).startswith("Silos hardly agree on this pool (median κ ")


@pytest.mark.parametrize(
    "pool",
    [
        np.zeros((3, 4, 4), np.uint8),
        np.zeros((3, 4, 4, 1)),
        np.full((3, 4, 4, 3), 0.5, np.float32),
        np.array(["<b>one</b>", "two", "three"], dtype=object),
        pd.DataFrame({"age": [1, 2, 3], "job": ["x", "y", "z"]}),
        np.zeros((3, 2)),
    ],
)
def test_every_kind_of_instance_can_be_shown(pool, tmp_path):
    ballots = Ballots(["a", "b", "c"], [np.array([0, 1, 0], np.int8)] * 3, [[0, 1]] * 3, 2)
    outcome = ByShares(ballots, [1.0] * 3)
    write_votes_page(tmp_path / "p.html", "run", look(ballots, ["x", "y"]), outcome, "winner", pool)
    page = (tmp_path / "p.html").read_text()
    assert "<b>one" not in page  # escaped
    assert page.count("<img") + page.count("<li>") == 3


def test_a_sheet_is_a_picture_with_a_row_for_each_class(tmp_path, monkeypatch, cosilo):
    from matplotlib.image import imread

    monkeypatch.chdir(tmp_path)
    images = np.zeros((60, 8, 8, 3), np.uint8)
    images[:30, ..., 0] = 255  # thirty red ones, then thirty blue ones
    images[30:, ..., 2] = 255
    votes = [np.repeat(np.array([0, 1], np.int8), 30)] * 3
    ballots = Ballots(list("abc"), votes, [[0, 1]] * 3, 2)
    found = look(ballots, ["red", "blue"])
    write_sheet(tmp_path / "s.png", found, by_agreement(ballots)[1], images)
    shown = imread(tmp_path / "s.png")
    height, width = shown.shape[:2]
    right = slice(width // 3, width - 20)
    assert shown[: height // 2, right, 0].mean() > 0.9 > shown[: height // 2, right, 2].mean()
    assert shown[height // 2 :, right, 2].mean() > 0.9 > shown[height // 2 :, right, 0].mean()
    # By the command: of a pool without images there is none, and another file is none either.
    (tmp_path / "r.toml").write_text(RECIPE.replace('"digits"', '"digits"\nper_class = 90'))
    assert cosilo("run", "r.toml", "--dir", "run")[0] == 0
    code, _, errors = cosilo("votes", "run", "--sheet", "s.pdf")
    assert (code, errors) == (2, "error: --sheet s.pdf: wants a .png file\n")
    code, _, errors = cosilo("votes", "run", "--sheet", "none.png")
    assert (code, errors) == (
        2,
        "error: --sheet none.png: the pool of run has no images at hand; leave --sheet out\n",
    )
