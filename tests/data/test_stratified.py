"""Parts of a set in which every class has its share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cosilo.data.stratified import hold_out, stratified

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=80).map(np.array)


@given(LABELS, st.floats(0.05, 0.95), st.integers(0, 2**32))
def test_what_is_held_out_is_a_share_of_every_class_and_leaves_one(y, fraction, seed):
    held, kept = hold_out(y, fraction, seed)
    assert sorted([*held, *kept]) == list(range(len(y)))
    for code in np.unique(y):
        count = int((y == code).sum())
        assert (y[held] == code).sum() == min(round(fraction * count), count - 1)
    again, _ = hold_out(y, fraction, seed)
    assert held.tolist() == again.tolist()


@given(LABELS, st.integers(1, 100), st.integers(0, 2**32))
def test_a_part_has_its_size_and_each_class_its_quota_rounded_up_or_down(y, size, seed):
    index = stratified(y, size, seed)
    assert len(index) == len(set(index.tolist())) == min(size, len(y))
    if size < len(y):
        for code in np.unique(y):
            quota = size * (y == code).sum() / len(y)
            assert np.floor(quota) <= (y[index] == code).sum() <= np.ceil(quota)


def test_by_hand():
    y = np.array([0] * 5 + [1] * 3 + [2] * 2)
    # Quotas of 4 instances: 2, 1.2, 0.8; the largest remainder takes the last.
    assert np.bincount(y[stratified(y, 4, seed=0)]).tolist() == [2, 1, 1]
