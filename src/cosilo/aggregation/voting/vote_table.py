"""The vote table: the count of every class for every pool instance, and what a silo is told of it.

What a silo is told depends on its task: only the weight of its own vote is its own.

Of a class with fewer than three holders a silo is told no counts: they would show somebody's vote.

- If the silo has such a class, it is told where the class was elected for it, and nothing else.
- Where such a class ties with the class that would lead, or leads and is not the silo's, the instance
  has no label: `other` is 1 there, as if all silos that have some other class agreed. (Counts of 0
  would tell a silo that voted there that one of the few holders did too.)
- Where it comes second behind a class of the silo by less than two votes, `other` is its share: the
  label counts less for that, as the silo has to know.
- By the paper's rule, where it contests an instance with one class of the silo that passes, the count
  of that one is the largest that does not pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes
from cosilo.aggregation.voting.counting import lowest_passing_count
from cosilo.aggregation.voting.election import check_weights, totals
from cosilo.aggregation.voting.shares import FEWEST, Winners, counts, leading, winners_of
from cosilo.aggregation.voting.tallies import CLEAR, ROWS, Rule, Tallies, whole_weights

#: Shares (instances × classes) that are computed at once; they stay in the second-level cache.
CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class VoteTable:
    """The counts of all classes of the vocabulary, in whole units of weight."""

    #: Instances × classes, on disk if they are many.
    counts: NDArray[Any]
    #: By class, the weight of all silos that have it, and how many these are.
    total: NDArray[np.float64]
    holders: NDArray[np.int64]
    #: How many units a vote of weight 1 has.
    unit: float

    @classmethod
    def of(
        cls, votes: Sequence[Votes], tasks: Sequence[Sequence[int]], n_classes: int, weights: Sequence[float]
    ) -> "VoteTable":
        """Return the table of these votes.

        >>> table = VoteTable.of([np.array([0, -1]), np.array([1, 1])], [[0, 1], [1]], 2, [1.0, 1.0])
        >>> table.counts.tolist(), table.total
        ([[1, 1], [0, 1]], array([1., 2.]))
        """
        length = check_ballots(votes, tasks, n_classes)
        units, unit = whole_weights(weights)
        credits = check_weights(units.astype(np.float64).tolist(), len(votes))
        known = [class_codes(task, n_classes, f"tasks[{i}]") for i, task in enumerate(tasks)]
        total = totals(known, n_classes, credits)
        kind = np.uint16 if total.max() < 2**16 else np.uint32
        table = mapped.empty((length, n_classes), kind)
        for start, block in counts(votes, n_classes, credits):
            table[start : start + len(block)] = block
        holders = np.bincount(np.concatenate(known), minlength=n_classes).astype(np.int64)
        return cls(table, total, holders, unit)

    def shares(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield COUNT[x, c] / TOTAL[c], block by block; the share of a class without weight is 0."""
        divisor = self._divisor
        for part in self._blocks():
            yield part.start, self.counts[part] / divisor

    def winners(self, alpha: float) -> Winners:
        """Return the class that leads, for every instance of the pool."""
        return winners_of(self.shares(), len(self.counts), len(self.total), alpha)

    def tallies(self, task: Sequence[int], rule: Rule, won: Winners | None = None) -> Tallies:
        """Return what a silo with these classes is told, apart from the weight of its own vote.

        `won` are the winners, which every rule but the paper's needs.
        """
        own = np.asarray(task)
        counted = self.holders[own] >= FEWEST
        told = mapped.empty((len(self.counts), len(own)), self.counts.dtype)
        other = None
        if won is not None:
            other = np.zeros(len(self.counts), np.float32)
        for part in self._blocks():
            if won is None or other is None:
                told[part] = self._by_threshold(part, own, counted, rule.alpha)
            else:
                told[part], other[part] = self._by_shares(part, own, counted, won, rule.alpha)
        blocks = [told[start : start + ROWS] for start in range(0, len(told), ROWS)]
        total = self.total[own].astype(self.counts.dtype)
        return Tallies(blocks, total, counted, other, unit=self.unit)

    def _by_shares(
        self, part: slice, own: NDArray[np.int64], counted: NDArray[np.bool_], won: Winners, alpha: float
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Return the counts and the largest other share of some instances, for the class that leads."""
        there, divisor, rows = self.counts[part], self._divisor, np.arange(part.start, part.stop)
        place = np.full(len(self.total) + 1, -1)  # the last is for −1: no class leads
        place[own] = np.arange(len(own))
        label = place[won.label[part]]
        told = there[:, own]
        told[:, ~counted] = 0
        _mark(told, label, counted, self.total[own])
        others = np.setdiff1d(np.flatnonzero(self.holders >= FEWEST), own)
        other = (there[:, others] / divisor[others]).max(axis=1, initial=0.0).astype(np.float32)

        share = told / divisor[own]
        _, _, second = leading(share, other, alpha)
        led = (label >= 0) & counted[label]
        ahead = (won.share[rows] - won.second[rows]) * self.total[own][label]
        hidden = led & (ahead < CLEAR * self.unit) & (won.second[rows] > second)
        other[hidden] = won.second[rows][hidden]

        said, _, _ = leading(share, other, alpha)
        other[(said >= 0) & (said != label)] = 1.0
        return told, other

    def _by_threshold(
        self, part: slice, own: NDArray[np.int64], counted: NDArray[np.bool_], alpha: float
    ) -> NDArray[Any]:
        """Return the counts of some instances, for the paper's rule."""
        told = self.counts[part][:, own]
        passes = told / self._divisor[own] > alpha
        alone = passes.sum(axis=1) == 1
        told[:, ~counted] = 0
        _mark(told, np.where(alone, passes.argmax(axis=1), -1), counted, self.total[own])
        seen = passes & counted
        contested = ~alone & (seen.sum(axis=1) == 1)
        most = np.ceil(lowest_passing_count(self.total[own], alpha)) - 1
        rows = np.flatnonzero(contested)
        column = seen[rows].argmax(axis=1)
        told[rows, column] = most[column]
        return told

    @property
    def _divisor(self) -> NDArray[np.float64]:
        return np.where(self.total > 0, self.total, np.inf)

    def _blocks(self) -> Iterator[slice]:
        length, n_classes = self.counts.shape
        step = max(1, CELLS // n_classes)
        for start in range(0, length, step):
            yield slice(start, min(start + step, length))


def _mark(
    told: NDArray[Any], label: NDArray[Any], counted: NDArray[np.bool_], total: NDArray[np.float64]
) -> None:
    """Write the total where a class was elected whose counts are not told."""
    rows = np.flatnonzero((label >= 0) & ~counted[label])
    told[rows, label[rows]] = total[label[rows]]
