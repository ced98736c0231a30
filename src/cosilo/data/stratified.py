"""Parts of a set in which every class has its share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def hold_out(y: NDArray[np.int64], fraction: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices to hold out and to keep, in the same share of every class; one of each class is kept.

    >>> held, kept = hold_out(np.array([0, 0, 0, 0, 1]), 0.5, seed=1)
    >>> len(held), 4 in kept
    (2, True)
    """
    rng = np.random.default_rng(seed)
    held: list[NDArray[np.int64]] = []
    for code in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == code))
        held.append(members[: min(round(fraction * len(members)), len(members) - 1)])
    out = np.sort(np.concatenate(held))
    return out, np.setdiff1d(np.arange(len(y)), out)


def stratified(labels: NDArray[Any], size: int, seed: int) -> NDArray[np.int64]:
    """Indices of `size` instances, drawn without replacement, every class in proportion.

    They are all indices if there are no more instances. What proportions leave over after whole numbers goes
    to the classes with the largest remainders.

    >>> labels = np.array(["a"] * 6 + ["b"] * 3)
    >>> labels[stratified(labels, 3, seed=1)].tolist()
    ['a', 'a', 'b']
    """
    if size >= len(labels):
        return np.arange(len(labels))
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    quotas = size * counts  # in units of 1/len(labels): whole numbers have no rounding to disagree about
    taken, remainders = quotas // len(labels), quotas % len(labels)
    taken[np.argsort(-remainders, kind="stable")[: size - taken.sum()]] += 1
    rng = np.random.default_rng(seed)
    parts = [
        rng.choice(np.flatnonzero(codes == code), count, replace=False) for code, count in enumerate(taken)
    ]
    return np.sort(np.concatenate(parts))
