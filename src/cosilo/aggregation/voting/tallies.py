"""Tallies: what a silo is told of an election, and the labels that it derives from them.

The coordinator sends counts, not labels. A silo applies the agreed rule itself, and finds out for
itself which labels depend on its own vote: no field of a message can say that for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes
from cosilo.aggregation.voting.shares import TIE, leading

#: The most pool instances in one block of counts.
ROWS = 2**16
#: A label that leads by this many votes counts fully.
CLEAR = 2
#: Units of the heaviest vote, where votes weigh differently.
UNITS = 1000


def whole_weights(weights: Sequence[float]) -> tuple[NDArray[np.int64], float]:
    """Return the weights in whole units, and how many units a weight of 1 has.

    Equal weights are one unit each, so that tallies are numbers of votes. Of different ones the
    largest is 1,000 units; a weight above 0 is at least one.

    >>> whole_weights([1.0, 1.0, 0.0])
    (array([1, 1, 0]), 1.0)
    >>> whole_weights([0.5, 0.25, 0.0001])
    (array([1000,  500,    1]), 2000.0)
    """
    given = np.asarray(weights, dtype=np.float64)
    positive = given > 0
    if not positive.any():
        return np.zeros(len(given), np.int64), 1.0
    largest = float(given.max())
    if (given[positive] == largest).all():
        return positive.astype(np.int64), 1 / largest
    units = np.maximum(np.rint(UNITS * given / largest), positive)
    return units.astype(np.int64), UNITS / largest


@dataclass(frozen=True)
class Rule:
    """The rule of an election, as a silo applies it: the paper's threshold, or the class that leads."""

    name: Literal["shares", "winner", "paper"]
    alpha: float


@dataclass(frozen=True, eq=False)
class Tallies:
    """The tallies of an election for one task: whole units of weight, for the whole pool.

    The memory of a pool of n instances and a task of k classes is 2·n·k bytes of counts (4·n·k if a
    total is 65,536 or more), and 4·n bytes of `other`: 2.2 MB for 50,000 instances and 20 classes.
    `other` is float32 and not uint16 because ties and the weights of labels depend on its last bits.
    """

    #: Blocks of the pool, in order: instances × classes of the task.
    counts: Sequence[NDArray[Any]]
    #: By class of the task, the weight of all silos that have it.
    total: NDArray[Any]
    #: By class of the task, whether three silos or more have it. The counts of any other class are 0,
    #: but for the instances that it was elected for, where they are `total`.
    counted: NDArray[np.bool_]
    #: By instance, the largest share among classes that the task does not have; the paper's rule
    #: needs none.
    other: NDArray[np.float32] | None = None
    #: The weight of the silo's own vote; 0 if it has none.
    own: int = 0
    #: How many units a vote of weight 1 has.
    unit: float = 1.0

    def __len__(self) -> int:
        """The number of pool instances."""
        return sum(map(len, self.counts))

    @property
    def part(self) -> NDArray[np.float64]:
        """By class of the task, the part of its share that one vote of the silo is."""
        return self.own / np.where(self.total > 0, self.total, np.inf)


@dataclass(frozen=True, eq=False)
class TaughtLabels:
    """The labels that a silo trains on, in the order of the pool."""

    #: Positions in the pool, and the class of each in the silo's own codes.
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    #: Whether a label cannot be what the silo's own vote decided: it is another one, or would be the
    #: same without that vote.
    stands: NDArray[np.bool_]
    #: What a label counts for, in a byte; the paper's labels all count the same.
    weight: NDArray[np.uint8] | None
    #: By label and class of the task, the share of the class in a byte, 255 for all of it; only the
    #: rule "shares" has them.
    shares: NDArray[np.uint8] | None


def labels_from(tallies: Tallies, rule: Rule, votes: Votes) -> TaughtLabels:
    """Return the labels that tallies come to by a rule, for a silo with these votes.

    Four silos vote on two instances, among them one that says class 0 of both:

    >>> counts = np.array([[4, 0], [2, 1]], np.uint16)
    >>> other = np.array([0.0, 0.0], np.float32)
    >>> told = Tallies([counts], np.array([4, 4]), np.array([True, True]), other, own=1)
    >>> found = labels_from(told, Rule("winner", 0.0), np.array([0, 0]))
    >>> found.label, found.weight, found.stands
    (array([0, 0]), array([255, 128], dtype=uint8), array([ True, False]))

    By the paper's rule, two classes that pass contest an instance, and it has no label:

    >>> labels_from(told, Rule("paper", 0.2), np.array([0, 0])).index
    array([0])
    """
    blocks, start = [], 0
    for counts in tallies.counts:
        blocks.append(_labels_of_block(tallies, rule, votes, start, counts))
        start += len(counts)
    return TaughtLabels(
        np.concatenate([block.index for block in blocks]),
        np.concatenate([block.label for block in blocks]),
        np.concatenate([block.stands for block in blocks]),
        _joined([block.weight for block in blocks]),
        _joined([block.shares for block in blocks]),
    )


