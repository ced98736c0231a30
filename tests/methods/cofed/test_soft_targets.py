"""Shares as soft targets, by hand: four instances, two classes, and a silo that votes by rote."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cosilo import Silo
from cosilo.aggregation.voting import TaughtLabels
from cosilo.methods.cofed.soft_targets import soft_lessons, soft_targets
from cosilo.protocol.stage import LOCAL


class Rote:
    """Says 0, 1, 1, 1 of the pool."""

    def fit(self, X, y):
        pass

    def predict(self, X):
        return np.array([0, 1, 1, 1])[X[:, 0].astype(int)]


@pytest.fixture
def silo():
    found = Silo("a", np.array([[0.0], [1.0]]), np.array([0, 1]), Rote())
    found.use_pool(np.arange(4.0)[:, None])
    found.fit(LOCAL)
    return found


def lessons_of(silo, index, label, stands, share, part):
    index, label, stands, shares = map(np.array, (index, label, stands, np.array(share) * 255))
    taught = TaughtLabels(index, label, stands, None, shares)
    return soft_lessons(silo, taught, silo.label_pool(), np.array(part))


def test_shares_are_squared_and_the_check_is_without_the_own_vote(silo):
    # Instance 1 goes to neither class. The silo, one of four and one of two, said 0 and 1 of the others.
    share, part = [[0.5, 0.25], [0.5, 0.5]], [0.25, 0.5]
    lessons, check = lessons_of(silo, [0, 2], [0, 0], [1, 1], share, part)
    assert lessons.places.tolist() == check.places.tolist() == [0, 2]
    assert np.allclose(lessons.y, [[0.8, 0.2], [0.5, 0.5]])
    # Without it: (0.5 − 0.25) / 0.75 and 0.25 / 0.5, a third and a half; then 0.5 / 0.75 and nothing.
    assert np.allclose(check.y, [[4 / 13, 9 / 13], [1, 0]])


def test_the_check_leaves_out_what_the_silos_own_vote_decided(silo):
    share = [[1.0, 0.0], [0.0, 0.5]]
    lessons, check = lessons_of(silo, [0, 3], [0, 1], [1, 0], share, [0.25, 0.25])
    assert len(lessons) == 2
    assert check.places.tolist() == [0]


def test_a_class_that_is_not_told_is_learnt_by_its_label(silo):
    # Of class 0 shares are told, of class 1 none; instances 2 and 3 have it, the last by the silo's own vote.
    share = [[1.0, 0.0], [0.25, 0.0], [0.0, 0.0]]
    lessons, check = lessons_of(silo, [0, 2, 3], [0, 1, 1], [1, 1, 0], share, [0.25, 0.25])
    assert lessons.y.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert check.places.tolist() == [0, 2]
    assert check.y.tolist() == [[1, 0], [0, 1]]


@given(
    share=arrays(np.uint8, (6, 3)).map(lambda found: found / 255),
    label=arrays(np.int64, 6, elements=st.integers(0, 2)),
)
def test_targets_add_up_to_one_and_keep_the_order_of_the_shares(share, label):
    found = soft_targets(share, label)
    assert np.allclose(found.sum(axis=1), 1)
    for row, targets, code in zip(share, found, label, strict=True):
        if row[code] > 0:
            assert (np.argsort(row, kind="stable") == np.argsort(targets, kind="stable")).all()
        else:
            assert targets.tolist() == np.eye(3)[code].tolist()
