"""Credibility: how far each silo's votes go with those of the others, from the votes alone.

For silo i, b_i(x) is the class of its task that the *others* give the largest weighted share, taken only
where that class also leads over all classes: elsewhere the instance is none of the silo's business. Its
agreement is Cohen's κ of its votes against b_i, which takes away what two silos would agree on by chance: a
silo that says one class all the time has κ = 0. Weights begin equal and follow the agreement, so that those
who agree with nobody soon have no say in what the others are held against.

    κ_i = (p − e) / (1 − e),   w_i = max(0, κ_i) / max_j κ_j
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes
from cosilo.aggregation.voting.election import totals
from cosilo.aggregation.voting.shares import counts

#: Instances that silos are compared on; a larger pool is sampled evenly. κ is then known to about 0.01.
SAMPLE = 10_000
ITERATIONS = 3


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


def agreement_with_others(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    iterations: int = ITERATIONS,
) -> NDArray[np.float64]:
    """κ of every silo, after the last iteration.

    >>> truth = np.arange(12) % 3
    >>> liar = np.zeros(12, int)
    >>> agreement_with_others([truth, truth, truth, liar], [[0, 1, 2]] * 4, 3).round(2)
    array([1., 1., 1., 0.])
    """
    length = check_ballots(votes, tasks, n_classes)
    places = np.linspace(0, length - 1, min(length, SAMPLE)).round().astype(np.intp)
    sample = [np.asarray(row)[places] for row in votes]
    known = [class_codes(task, n_classes, f"tasks[{i}]") for i, task in enumerate(tasks)]
    weights, found = np.ones(len(votes)), np.zeros(len(votes))
    for _ in range(iterations):
        count = np.concatenate([block for _, block in counts(sample, n_classes, weights**2)])
        total = totals(known, n_classes, weights**2)
        found = np.array(
            [
                kappa(row, _others_best(row, codes, weight**2, count, total), n_classes)
                for row, codes, weight in zip(sample, known, weights, strict=True)
            ]
        )
        weights = credible_weights(found)
    return found


def credible_weights(kappas: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a vote weighs: max(0, κ_i) / max_j κ_j; all the same if nobody agrees with anybody.

    >>> credible_weights(np.array([0.5, -0.2, 0.25]))
    array([1. , 0. , 0.5])
    """
    positive = np.maximum(kappas, 0.0)
    most = positive.max(initial=0.0)
    return positive / most if most > 0 else np.ones(len(kappas))


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
