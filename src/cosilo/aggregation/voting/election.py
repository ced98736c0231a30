"""The election: Algorithm 1 of CoFED, and each silo's share of what was elected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes, side_by_side, vote_dtype
from cosilo.aggregation.voting.counting import CountTable, Digits, lowest_passing_count
from cosilo.errors import ConfigError

# Votes that are copied side by side and counted at once. With one scratch array of the same size this is
# 2 MB whatever the number of silos, and long enough that the cost of a numpy call disappears.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Elected:
    """What the vote elected: one entry per pair (x, c) with x ∈ P_c, sorted by x, then c."""

    index: NDArray[np.signedinteger[Any]]
    """Positions in the pool; a position stands here once per class it was elected to."""
    label: Votes
    """The class code of each entry, in the smallest type that holds the vocabulary."""
    n_classes: int

    def __len__(self) -> int:
        """The number of pairs (x, c)."""
        return len(self.index)

    def for_task(self, task: Sequence[int]) -> tuple[NDArray[np.signedinteger[Any]], Votes]:
        """R_i of a silo with these classes: pool positions, ascending and each once, and their class codes.

        Eq. 19 without the positions that stand in two or more P_c of this task's own classes.
        """
        has = np.zeros(self.n_classes, dtype=bool)
        has[class_codes(task, self.n_classes, "task")] = True
        mine = has[self.label]
        index, label = self.index[mine], self.label[mine]
        # The index ascends, so a position with two of the task's classes is next to itself.
        again = index[1:] == index[:-1]
        alone = np.ones(len(index), dtype=bool)
        alone[1:] &= ~again
        alone[:-1] &= ~again
        return index[alone], label[alone]

    def per_class(self) -> NDArray[np.int64]:
        """|P_c| of every class of the vocabulary."""
        return np.bincount(self.label, minlength=self.n_classes).astype(np.int64, copy=False)


def elect(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    alpha: float,
    weights: Sequence[float] | None = None,
) -> Elected:
    """Algorithm 1: all P_c, from one array of votes and one task per silo.

    `votes[i][x]` is silo i's class code for instance x, or −1; the arrays may be memory-mapped, and of
    different signed types. `tasks[i]` are the codes of silo i's classes. `weights[i]` ≥ 0 is its credibility
    (section 4.6), 1 for every silo by default; a class that only silos of weight 0 have elects nothing.

    The result is that of the algorithm as written, to the last bit: Python floats, sums in the order of the
    silos, a division, a comparison. Codes outside the vocabulary raise; that a vote lies in its silo's own
    task is checked when it arrives.
    """
    length = check_ballots(votes, tasks, n_classes)
    if not 0 <= alpha <= 1:
        raise ConfigError(f"alpha is {alpha}; wants a number from 0 to 1")
    credibility = check_weights(weights, len(votes))
    known = [class_codes(task, n_classes, f"tasks[{i}]") for i, task in enumerate(tasks)]
    enough = lowest_passing_count(totals(known, n_classes, credibility), alpha)

    equal = bool((credibility == credibility[0]).all())
    if equal:
        # With equal weights COUNT takes N + 1 values, the running sums of the weight, so that whole votes can
        # be counted instead. A threshold of N + 1 is out of reach.
        sums = np.add.accumulate(np.concatenate([[0.0], credibility]))
        table = CountTable(np.searchsorted(sums, enough, side="left"), None, len(votes))
    else:
        table = CountTable(enough, credibility, len(votes))

    codes_type = vote_dtype(n_classes)
    step = max(1, min(length, BLOCK // len(votes)))
    fits = equal and codes_type.itemsize == 1 and len(votes) < 255
    digits = Digits(table, len(votes), step) if fits else None
    store = np.empty(len(votes) * step, dtype=np.result_type(*votes))
    index_type = np.dtype(np.int32 if length <= np.iinfo(np.int32).max else np.int64)
    # A bytearray grows in place: collecting parts and joining them would need the result twice.
    index, label = bytearray(), bytearray()
    for start in range(0, length, step):
        block = side_by_side(votes, start, store, n_classes).astype(codes_type, copy=False)
        pairs = digits.passing(block) if digits else None
        if pairs is None:
            digits = None  # the next block would not be different
            pairs = table.passing(block)
        x = pairs // n_classes  # vectorised, which `divmod` is not
        pairs -= x * n_classes
        x += start
        index += x.astype(index_type).data
        label += pairs.astype(codes_type).data
    return Elected(np.frombuffer(index, index_type), np.frombuffer(label, codes_type), n_classes)


def totals(
    known: Sequence[NDArray[np.intp]], n_classes: int, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """TOTAL of every class: lines 4 and 5 of Algorithm 1, summed in the order of the silos."""
    total = np.zeros(n_classes)
    for codes, weight in zip(known, weights, strict=True):
        total[codes] += weight
    return total


def check_weights(weights: Sequence[float] | None, n_silos: int) -> NDArray[np.float64]:
    """The weights of section 4.6 as an array, or what is wrong with them."""
    if weights is None:
        return np.ones(n_silos)
    if len(weights) != n_silos:
        raise ConfigError(f"{len(weights)} weights for {n_silos} silos; wants one per silo")
    array = np.asarray(weights, dtype=np.float64)
    for i, weight in enumerate(array):
        if not 0 <= weight < math.inf:
            raise ConfigError(f"weights[{i}] is {weight}; wants a finite number of at least 0")
    with np.errstate(over="ignore"):
        total = np.add.accumulate(array)[-1]
    if not 0 < total < math.inf:
        raise ConfigError(f"the weights add up to {total}; wants a finite sum above 0")
    return array
