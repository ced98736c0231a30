"""The table of a run in a terminal."""

import numpy as np
import pytest
from rich.console import Console
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, Federation, Local, Silo
from cosilo.cli.results import run_table

RNG = np.random.default_rng(0)
POOL = RNG.normal(1, 1, (20, 2))


def silo(name, **options) -> Silo:
    X, y = RNG.normal(0, 1, (20, 2)), np.array(["a", "b"] * 10)
    X[y == "b"] += 2
    return Silo(name, X, y, GaussianNB(), **{"test": 0.5, "shares": ["labels", "metrics"], **options})


def cells(run) -> dict[str, list[str]]:
    """By silo, what stands in its row."""
    console = Console(width=200)
    with console.capture() as said:
        console.print(run_table(run))
    rows = [line.strip("│").split("│") for line in said.get().splitlines() if line.startswith("│")]
    return {row[0].strip(): [cell.strip() for cell in row[2:-1]] for row in rows}


@pytest.fixture
def silos() -> list[Silo]:
    return [silo("one"), silo("two"), silo("shy", shares=["labels"])]


def test_a_silo_that_only_votes_has_no_score_and_one_that_does_not_share_its_score_says_so(tmp_path, silos):
    found = cells(Federation(silos, POOL, CoFED(updates=1)).run(tmp_path / "run"))
    assert found["shy"] == ["not shared", "not shared", ""]
    told = [found[name][1] for name in ("one", "two")]
    assert "–" in told
    assert all(found[name][0].endswith("%") for name in ("one", "two"))


def test_a_stage_that_a_run_does_not_have_is_no_column(tmp_path, silos):
    found = cells(Federation(silos, method=Local()).run(tmp_path / "run"))
    assert [len(row) for row in found.values()] == [1, 1, 1]
    assert found["shy"] == ["not shared"]
