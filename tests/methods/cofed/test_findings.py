"""What the report is told of a vote."""

import numpy as np

from cosilo.methods.cofed.elections import Ballots
from cosilo.methods.cofed.findings import decision_of, vote_of
from cosilo.protocol.message import Fields
from cosilo.protocol.stage import FEDERATED


def test_a_vote_by_hand():
    votes = [np.array(row, np.int8) for row in ([0, 1, 0, -1], [0, 1, 1, 1], [2, 2, 2, 2])]
    ballots = Ballots(["a", "b", "c"], votes, [[0, 1], [0, 1], [2]], 3)
    vote = vote_of(
        ballots, [1.0, 1.0, 0.0], np.array([0.5, 0.4, 0.0]), np.array([1, 2, 0]), ["x", "y", "z"], FEDERATED
    )
    assert vote.elected == {"x": 1, "y": 2, "z": 0}
    assert vote.abstained == {"a": 0.25, "b": 0.0, "c": 0.0}
    assert vote.agreement == [[1.0, 0.666667, None], [0.666667, 1.0, None], [None, None, 1.0]]
    assert vote.kappa == {"a": 0.5, "b": 0.4, "c": 0.0}
    assert vote.alarms == [
        "these silos disagree with all others (κ below 0.25): c; look at their classes and data"
    ]


def test_of_many_voters_a_hundred_are_compared():
    rng = np.random.default_rng(0)
    names = [f"s{place}" for place in range(1000)]
    votes = [rng.integers(0, 2, 20, dtype=np.int8) for _ in names]
    ballots = Ballots(names, votes, [[0, 1]] * 1000, 2)
    vote = vote_of(ballots, [1.0] * 1000, np.ones(1000), np.array([10, 10]), ["x", "y"], FEDERATED)
    assert len(vote.compared) == len(vote.agreement) == 100
    assert (vote.compared[0], vote.compared[-1]) == ("s0", "s999")
    one, other = (votes[names.index(vote.compared[place])] for place in (3, 70))
    assert vote.agreement[3][70] == round(float(np.mean(one == other)), 6)
    assert len(vote.kappa) == 1000


def test_a_decision_as_it_was_told():
    told = Fields({"taken": 1, "instances": 50, "gained": 4, "lost": 1, "doubtful": 0})
    assert decision_of(told).model_dump() == {
        "taken": True,
        "instances": 50,
        "gained": 4,
        "lost": 1,
        "doubtful": False,
    }
    assert decision_of(Fields({"taken": 0, "doubtful": 1})).model_dump(exclude_none=True) == {
        "taken": False,
        "doubtful": True,
    }
