"""Angles between updates, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.aggregation.angles import angle, gompertz, shares, smoothed
from cosilo.errors import ConfigError


def at(x, y):
    return {"w": np.array([x, y]), "seen": np.array(7)}


@pytest.mark.parametrize(
    ("model", "expected"), [((2, 0), 0), ((1, 1), math.pi / 4), ((0, 3), math.pi / 2), ((-1, 0), math.pi)]
)
def test_the_angle_is_between_updates_and_not_between_models(model, expected):
    before = at(5.0, 5.0)
    moved = at(5.0 + model[0], 5.0 + model[1])
    assert angle(moved, at(6.0, 5.0), before) == pytest.approx(expected)


def test_an_update_of_no_length_says_nothing():
    assert angle(at(0.0, 0.0), at(1.0, 0.0), at(0.0, 0.0)) == math.pi / 2


@given(st.lists(st.floats(0, math.pi), min_size=1, max_size=10))
def test_a_smoothed_angle_is_the_mean_of_all_so_far(angles):
    found = 0.0
    for times, now in enumerate(angles):
        found = smoothed(found, times, now)
    assert found == pytest.approx(np.mean(angles))


@given(st.floats(0, math.pi), st.floats(0, math.pi), st.floats(0.1, 1000))
def test_a_smaller_angle_never_weighs_less(one, other, alpha):
    small, large = sorted([one, other])
    assert gompertz(small, alpha) >= gompertz(large, alpha)
    assert 0 <= gompertz(large, alpha) <= alpha


def test_shares_by_hand():
    # f(0.2) and f(1.5) for α = 2; sizes 10 and 30.
    f = {name: 2 * (1 - math.exp(-math.exp(-2 * (theta - 1)))) for name, theta in (("a", 0.2), ("b", 1.5))}
    raw = {"a": 10 * math.exp(f["a"]), "b": 30 * math.exp(f["b"])}
    found = shares({"a": 10, "b": 30}, {"a": 0.2, "b": 1.5}, alpha=2.0)
    assert found == pytest.approx({name: value / sum(raw.values()) for name, value in raw.items()})
    assert sum(shares({"a": 1, "b": 1}, {"a": 0.0, "b": 3.0}, alpha=5000.0).values()) == pytest.approx(1)
    with pytest.raises(ConfigError, match="alpha is 0; wants a number above 0"):
        shares({"a": 1}, {"a": 0.1}, alpha=0)
