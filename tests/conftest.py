"""What many tests need: a small real federation, and learners that know nothing of scikit-learn."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Silo
from cosilo.cli.main import main

# No test fails because the machine was busy: Hypothesis looks at results, not at the clock.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")

DIGITS_X, DIGITS_Y = load_digits(return_X_y=True)


class Nearest:
    """A classifier of somebody who never heard of scikit-learn: the nearest class mean."""

    def fit(self, X, y):
        self.known = sorted(set(y))
        self.means = np.stack([X[y == c].mean(axis=0) for c in self.known])

    def predict(self, X):
        distance = ((X[:, None, :] - self.means[None]) ** 2).sum(axis=2)
        return np.array(self.known)[distance.argmin(axis=1)]


def part(classes: list[int], start: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """The first n digits of some classes from `start` on."""
    index = np.flatnonzero(np.isin(DIGITS_Y, classes))
    index = index[index >= start][:n]
    return DIGITS_X[index], DIGITS_Y[index]


def make_silos(**options: Any) -> list[Silo]:
    """Three silos with different tasks and black boxes."""
    return [
        Silo("tree", *part([0, 1, 2], 0), DecisionTreeClassifier(), **options),
        Silo("bayes", *part([1, 2, 3], 300), GaussianNB(), **options),
        Silo("nearest", *part([0, 2, 3], 600), Nearest(), **options),
    ]


@pytest.fixture(scope="session")
def silos() -> Callable[..., list[Silo]]:
    return make_silos


@pytest.fixture(scope="session")
def pool() -> np.ndarray:
    return DIGITS_X[1000:1300]


@pytest.fixture
def federation(pool: np.ndarray) -> Callable[..., Federation]:
    def make(method: Any = None, **options: Any) -> Federation:
        return Federation(make_silos(), pool, method, **options)

    return make


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real datasets; tests that need it are skipped where it is not."""
    folder = os.environ.get("COSILO_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("COSILO_DATA does not point at a folder with the real datasets")
    return Path(folder)


@pytest.fixture
def cosilo(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process, as a person types it; gives exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cosilo", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        output = capsys.readouterr()
        return int(stop.value.code or 0), output.out, output.err

    return run
