"""Who learnt from whom: how similar silos are to each other, which models travelled, what that cost."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Similarity:
    """How much each silo (a row) learns from each other one (a column), after the last round."""

    #: `similarity`: ratios that add up to 1; `affinity`: weights that add up over the rounds.
    kind: str
    silos: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    @property
    def any(self) -> bool:
        """Whether anybody learns from anybody."""
        return any(value > 0 for row in self.values for value in row)


@dataclass(frozen=True)
class Travel:
    """One round: whose models travelled, and what silos made of them."""

    round: int
    uploaded: tuple[str, ...]
    #: How many of these models a silo labels with.
    labellers: int
    #: The share of labels that are not those of the round before.
    moved: float
    #: Of the time budget, up to and with this round.
    seconds: float
    #: What downsizing a model cost, by silo.
    errors: Mapping[str, float]

    @property
    def mean_error(self) -> float | None:
        """Over the models that were downsized."""
        return statistics.fmean(self.errors.values()) if self.errors else None


@dataclass(frozen=True)
class Exchange:
    """All of it; a method that sends everything to everyone has nothing to tell here."""

    similarity: Similarity | None
    rounds: tuple[Travel, ...]
    #: T: the seconds that all rounds together may take.
    budget: float | None

    @property
    def downsized(self) -> bool:
        """Whether models were downsized before they were sent on."""
        return any(one.errors for one in self.rounds)


def exchange(result: Mapping[str, Any]) -> Exchange:
    """Read `similarity` or `affinity`, `exchange` and `budget`."""
    budget = result.get("budget")
    return Exchange(
        _similarity(result),
        tuple(_travel(one) for one in result.get("exchange", [])),
        None if budget is None else float(budget),
    )


def _similarity(result: Mapping[str, Any]) -> Similarity | None:
    for kind in ("similarity", "affinity"):
        found = result.get(kind)
        if found is not None:
            values = tuple(_row(row) for row in found["values"])
            if any(len(row) != len(found["silos"]) for row in (values, *values)):
                raise ValueError(f"{kind} wants one row and one column for each silo")
            return Similarity(kind, tuple(found["silos"]), values)
    return None


def _row(row: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in row)


def _travel(found: Mapping[str, Any]) -> Travel:
    return Travel(
        round=int(found["round"]),
        uploaded=tuple(found["uploaded"]),
        labellers=int(found["labellers"]),
        moved=float(found["labels_moved"]),
        seconds=float(found["seconds"]),
        errors={name: float(error) for name, error in found.get("reconstruction_error", {}).items()},
    )
