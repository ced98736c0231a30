"""Whether labels contradict a silo's votes: against sums by hand, and against simulated independent votes."""

import math

import numpy as np
import pytest

from cosilo.aggregation.voting import contradicts
from cosilo.aggregation.voting.agreement import DECIDED, MANY


def by_hand(votes, index, label, classes, least):
    """The same in plain Python."""
    pairs = [(votes[place], given) for place, given in zip(index, label, strict=True) if votes[place] >= 0]
    if len(pairs) < 20:
        return False
    said = [vote for vote in votes if vote >= 0]
    often = [said.count(code) / len(said) for code in range(classes)]
    taught = [sum(given == code for _, given in pairs) / len(pairs) for code in range(classes)]
    chance = sum(one * other for one, other in zip(often, taught, strict=True))
    best = sum(min(one, other) for one, other in zip(often, taught, strict=True))
    n = min(len(pairs), 300)
    equal = n * sum(one == other for one, other in pairs) / len(pairs)
    share = (equal + 2.5**2 / 2) / (n + 2.5**2)
    return share + 2.5 * math.sqrt(share * (1 - share) / (n + 2.5**2)) < chance + least * (best - chance)


def test_it_is_what_a_sum_by_hand_says():
    rng, told = np.random.default_rng(0), []
    for _ in range(300):
        classes, size, right = int(rng.integers(2, 8)), int(rng.integers(20, 400)), rng.random()
        votes = rng.choice(classes + 1, size, p=rng.dirichlet(np.ones(classes + 1))) - 1
        index = np.sort(rng.choice(size, int(rng.integers(10, size)), replace=False))
        wrong = (votes[index] + rng.integers(1, classes, len(index))) % classes
        label = np.where(rng.random(len(index)) < right**2, votes[index].clip(0), wrong)
        told.append(contradicts(votes, index, label, classes, 0.1))
        assert told[-1] == by_hand(votes.tolist(), index.tolist(), label.tolist(), classes, 0.1)
    assert 30 < sum(told) < 270


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize("compared", [20, 60, 300, 3000])
def test_honest_labels_of_a_weak_voter_seldom_contradict(classes, compared):
    """A voter that is right in a fifth of the cases beyond chance: at most one time in a hundred."""
    rng = np.random.default_rng(compared + classes)
    index, refused = np.arange(compared), 0
    for _ in range(300):
        label = rng.integers(0, classes, compared)
        votes = np.where(rng.random(compared) < 0.2, label, rng.integers(0, classes, compared))
        refused += contradicts(votes, index, label, classes, 0.1)
    assert refused <= 3


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_labels_contrary_to_good_votes_do(classes):
    """Votes that are right in four of five cases, and labels that never are."""
    rng = np.random.default_rng(classes)
    for _ in range(50):
        truth = rng.integers(0, classes, 200)
        votes = np.where(rng.random(200) < 0.8, truth, rng.integers(0, classes, 200))
        assert contradicts(votes, np.arange(200), (truth + 1) % classes, classes, 0.1)
        assert not contradicts(votes, np.arange(200), truth, classes, 0.1)


def test_a_larger_pool_decides_no_more_than_many_instances():
    votes = np.tile([0, 1], 50 * MANY)
    by_chance = np.tile([0, 0, 1, 1], 25 * MANY)
    assert DECIDED * math.sqrt(0.25 / MANY) > 0.05
    assert not contradicts(votes, np.arange(len(votes)), by_chance, 2, 0.1)