def _joined(parts: Sequence[NDArray[np.uint8] | None]) -> NDArray[np.uint8] | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there else None


def _labels_of_block(
    tallies: Tallies, rule: Rule, votes: Votes, start: int, counts: NDArray[Any]
) -> TaughtLabels:
    """Return the labels of the block that begins at the position `start`."""
    divisor = np.where(tallies.total > 0, tallies.total, np.inf)
    found = _labelled_rows(tallies, rule, start, counts / divisor)
    mine = np.asarray(votes)[found.index] == found.label
    shares = weight = None
    if rule.name == "paper":
        stands = _stand_by_threshold(tallies, rule, found, mine)
    else:
        stands = _stand_by_shares(rule, found, mine, tallies.part)
        weight = _label_weights(tallies, found)
    # Whatever the tallies are, they hide no label that contradicts the own vote: that one decided none.
    stands |= ~mine
    if rule.name == "shares":
        shares = np.rint(255 * found.share * tallies.counted).astype(np.uint8)
    return TaughtLabels(found.index, found.label, stands, weight, shares)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The pool instances that have a label."""

    index: NDArray[np.int64]
    label: NDArray[np.int64]
    #: The shares of all classes of the task there.
    share: NDArray[np.float64]
    #: The largest share, and the largest of all other classes.
    largest: NDArray[np.float32]
    second: NDArray[np.float32]


def _labelled_rows(tallies: Tallies, rule: Rule, start: int, share: NDArray[np.float64]) -> _Rows:
    """Return the rows of a block that have a label; the block begins at the position `start`."""
    if rule.name == "paper":
        passes = share > rule.alpha
        label, first = passes.argmax(axis=1), share.max(axis=1)
        second = np.zeros(len(share), np.float32)
        rows = np.flatnonzero(passes.sum(axis=1) == 1)
    else:
        assert tallies.other is not None
        label, first, second = leading(share, tallies.other[start : start + len(share)], rule.alpha)
        rows = np.flatnonzero(label >= 0)
    index, largest = start + rows, first[rows].astype(np.float32)
    return _Rows(index, label[rows].astype(np.int64), share[rows], largest, second[rows])


def _stand_by_threshold(
    tallies: Tallies, rule: Rule, found: _Rows, mine: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether a class passes without one vote for it."""
    total = tallies.total.astype(np.float64)[found.label]
    # A share times its total is a whole number again, but for rounding.
    count = np.rint(found.share[np.arange(len(mine)), found.label] * total)
    count, rest = count - np.where(mine, tallies.own, 0), total - tallies.own
    return np.divide(count, rest, out=np.zeros(len(mine)), where=rest > 0) > rule.alpha


def _stand_by_shares(
    rule: Rule, found: _Rows, mine: NDArray[np.bool_], part: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return whether a class leads without one vote, on the safe side: the second may gain the most."""
    rest = np.maximum(1 - part, 1e-9)
    left = (found.largest - np.where(mine, part[found.label], 0)) / rest[found.label]
    return np.asarray((left > found.second / rest.min() + TIE) & (left > rule.alpha))


def _label_weights(tallies: Tallies, found: _Rows) -> NDArray[np.uint8]:
    """Return by how many votes of those who have its class a label leads, of two, in a byte.

    A label that leads by one vote would not be there without it. Votes count here as they weigh. All
    labels of a class that fewer than three silos have count half: more would show somebody's vote.
    """
    ahead = (found.largest - found.second) * tallies.total.astype(np.float64)[found.label]
    counts = np.where(tallies.counted[found.label], np.minimum(ahead / (CLEAR * tallies.unit), 1), 0.5)
    return np.asarray(np.maximum(np.rint(255 * counts), 1), np.uint8)
