"""How soon an accuracy is reached: rounds, and simulated seconds (Table 1 of Tempo)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cosilo.report.averages import Average, average
from cosilo.report.summary import MeanPoint, Numbers, Point, Row, Summary
from cosilo.simulated_time.institution_time import time_to


@dataclass(frozen=True)
class TimeToAccuracy:
    """When one method reached the accuracy, over the seeds on which it did."""

    rounds: Average | None
    seconds: Average | None
    #: How many of its runs reached it.
    runs: int


@dataclass(frozen=True)
class Goal:
    """The accuracy that methods are timed to."""

    accuracy: float
    #: Whether it is that of the global model, which all methods have; else it is the mean over the silos.
    joint: bool
    #: Whether the recipe names it; else it is the highest that every run reaches.
    given: bool
    #: How soon each method reached it.
    by_method: dict[str, TimeToAccuracy]
    #: By method, the accuracy after every round, over the seeds.
    curves: dict[str, tuple[MeanPoint, ...]]

    def of(self, method: str) -> TimeToAccuracy:
        """When a method reached it; of one without rounds nothing is known."""
        return self.by_method.get(method, TimeToAccuracy(None, None, 0))

    @property
    def rounds(self) -> list[int]:
        """All rounds after which a method was judged."""
        return sorted({mark.rounds for marks in self.curves.values() for mark in marks})

    def at(self, method: str, round: int) -> Average | None:
        """The accuracy of a method after a round; what comes after the last one has replaced it."""
        there = [mark.accuracy for mark in self.curves[method] if mark.rounds == round]
        return there[-1] if there else None


def time_to_accuracy(summary: Summary) -> Goal | None:
    """How soon each method with rounds reached `summary.reach`, or the highest accuracy that every run did.

    The latter is in steps of half a point. None if no method has several rounds.
    """
    rows = [row for row in summary.rows if any(run.curve for run in row.runs)]
    if not any(len({point.rounds for point in run.curve}) > 1 for row in rows for run in row.runs):
        return None
    joint = all(run.joint_curve for row in rows for run in row.runs)
    wanted = summary.reach
    if wanted is None:
        best = min(max(point.accuracy for point in _curve(run, joint)) for row in rows for run in row.runs)
        wanted = math.floor(200 * best + 1e-9) / 200
    found = {row.name: _reached(row, wanted, joint) for row in rows}
    curves = {row.name: row.joint_curve if joint else row.curve for row in rows}
    return Goal(wanted, joint, summary.reach is not None, found, curves)


def _curve(run: Numbers, joint: bool) -> Sequence[Point]:
    return run.joint_curve if joint else run.curve


def _reached(row: Row, wanted: float, joint: bool) -> TimeToAccuracy:
    rounds = [rounds_to(wanted, joint, run) for run in row.runs]
    seconds = [seconds_to(wanted, joint, run) for run in row.runs]
    return TimeToAccuracy(average(rounds), average(seconds), sum(one is not None for one in rounds))


def rounds_to(wanted: float, joint: bool, run: Numbers) -> float | None:
    """After how many rounds one run had an accuracy; `joint`: of the global model."""
    return time_to(wanted, [(point.rounds, point.accuracy) for point in _curve(run, joint)])


def seconds_to(wanted: float, joint: bool, run: Numbers) -> float | None:
    """The same in simulated seconds."""
    return time_to(wanted, run.joint_time_curve if joint else run.time_curve)
