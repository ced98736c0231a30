"""Ballots: what every silo voted, checked and laid side by side."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import BadMessage, ConfigError

Votes: TypeAlias = NDArray[np.signedinteger[Any]]
"""One silo's class codes, one per instance of the pool; −1 where it abstained."""


def vote_dtype(n_classes: int) -> np.dtype[np.signedinteger[Any]]:
    """The smallest type that holds the codes 0 … n_classes − 1 and −1.

    >>> vote_dtype(128), vote_dtype(129)
    (dtype('int8'), dtype('int16'))
    """
    return np.result_type(np.int8, np.min_scalar_type(-max(n_classes, 1)))


def check_ballots(votes: Sequence[Votes], tasks: Sequence[Sequence[int]], n_classes: int) -> int:
    """The number of instances, after the checks that do not look at the votes themselves."""
    if not votes:
        raise BadMessage("no silo voted; wants the votes of at least one")
    if len(tasks) != len(votes):
        raise ConfigError(f"{len(tasks)} tasks for {len(votes)} silos; wants one per silo")
    if n_classes < 1:
        raise ConfigError(f"n_classes is {n_classes}; wants at least one class")
    length = len(votes[0]) if getattr(votes[0], "ndim", 0) else 0
    for i, row in enumerate(votes):
        _check_shape(row, length, f"votes[{i}]")
    return length


def _check_shape(votes: Votes, length: int, where: str) -> None:
    if not isinstance(votes, np.ndarray) or votes.ndim != 1 or votes.dtype.kind != "i":
        found = (
            f"{votes.dtype} of shape {votes.shape}" if isinstance(votes, np.ndarray) else type(votes).__name__
        )
        raise BadMessage(f"{where}: got {found}; wants a one-dimensional array of a signed integer type")
    if len(votes) != length:
        raise BadMessage(f"{where}: {len(votes)} votes; wants {length}, one per instance of the pool")


def class_codes(task: Sequence[int], n_classes: int, where: str) -> NDArray[np.intp]:
    """The distinct class codes of a task."""
    for code in task:
        if not 0 <= code < n_classes:
            raise ConfigError(f"{where}: class code {code}; wants 0 to {n_classes - 1}")
    return np.array(sorted(set(task)), dtype=np.intp)


def side_by_side(votes: Sequence[Votes], start: int, store: Votes, n_classes: int) -> Votes:
    """The next instances of every silo, silos × instances, in `store`; all codes in the vocabulary, or −1."""
    stop = start + store.size // len(votes)
    part = [row[start:stop] for row in votes]
    flat = np.concatenate(part, out=store[: len(votes) * len(part[0])])
    block = flat.reshape(len(votes), -1)
    if block.min() < -1 or block.max() >= n_classes:
        silo, bad = map(int, np.argwhere((block < -1) | (block >= n_classes))[0])
        raise _out_of_range(f"votes[{silo}]", start + bad, int(block[silo, bad]), n_classes)
    return block


def _out_of_range(where: str, instance: int, code: int, n_classes: int) -> BadMessage:
    return BadMessage(
        f"{where}: instance {instance} got class code {code}; wants 0 to {n_classes - 1}, or -1 to abstain"
    )
