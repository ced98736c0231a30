"""Tempo's epochs: end points, order, ties, silence, and ten thousand random differences."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.aggregation.epoch_pacing import epochs
from cosilo.errors import ConfigError

NAMES = list("abcde")


def after(*differences, first=6):
    values = dict(zip(NAMES, differences, strict=False))
    return list(epochs(values, first, dict.fromkeys(values, first)).values())


def test_by_hand():
    # ln ω = 0, 1, 2: the ends are 2c = 12 and c/2 = 3; in the middle 3·(3·1 + 0 − 8)/(0 − 2) = 7.5, so 8.
    assert after(1.0, math.e, math.e**2) == [12, 8, 3]


@pytest.mark.parametrize("first", range(1, 40))
def test_the_ends_are_exact(first):
    found = after(0.3, 0.7, 1.9, first=first)
    assert found[0] == 2 * first
    assert found[2] == math.ceil(first / 2)


@given(st.lists(st.floats(1e-12, 1e12), min_size=2, max_size=5), st.integers(1, 50))
def test_more_divergent_institutions_never_do_more(differences, first):
    found = after(*differences, first=first)
    for one, mine in zip(differences, found, strict=True):
        for other, theirs in zip(differences, found, strict=True):
            assert one <= other or mine <= theirs


def test_ten_thousand_random_differences_stay_within_bounds():
    import numpy as np

    rng = np.random.default_rng(0)
    for _ in range(10_000):
        first = int(rng.integers(1, 30))
        differences = np.exp(rng.normal(scale=rng.choice([1e-6, 1, 20]), size=rng.integers(1, 6)))
        found = after(*differences.tolist(), first=first)
        assert all(max(1, math.ceil(first / 2)) <= value <= 2 * first for value in found), (
            differences,
            first,
        )


def test_all_equal_and_one_alone():
    assert after(0.5, 0.5, 0.5) == [6, 6, 6]
    assert after(0.5) == [6]
    assert after(0.0, 0.0) == [6, 6]


def test_a_difference_of_nothing_counts_as_the_smallest():
    assert after(0.0, 0.5, 2.0) == [12, 12, 3]


def test_an_institution_that_did_not_answer_keeps_its_epochs():
    found = epochs({"a": 1.0, "c": 4.0}, 6, {"a": 6, "b": 9, "c": 6})
    assert found == {"a": 12, "b": 9, "c": 3}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_differences_that_are_none(bad):
    with pytest.raises(ConfigError, match="'a' differs by"):
        epochs({"a": bad}, 6, {"a": 6})


def test_it_is_the_first_number_of_epochs_that_counts_and_not_the_number_of_institutions():
    assert after(1.0, 2.0, 3.0, first=10)[0] == 20
    assert after(1.0, 3.0, first=10)[0] == 20
