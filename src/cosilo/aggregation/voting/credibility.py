"""Credibility: how far each silo's votes go with those of the others, from the votes alone.

For silo i, b_i(x) is the class of its task that the *others* give the largest weighted share, taken only
where that class also leads over all classes: elsewhere the instance is none of the silo's business. Its
agreement is Cohen's κ of its votes against b_i, which takes away what two silos would agree on by chance: a
silo that says one class all the time has κ = 0. Weights begin equal and follow the agreement, so that those
who agree with nobody soon have no say in what the others are held against.

    κ_i = (p − e) / (1 − e),   w_i = min(1, 2 · max(0, κ_i) / max_j κ_j) / n_i

Whoever is half as credible as the best counts fully: honest silos with weak models make other mistakes than
those with strong ones, and elections are worse if they count for less; whoever lies is far below. n_i is how
many silos vote as silo i does on practically all instances, itself included: copies of one voter have one
vote between them, however many names they go by.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes
from cosilo.aggregation.voting.election import totals
from cosilo.aggregation.voting.shares import counts

#: Instances that silos are compared on; a larger pool is sampled evenly. κ is then known to about 0.01.
SAMPLE = 10_000
ITERATIONS = 3
#: Silos that give the same label to more than this share of the instances are copies of one voter.
COPY = 0.995


@dataclass(frozen=True, eq=False)
class Credibility:
    """What the votes say of the voters."""

    #: Cohen's κ of every silo against what leads among the others.
    kappa: NDArray[np.float64]
    #: What a vote weighs: at most 1, and 0 for who agrees with nobody.
    weight: NDArray[np.float64]


def kappa(votes: Votes, reference: Votes, n_classes: int) -> float:
    """Cohen's κ on the instances on which both say something; 0 where there is nothing to compare.

    >>> kappa(np.array([0, 0, 1, 1, -1]), np.array([0, 1, 1, 1, 0]), 2)
    0.5
    >>> kappa(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 1]), 2)
    0.0
    """
    both = (votes >= 0) & (reference >= 0)
    said, should = votes[both].astype(np.intp), reference[both].astype(np.intp)
    if len(said) == 0:
        return 0.0
    same = float(np.mean(said == should))
    one, other = (np.bincount(codes, minlength=n_classes) / len(said) for codes in (said, should))
    by_chance = float(one @ other)
    return 0.0 if by_chance >= 1 else (same - by_chance) / (1 - by_chance)


def credibility(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    iterations: int = ITERATIONS,
) -> Credibility:
    """κ and weight of every silo, after the last iteration.

    >>> truth = np.arange(12) % 3
    >>> near = [np.where(np.arange(12) == i, (truth + 1) % 3, truth) for i in range(3)]
    >>> liar = np.zeros(12, int)
    >>> credibility([*near, liar], [[0, 1, 2]] * 4, 3).weight.round(2)
    array([1., 1., 1., 0.])

    Two that say the same have one vote between them:

    >>> credibility([*near, near[2]], [[0, 1, 2]] * 4, 3).weight.round(2)
    array([1. , 1. , 0.5, 0.5])
    """
    length = check_ballots(votes, tasks, n_classes)
    places = np.linspace(0, length - 1, min(length, SAMPLE)).round().astype(np.intp)
    sample = [np.asarray(row)[places] for row in votes]
    known = [class_codes(task, n_classes, f"tasks[{i}]") for i, task in enumerate(tasks)]
    alike = copies(sample)
    weights, found = 1 / alike, np.zeros(len(votes))
    for _ in range(iterations):
        count = np.concatenate([block for _, block in counts(sample, n_classes, weights)])
        total = totals(known, n_classes, weights)
        found = np.array(
            [
                kappa(row, _others_best(row, codes, weight, count, total), n_classes)
                for row, codes, weight in zip(sample, known, weights, strict=True)
            ]
        )
        weights = _credible(found) / alike
    return Credibility(found, weights)


def copies(votes: Sequence[Votes]) -> NDArray[np.int64]:
    """How many silos vote as each one does, itself included.

    >>> copies([np.array([0, 1]), np.array([0, 0]), np.array([0, 1])])
    array([2, 1, 2])
    """
    block = np.stack(votes)
    return np.array([int(np.sum(np.mean(block == row, axis=1) > COPY)) for row in block])


def _credible(kappas: NDArray[np.float64]) -> NDArray[np.float64]:
    """min(1, 2 · max(0, κ_i) / max_j κ_j); all the same if nobody agrees with anybody."""
    positive = np.maximum(kappas, 0.0)
    most = positive.max(initial=0.0)
    return np.minimum(2 * positive / most, 1.0) if most > 0 else np.ones(len(kappas))


def _others_best(
    own: Votes,
    task: NDArray[np.intp],
    weight: float,
    count: NDArray[np.float64],
    total: NDArray[np.float64],
) -> Votes:
    """b_i: the class that leads among the others, where it is one of the task; −1 elsewhere."""
    rest = total.copy()
    rest[task] -= weight
    # What is left of a sum after its only part was taken away may be a rounding error, and is nobody.
    inverse = np.divide(1.0, rest, out=np.zeros(len(rest)), where=rest > 1e-9 * np.maximum(total, 1e-300))
    share = count * inverse
    voted = np.flatnonzero(own >= 0)
    share[voted, own[voted]] = (count[voted, own[voted]] - weight) * inverse[own[voted]]
    best = share.argmax(axis=1)
    has = np.zeros(len(total), bool)
    has[task] = True
    leads = share[np.arange(len(share)), best] > 1e-12
    return np.where(leads & has[best], best, -1)
