"""Shares: how much of those who know a class gave an instance that class, and which class leads."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes, side_by_side, vote_dtype
from cosilo.aggregation.voting.election import check_weights, totals

#: Votes that are laid side by side at once, and votes or cells (instances × classes) that are counted at
#: once, so few that they stay in the second-level cache. This bounds the memory beside the result.
BLOCK = 1 << 20
TILE = 1 << 15

#: Shares that are nearer to each other are the same, but for rounding.
TIE = 1e-6
#: Silos that have to have a class before its shares are told: those of fewer would show somebody's vote.
FEWEST = 3


@dataclass(frozen=True, eq=False)
class Winners:
    """For every instance of the pool the class that leads over all, its share, and that of the next."""

    #: −1 where no class leads, or the one that does has no more than the share α.
    label: Votes
    share: NDArray[np.float32]
    second: NDArray[np.float32]

    def for_task(self, task: Sequence[int]) -> tuple[NDArray[np.int64], Votes]:
        """The instances that a class of this task has won: positions and class codes.

        Where a class leads that the silo does not have, it is told nothing: the best of its own classes would
        be wrong there.

        >>> won = winners([np.array([0, 1, 2]), np.array([0, 2, 2])], [[0, 1, 2], [0, 2]], 3)
        >>> [array.tolist() for array in won.for_task([0, 2])]
        [[0, 2], [0, 2]]
        """
        index = np.flatnonzero(np.isin(self.label, np.asarray(task)))
        return index, self.label[index]


def counts(
    votes: Sequence[Votes], n_classes: int, weights: NDArray[np.float64]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """COUNT[x, c] of Algorithm 1, block by block: where the block begins, and instances × classes."""
    length, n_silos, width = len(votes[0]), len(votes), n_classes + 1  # the first column is for −1
    step = max(1, min(length, TILE // max(width, n_silos)))
    far = max(step, min(length, BLOCK // n_silos) // step * step)
    store = np.empty(n_silos * far, dtype=np.result_type(*votes))
    rows = np.arange(step, dtype=np.intp) * width + 1
    codes = np.empty((n_silos, step), dtype=np.intp)
    credit = np.repeat(weights, step)
    for begin in range(0, length, far):
        block = side_by_side(votes, begin, store, n_classes)
        for start in range(0, block.shape[1], step):
            part = block[:, start : start + step]
            n = part.shape[1]
            some = codes if n == step else np.empty((n_silos, n), dtype=np.intp)
            np.add(part, rows[:n], out=some)
            given = credit if n == step else np.repeat(weights, n)
            # Silo by silo, so that the weights in a cell are added in the order of the silos.
            found = np.bincount(some.reshape(-1), given, minlength=n * width).astype(np.float64, copy=False)
            yield begin + start, found.reshape(n, width)[:, 1:]


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
        count /= divisor
        yield start, count


def winners(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    weights: Sequence[float] | None = None,
    alpha: float = 0.0,
) -> Winners:
    """The class with the largest share of every instance, if that is more than α and no other has as much.

    >>> votes = [np.array([0, 1, -1]), np.array([1, 1, -1]), np.array([1, 2, -1])]
    >>> won = winners(votes, [[0, 1], [1, 2], [1, 2]], 3)
    >>> won.label, won.share
    (array([ 0,  1, -1], dtype=int8), array([1.       , 0.6666667, 0.       ], dtype=float32))
    """
    blocks = vote_shares(votes, tasks, n_classes, weights)
    return winners_of(blocks, len(votes[0]) if votes else 0, n_classes, alpha)


def winners_of(
    blocks: Iterable[tuple[int, NDArray[np.float64]]], length: int, n_classes: int, alpha: float
) -> Winners:
    """Return the winners of a pool of `length` instances, by blocks of the shares of all classes."""
    label = np.empty(length, vote_dtype(n_classes))
    share, second = np.empty(length, np.float32), np.zeros(length, np.float32)
    for start, found in blocks:
        place = slice(start, start + len(found))
        label[place], share[place], second[place] = leading(found, None, alpha)
    return Winners(label, share, second)


def leading(
    share: NDArray[np.float64], other: NDArray[np.float32] | None, alpha: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32]]:
    """Return by instance the class that leads, its share, and the largest of all other shares.

    `share` is instances × classes, and `other` the largest share of classes that have no column. The
    class is −1 where none leads, or the one that does has no more than the share α. The largest of
    all other shares takes part as float32, so that a silo that is told it decides as the coordinator.

    >>> leading(np.array([[0.5, 0.25], [0.5, 0.5], [0.0, 0.5]]), np.float32([0, 0, 0.75]), 0.0)[0]
    array([ 0, -1, -1])
    """
    rows = np.arange(len(share))
    best = share.argmax(axis=1)
    largest, rest = share[rows, best], share.copy()
    rest[rows, best] = 0.0
    second = rest.max(axis=1).astype(np.float32)
    if other is not None:
        second = np.maximum(second, other)
    leads = (largest > second.astype(np.float64) + TIE) & (largest > alpha)
    return np.where(leads, best, -1), largest, second
