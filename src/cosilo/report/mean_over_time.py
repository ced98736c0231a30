"""Curves in simulated time, over seeds whose rounds do not end at the same moments."""

from collections.abc import Sequence
from dataclasses import dataclass

from cosilo.report.averages import Average, average


@dataclass(frozen=True)
class MeanAtTime:
    """A point of a curve in simulated time: the mean over seeds."""

    seconds: float
    accuracy: Average


def mean_over_time(curves: Sequence[Sequence[tuple[float, float]]]) -> tuple[MeanAtTime, ...]:
    """The mean over seeds of the accuracy that each has reached at a time, from when all have reached one.

    >>> [(mark.seconds, mark.accuracy.mean) for mark in mean_over_time([[(1, 0.5), (3, 0.75)], [(2, 0.25)]])]
    [(2, 0.375), (3, 0.5)]
    """
    if not curves:
        return ()
    begin = max(curve[0][0] for curve in curves)
    marks = []
    for now in sorted({at for curve in curves for at, _ in curve if at >= begin}):
        accuracy = average([value for at, value in curve if at <= now][-1] for curve in curves)
        assert accuracy is not None
        marks.append(MeanAtTime(now, accuracy))
    return tuple(marks)
