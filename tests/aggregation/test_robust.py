import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.aggregation.averaging import mean
from cosilo.aggregation.robust import average, bounded


def models(*values, dtype=np.float64):
    return lambda: [({"w": np.array([value], dtype)}, 1.0) for value in values]


START = {"w": np.zeros(1)}


@pytest.mark.parametrize(
    ("rule", "values", "wanted"),
    [
        ("mean", (1, 2, 6), 3),
        ("median", (1, 2, 600), 2),
        ("median", (1, 2, 4, 600), 3),
        ("trimmed", (1, 2, 3, 6, 600), 3),  # a quarter of five, rounded up, is two at each end
        ("trimmed", (1, 2, 3, 600), 2.5),
        ("clipped", (1, -2, 600), (1 - 2 + 2) / 3),  # the median distance is 2
    ],
)
def test_by_hand(rule, values, wanted):
    assert average(rule, models(*values), START)["w"][0] == pytest.approx(wanted)


@given(st.lists(st.floats(-10, 10), min_size=5, max_size=9), st.floats(-1e12, 1e12), st.data())
def test_a_minority_cannot_leave_the_range_of_the_others(honest, lie, data):
    bad = data.draw(st.integers(0, (len(honest) - 1) // 4))
    values = [*honest, *[lie] * bad]
    for rule in ("median", "trimmed"):
        found = float(average(rule, models(*values), START)["w"][0])
        assert min(honest) - 1e-9 <= found <= max(honest) + 1e-9
    clipped = float(average("clipped", models(*values), START)["w"][0])
    assert abs(clipped) <= max(map(abs, honest)) + 1e-9


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=6))
def test_of_equal_models_every_average_is_that_model(values):
    same = models(*[values[0]] * len(values))
    for rule in ("mean", "median", "trimmed", "clipped"):
        assert average(rule, same, START)["w"][0] == pytest.approx(values[0], abs=1e-9)
    np.testing.assert_array_equal(average("mean", models(*values), START)["w"], mean(models(*values)())["w"])


def test_counters_stay_whole_numbers_and_types_stay():
    for rule in ("median", "trimmed", "clipped"):
        counted = average(rule, models(1, 2, 4, 9, dtype=np.int64), {"w": np.zeros(1, np.int64)})["w"]
        assert counted.dtype == np.int64
        assert average(rule, models(1, 2, 3, dtype=np.float32), START)["w"].dtype == np.float32


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 10**9), min_size=1))
def test_no_size_counts_for_more_than_ten_times_the_median(sizes):
    found = bounded(sizes)
    assert found.keys() == sizes.keys()
    assert all(found[name] <= sizes[name] for name in sizes)
    assert max(found.values()) <= 10 * sorted(sizes.values())[(len(sizes) - 1) // 2]


def test_of_two_neither_rules_alone():
    assert bounded({"a": 100, "liar": 10**9}) == {"a": 100, "liar": 1000}
    assert bounded({}) == {}
