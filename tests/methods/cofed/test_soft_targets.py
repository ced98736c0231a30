"""Shares as soft targets, by hand: three instances, two classes, and a silo that votes by rote."""

import numpy as np

from cosilo import Silo
from cosilo.methods.cofed.soft_targets import soft_lessons
from cosilo.protocol.stage import LOCAL


class Rote:
    """Says 0, 1, 1, 1 of the pool."""

    def fit(self, X, y):
        pass

    def predict(self, X):
        return np.array([0, 1, 1, 1])[X[:, 0].astype(int)]


def test_shares_are_normalised_and_the_check_is_without_the_own_vote():
    silo = Silo("a", np.array([[0.0], [1.0]]), np.array([0, 1]), Rote())
    silo.use_pool(np.array([[0.0], [1.0], [2.0]]))
    silo.fit(LOCAL)
    share = np.array([[0.5, 0.25], [0.0, 0.5], [0.5, 0.5]])
    nothing = np.zeros(0, np.int64)
    part = np.array([0.25, 0.5])  # it is one of four, and one of two
    lessons, check = soft_lessons(silo, 0.0, nothing, nothing, nothing, share, part)
    assert np.allclose(lessons.y, [[2 / 3, 1 / 3], [0, 1], [0.5, 0.5]])
    # Without it: (0.5 − 0.25) / 0.75 and 0.25 / 0.5; nothing is left of the second; 0.5 / 0.75 and 0.
    assert np.allclose(check.y, [[0.4, 0.6], [1, 0]])
    assert check.places.tolist() == [0, 2]


def test_a_class_that_is_not_told_is_learnt_by_its_label():
    silo = Silo("a", np.array([[0.0], [1.0]]), np.array([0, 1]), Rote())
    silo.use_pool(np.array([[0.0], [1.0], [2.0]]))
    silo.fit(LOCAL)
    share = np.array([[0.5, 0.0], [0.0, 0.0], [0.5, 0.0]])
    index, label = np.array([1, 2]), np.array([1, 1])
    lessons, check = soft_lessons(silo, 0.0, index, label, np.array([1, 0]), share, np.array([0.0, 0.0]))
    assert np.allclose(lessons.y, [[1, 0], [0, 1], [0, 1]])
    assert check.places.tolist() == [0, 1]  # the third label does not stand without its vote


def test_the_check_of_such_a_class_leaves_out_what_the_silos_own_vote_decided():
    silo = Silo("a", np.array([[0.0], [1.0]]), np.array([0, 1]), Rote())
    silo.use_pool(np.arange(4.0)[:, None])
    silo.fit(LOCAL)
    # Of class 0 shares are told, of class 1 none; instances 2 and 3 have it, the last by the silo's own vote.
    share = np.array([[1.0, 0.0], [0.5, 0.0], [0.25, 0.0], [0.0, 0.0]])
    lessons, check = soft_lessons(
        silo, 0.0, np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1, 1, 0]), share, np.full(2, 0.25)
    )
    assert lessons.y.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert check.places.tolist() == [0, 1, 2]
    assert check.y[-1].tolist() == [0, 1]
