"""Counting: for each instance the classes that have enough votes. The inner loop of the election."""

import math

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes

# Votes (or cells) of one `bincount`; its int64 codes and counts then stay in the second-level cache.
TILE = 1 << 16


def lowest_passing_count(total: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Per class the smallest float COUNT with COUNT / TOTAL > alpha (eq. 18); infinity where TOTAL is 0.

    A correctly rounded division never falls when COUNT rises, so comparing COUNT with this number is the same
    as dividing and comparing. Comparing it with α · TOTAL is not: 29 > 0.29 · 100 in floats, but
    29 / 100 > 0.29 is false. Found by bisection over the bit patterns, which are in the order of the floats.
    """
    divisor = np.where(total > 0, total, 1.0)
    fails = np.zeros(len(total), dtype=np.int64)  # 0.0: nobody voted
    passes = np.full(len(total), math.inf).view(np.int64)
    with np.errstate(over="ignore"):
        while (passes - fails > 1).any():
            middle = fails + (passes - fails) // 2
            good = middle.view(np.float64) / divisor > alpha
            passes = np.where(good, middle, passes)
            fails = np.where(good, fails, middle)
    return np.where(total > 0, passes.view(np.float64), math.inf)


class CountTable:
    """COUNT as a table: every vote adds to one cell. Lines 7 to 13 of Algorithm 1, for any weights."""

    def __init__(
        self,
        enough: NDArray[np.float64] | NDArray[np.intp],
        weights: NDArray[np.float64] | None,
        n_silos: int,
    ) -> None:
        self.enough = enough
        self.n_classes = len(enough)
        self._width = self.n_classes + 1  # the first column is for −1
        self._step = max(1, TILE // max(n_silos, self._width))
        self._rows = np.arange(self._step, dtype=np.intp) * self._width + 1
        self._codes = np.empty(n_silos * self._step, dtype=np.intp)
        self._weights = weights
        self._credit = None if weights is None else np.repeat(weights, self._step)

    def passing(self, block: Votes) -> NDArray[np.intp]:
        """x · n_classes + c of every pair that passes, ascending; the block is silos × instances."""
        found = []
        for start in range(0, block.shape[1], self._step):
            part = block[:, start : start + self._step]
            n = part.shape[1]
            codes = self._codes[: part.size].reshape(part.shape)
            codes[...] = part
            codes += self._rows[:n]
            # Silo by silo, so that the weights in a cell are added in the order of the silos.
            credit = self._credit
            if self._weights is not None and n < self._step:
                credit = np.repeat(self._weights, n)
            count = np.bincount(codes.reshape(-1), credit, minlength=n * self._width)
            passed = count.reshape(n, self._width)[:, 1:] >= self.enough
            found.append(np.flatnonzero(passed) + start * self.n_classes)
        return np.concatenate(found)


class Digits:
    """The same for int8 votes of equal weight, faster: comparisons of many votes at once instead of cells.

    To count the silos with "vote == c" takes two passes that handle 32 votes an instruction, but one such
    count per class is too much. So a class is written with two digits of base √n_classes. No class has more
    votes than all classes with its high digit together. Where one high digit has enough votes for any of its
    classes, these are counted one by one; where two or more have, the instance goes to the table; where none
    has, no class can pass.
    """

    def __init__(self, table: CountTable, n_silos: int, step: int) -> None:
        self._table = table
        self._base = base = math.isqrt(table.n_classes - 1) + 1
        # 255 is out of reach of fewer than 255 silos; it also fills up the last high digit.
        needed = np.full(-(-table.n_classes // base) * base, 255, dtype=np.uint8)
        needed[: table.n_classes] = np.minimum(table.enough, 255)
        by_high = needed.reshape(-1, base)
        self._by_low = by_high.T.copy()
        self._lowest = by_high.min(axis=1, keepdims=True)
        self._mask = np.empty(n_silos * step, dtype=bool)

    def _silos(self, compare: np.ufunc, block: Votes, codes: range) -> NDArray[np.uint8]:
        """Codes × instances: the number of silos whose vote compares with the code."""
        mask = self._mask[: block.size].reshape(block.shape)
        count = np.empty((len(codes), block.shape[1]), dtype=np.uint8)
        for code, row in zip(codes, count, strict=True):
            compare(block, code, out=mask)
            np.add.reduce(mask.view(np.uint8), axis=0, dtype=np.uint8, out=row)
        return count

    def passing(self, block: Votes) -> NDArray[np.intp] | None:
        """As `CountTable.passing`, using up the block; None, and the block as it was, if it does not pay."""
        base, n_classes, length = self._base, self._table.n_classes, block.shape[1]
        below = self._silos(np.less, block, range(0, base * len(self._lowest) + 1, base))
        candidate = (below[1:] - below[:-1] >= self._lowest).view(np.uint8)
        candidates = np.add.reduce(candidate, axis=0, dtype=np.uint8)
        contested = np.flatnonzero(candidates > 1)
        if 2 * len(contested) > length:
            return None
        found = []
        if len(contested):
            pairs = self._table.passing(block[:, contested])
            x = pairs // n_classes
            found.append(pairs + (contested[x] - x) * n_classes)
        # The candidate's high digit; what it is where there is not exactly one does not matter.
        candidate *= np.arange(len(candidate), dtype=np.uint8)[:, np.newaxis]
        high = candidate.max(axis=0)
        # At most 127 is taken from at least −1: this stays inside int8, and −1 stays below the low digits.
        np.subtract(block, (high * np.uint8(base)).view(np.int8), out=block)
        passed = self._silos(np.equal, block, range(base)) >= self._by_low.take(high, axis=1)
        passed &= candidates == 1
        pairs = np.flatnonzero(passed)  # low · length + x
        low = pairs // length
        x = pairs - low * length
        found.append(x * n_classes + high[x] * np.intp(base) + low)
        return np.sort(np.concatenate(found))
