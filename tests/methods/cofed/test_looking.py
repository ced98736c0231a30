"""What the same votes come to by each rule."""

import numpy as np
import pytest

from cosilo.methods.cofed.elections import Ballots, ByShares
from cosilo.methods.cofed.looking import examples, look

BALLOTS = Ballots(
    names=["a", "b", "c", "d"],
    votes=[np.array(v, np.int8) for v in ([0, 1, 0, 1], [0, 1, 1, -1], [0, 0, 1, 1], [1, 1, 2, 2])],
    tasks=[[0, 1], [0, 1], [0, 1], [1, 2]],
    n_classes=3,
)


def test_rules_by_hand():
    found = look(BALLOTS, ["x", "y", "z"], alphas=[0.5])
    assert [rule.name for rule in found.rules] == ["α = 0.5", "winner", "winner, by agreement"]
    threshold, winner, _ = found.rules
    # x: instance 0 (3/3); y: 1 (3/4); z: 2 and 3 (1/1)
    assert threshold.per_class == (1, 1, 2)
    assert threshold.received == {"a": 2, "b": 2, "c": 2, "d": 3}
    assert threshold.own_votes == {"a": 1.0, "b": 1.0, "c": 0.5, "d": 1.0}
    assert threshold.mean_received == 9 / 4
    assert threshold.mean_own_votes == pytest.approx(3.5 / 4)
    assert winner.elected == 4
    assert found.holders == (3, 4, 1)
    assert set(found.kappas) == {"a", "b", "c", "d"}


def test_examples_come_evenly_from_all():
    votes = [np.zeros(100, np.int8)] * 3
    ballots = Ballots(["a", "b", "c"], votes, [[0, 1]] * 3, 2)
    outcome = ByShares(ballots, [1.0] * 3)
    assert examples(outcome, ballots, 0, most=3).tolist() == [0, 49, 99]
    assert examples(outcome, ballots, 1).tolist() == []
