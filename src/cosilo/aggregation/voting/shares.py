"""Shares: how much of those who know a class gave an instance that class, and which class leads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes, side_by_side, vote_dtype
from cosilo.aggregation.voting.election import check_weights, totals

#: Cells (instances × classes) that are looked at together: this bounds the memory beside the result.
CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Winners:
    """For every instance of the pool the class that leads over all classes, and its share."""

    #: −1 where nobody who counts voted.
    label: Votes
    share: NDArray[np.float32]
    #: That of the class that comes second.
    second: NDArray[np.float32]

    def for_task(self, task: Sequence[int]) -> tuple[NDArray[np.int64], Votes, NDArray[np.float32]]:
        """The instances that a class of this task has won: positions, class codes, shares.

        Where a class leads that the silo does not have, it is told nothing: the best of its own classes would
        be wrong there.

        >>> won = winners([np.array([0, 1, 2]), np.array([0, 2, 2])], [[0, 1, 2], [0, 2]], 3)
        >>> [array.tolist() for array in won.for_task([0, 2])]
        [[0, 2], [0, 2], [1.0, 1.0]]
        """
        index = np.flatnonzero(np.isin(self.label, np.asarray(task)))
        return index, self.label[index], self.share[index]


def counts(
    votes: Sequence[Votes], n_classes: int, weights: NDArray[np.float64]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """COUNT[x, c] of Algorithm 1, block by block: where the block begins, and instances × classes."""
    length, width = len(votes[0]), n_classes + 1  # the first column is for −1
    step = max(1, min(length, CELLS // max(width, len(votes))))
    store = np.empty(len(votes) * step, dtype=np.result_type(*votes))
    rows = np.arange(step, dtype=np.intp) * width + 1
    for start in range(0, length, step):
        block = side_by_side(votes, start, store, n_classes)
        n = block.shape[1]
        found = np.zeros(n * width)
        for row, weight in zip(block, weights, strict=True):
            found[rows[:n] + row] += weight  # one cell an instance, so that none is added to twice
        yield start, found.reshape(n, width)[:, 1:]


def vote_shares(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    weights: Sequence[float] | None = None,
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """COUNT[x, c] / TOTAL[c], block by block; a class that nobody has, or only silos of weight 0, has 0.

    >>> [(start, share)] = vote_shares([np.array([0, -1]), np.array([1, 1])], [[0, 1], [1]], 2)
    >>> share
    array([[1. , 0.5],
           [0. , 0.5]])
    """
    check_ballots(votes, tasks, n_classes)
    credibility = check_weights(weights, len(votes))
    known = [class_codes(task, n_classes, f"tasks[{i}]") for i, task in enumerate(tasks)]
    total = totals(known, n_classes, credibility)
    divisor = np.where(total > 0, total, np.inf)
    for start, count in counts(votes, n_classes, credibility):
        yield start, count / divisor


def winners(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    weights: Sequence[float] | None = None,
) -> Winners:
    """The class with the largest share of every instance; of equal ones the first.

    >>> votes = [np.array([0, 1, -1]), np.array([1, 1, -1]), np.array([1, 2, -1])]
    >>> won = winners(votes, [[0, 1], [1, 2], [1, 2]], 3)
    >>> won.label, won.share
    (array([ 0,  1, -1], dtype=int8), array([1.       , 0.6666667, 0.       ], dtype=float32))
    """
    label = np.empty(len(votes[0]) if votes else 0, vote_dtype(n_classes))
    share, second = np.empty(len(label), np.float32), np.zeros(len(label), np.float32)
    for start, found in vote_shares(votes, tasks, n_classes, weights):
        place, rows = slice(start, start + len(found)), np.arange(len(found))
        best = found.argmax(axis=1)
        largest = found[rows, best]
        label[place] = np.where(largest > 0, best, -1)
        share[place] = largest
        found[rows, best] = 0.0
        second[place] = found.max(axis=1)
    return Winners(label, share, second)


def share_bytes(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    weights: Sequence[float] | None = None,
    least_holders: int = 3,
) -> NDArray[np.uint8]:
    """What silos may be told of every instance: the share of each class, one byte each, 255 for all.

    A class with fewer holders than `least_holders` is 0 throughout: its shares would show somebody's vote.

    >>> votes = [np.array([0, 1]), np.array([0, 0]), np.array([1, 0])]
    >>> share_bytes(votes, [[0, 1]] * 3, 2).tolist()
    [[170, 85], [170, 85]]
    >>> share_bytes(votes, [[0, 1], [0, 1], [0]], 2).tolist()
    [[170, 0], [170, 0]]
    """
    holders = np.zeros(n_classes, np.int64)
    for i, theirs in enumerate(tasks):
        holders[class_codes(theirs, n_classes, f"tasks[{i}]")] += 1
    told = np.empty((len(votes[0]) if votes else 0, n_classes), np.uint8)
    for start, found in vote_shares(votes, tasks, n_classes, weights):
        told[start : start + len(found)] = np.rint(255 * found * (holders >= least_holders))
    return told
