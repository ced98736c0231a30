"""The update message: tallies as fields, made once for silos that are told the same, and read with care."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting import ROWS, Tallies
from cosilo.errors import BadMessage, Refused
from cosilo.methods.cofed.elections import Outcome
from cosilo.protocol.forms import Array, Blocks, Count, Expected, Number, Text, named_blocks
from cosilo.protocol.message import Message
from cosilo.protocol.stage import Stage
from cosilo.silo.silo import Silo


class StageName:
    """The name of a stage."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Say that a text names no stage."""
        if problem := Text().problem(value):
            return problem
        try:
            Stage.parse(str(value))
        except BadMessage as error:
            return str(error)
        return None


_WHOLE = ("uint16", "uint32")
#: The forms of the fields, for the parameters of a step.
When = Annotated[str, StageName()]
Counts = Annotated[Mapping[str, NDArray[Any]], Blocks(Array(_WHOLE, ndim=2, longest=ROWS))]
Total = Annotated[NDArray[Any], Array(_WHOLE, longest=ROWS)]
Counted = Annotated[NDArray[Any], Array(("uint8",), most=1, longest=ROWS)]
Other = Annotated[NDArray[Any], Array(("float32",), most=1)]
Own = Annotated[int, Count(least=0, most=2**32 - 1)]
Unit = Annotated[float, Number(least=1e-9)]
Agreement = Annotated[float, Number(-1, 1)]

#: The most bytes of messages that are kept for silos with the same task.
KEPT = 2**26


class UpdateMessages:
    """The update messages of a round; silos with the same task and the same weight share one object."""

    def __init__(self, outcome: Outcome, more: Message) -> None:
        self._outcome, self._more = outcome, more
        #: What silos with a task are told, apart from their own weight.
        self._by_task: dict[tuple[int, ...], Message] = {}
        self._made: dict[tuple[tuple[int, ...], int], Message] = {}

    def for_silo(self, task: list[int], voter: int | None) -> Message:
        """Return the message for a silo with these classes.

        `voter` is its place among the ballots; None: it did not vote.
        """
        key, own = tuple(task), self._outcome.own_weight(voter)
        if (key, own) not in self._made:
            self._made[key, own] = {**self._told(key), "own": own, **self._more}
        return self._made[key, own]

    def _told(self, task: tuple[int, ...]) -> Message:
        if task not in self._by_task:
            tallies = self._outcome.tallies(list(task))
            size = len(tallies) * len(task) * tallies.total.itemsize
            if size * (len(self._by_task) + 1) > KEPT:
                self._by_task.clear()
                self._made.clear()
            self._by_task[task] = write_tallies(tallies)
        return self._by_task[task]


def write_tallies(tallies: Tallies) -> dict[str, Any]:
    """Return the fields of an update message, apart from the silo's own weight."""
    fields: dict[str, Any] = {
        "counts": named_blocks(tallies.counts),
        "total": tallies.total,
        "counted": tallies.counted.astype(np.uint8),
        "unit": float(tallies.unit),
    }
    if tallies.other is not None:
        fields["other"] = tallies.other
    return fields


def longest_update(silo: Silo) -> int:
    """Return the most bytes that tallies for a silo may have: four for a count, four for a best share."""
    pool = 0 if silo.pool is None else len(silo.pool)
    heads = 2**16 + 300 * (pool // ROWS + 1)
    return heads + pool * 4 * (len(silo.task) + 1)


def read_tallies(
    silo: Silo,
    rule: str,
    counts: Mapping[str, NDArray[Any]],
    total: NDArray[Any],
    counted: NDArray[Any],
    own: int,
    unit: float,
    other: NDArray[Any] | None,
) -> Tallies:
    """Return the tallies that were sent to a silo; raise if they are not those of any election it is in.

    That each field has its form was checked before (`cosilo.protocol.incoming`).
    """
    pool, classes = len(silo.need_pool()), len(silo.task)
    blocks = [block for _, block in sorted(counts.items())]
    problem = _shape_problem(rule, pool, classes, blocks, total, counted, other)
    if problem is None:
        problem = _sum_problem(blocks, total, counted, own)
    if problem is not None:
        raise Refused(f"silo {silo.name!r}: its tallies: {problem}")
    return Tallies(blocks, total, counted > 0, other, own, unit)


def _shape_problem(
    rule: str,
    pool: int,
    classes: int,
    blocks: list[NDArray[Any]],
    total: NDArray[Any],
    counted: NDArray[Any],
    other: NDArray[Any] | None,
) -> str | None:
    """Return which field is of another pool or task, in words; None: none."""
    rows = sum(map(len, blocks))
    if rows != pool or blocks[0].shape[1] != classes:
        return f"'counts' has {rows} rows of {blocks[0].shape[1]} classes; expected {pool} of {classes}"
    for name, array in (("total", total), ("counted", counted)):
        if len(array) != classes:
            return f"{name!r} has {len(array)} numbers; expected {classes}, one per class of its task"
    if rule == "paper":
        return None if other is None else "got 'other'; expected none, by the paper's rule"
    if other is None or len(other) != pool:
        size = "none" if other is None else str(len(other))
        return f"'other' has {size} numbers; expected {pool}, one per pool instance"
    return None


def _sum_problem(
    blocks: list[NDArray[Any]], total: NDArray[Any], counted: NDArray[Any], own: int
) -> str | None:
    """Return which numbers contradict each other, in words; None: none."""
    if own > total.min():
        return f"'own' is {own}; expected at most {total.min()}, the least 'total' of its classes"
    start = 0
    for block in blocks:
        wrong = block > total
        wrong |= (counted == 0) & (block != 0) & (block != total)
        if wrong.any():
            row, column = map(int, np.argwhere(wrong)[0])
            most = "0 to" if counted[column] else "0 or"
            return (
                f"'counts' is {block[row, column]} for instance {start + row} and class {column}; "
                f"expected {most} {total[column]}, its 'total'"
            )
        start += len(block)
    return None
