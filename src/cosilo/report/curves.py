"""Accuracy by round or by simulated time, one curve for each method, with its name at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cosilo.report.formatting import seconds, short
from cosilo.report.line_ends import COLOURS, End, beside, write_names
from cosilo.report.mean_over_time import MeanAtTime
from cosilo.report.summary import Baseline, MeanPoint, Row
from cosilo.report.svg import DASHED, SOFT, look, render

#: If there are more methods than colours these come again, with dashes.
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (2, 1.5)))


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    dash: Any = "solid"


@dataclass(frozen=True)
class Curve:
    """What is drawn of a method by round."""

    name: str
    look: Look
    marks: Sequence[MeanPoint]


@dataclass(frozen=True)
class TimeCurve:
    """What is drawn of a method by simulated time."""

    name: str
    look: Look
    marks: Sequence[MeanAtTime]


def colours(rows: Sequence[Row]) -> dict[str, Look]:
    """How each method is drawn: the same everywhere; local training is grey, as the dashed lines are."""
    drawn = [row.name for row in rows if not row.alone]
    looks = {}
    for place, name in enumerate(drawn):
        again, at = divmod(place, len(COLOURS))
        looks[name] = Look(COLOURS[at], _DASHES[again % len(_DASHES)])
    return {row.name: looks.get(row.name, Look(SOFT)) for row in rows}


def by_round(name: str, curves: Sequence[Curve], baselines: Sequence[Baseline] = ()) -> str:
    """Accuracy by round: means as lines, ± one standard deviation as bands, local training dashed."""
    ends = _ends(curves, baselines)
    last = max(mark.rounds for one in curves for mark in one.marks)
    first = min(mark.rounds for one in curves for mark in one.marks)
    with look():
        figure, axes = _start(ends, baselines)
        for one in curves:
            _draw(axes, one, last)
        axes.set_xlim(first - 0.02 * (last - first), last)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel("rounds")
        return _finish(figure, axes, name, ends, "Accuracy by round")


def by_time(name: str, curves: Sequence[TimeCurve], baselines: Sequence[Baseline] = ()) -> str:
    """Accuracy by simulated time: that of the last models that were there at the time."""
    ends = _ends(curves, baselines)
    last = max(mark.seconds for one in curves for mark in one.marks)
    with look():
        figure, axes = _start(ends, baselines)
        for one in curves:
            _draw_steps(axes, one, last)
        axes.set_xlim(0, last)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter("{x:,.4g}")
        axes.set_xlabel("simulated seconds")
        took = ", ".join(f"{one.name} {seconds(one.marks[-1].seconds)}" for one in curves)
        return _finish(figure, axes, name, ends, f"Accuracy by simulated time ({took})")


def _ends(curves: Sequence[Curve] | Sequence[TimeCurve], baselines: Sequence[Baseline]) -> list[End]:
    ends = [End(one.name, 100 * one.marks[-1].accuracy.mean, one.look.colour) for one in curves]
    return ends + [End(_local(one, baselines), 100 * one.accuracy.mean, SOFT) for one in baselines]


def _start(ends: Sequence[End], baselines: Sequence[Baseline]) -> tuple[Figure, Axes]:
    figure, axes = beside(ends)
    for base in baselines:
        axes.axhline(100 * base.accuracy.mean, color=SOFT, linewidth=1.5, linestyle=DASHED)
    return figure, axes


def _finish(figure: Figure, axes: Axes, name: str, ends: Sequence[End], what: str) -> str:
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0), min(high, 101))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.grid(axis="y")
    axes.set_ylabel("accuracy, %")
    write_names(axes, ends)
    told = ", ".join(f"{end.name} {end.height:.1f}%" for end in ends)
    return render(figure, name, f"{what}; at the end: {told}")


def _local(one: Baseline, baselines: Sequence[Baseline]) -> str:
    if len(baselines) == 1:
        return "local"
    more = f" +{len(one.methods) - 1}" if len(one.methods) > 1 else ""
    return f"local ({short(one.methods[0], 12)}{more})"


def _draw(axes: Axes, curve: Curve, last: int) -> None:
    tone, dash = curve.look.colour, curve.look.dash
    # What comes after the last round has no round of its own: it stands above or below that round.
    inside = [mark for i, mark in enumerate(curve.marks) if i == 0 or mark.rounds > curve.marks[i - 1].rounds]
    after = [mark for mark in curve.marks if mark not in inside]
    x = np.array([mark.rounds for mark in inside])
    y = np.array([100 * mark.accuracy.mean for mark in inside])
    spread = np.array([100 * (mark.accuracy.std or 0) for mark in inside])
    if len(inside) > 1:
        axes.fill_between(x, y - spread, y + spread, color=tone, alpha=0.14, linewidth=0)
        axes.plot(x, y, color=tone, linewidth=2, linestyle=dash)
    end = curve.marks[-1]
    height = 100 * end.accuracy.mean
    if after:
        steps = [y[-1], *[100 * mark.accuracy.mean for mark in after]]
        axes.plot([x[-1]] * len(steps), steps, color=tone, linewidth=1.2, linestyle=":", clip_on=False)
    if end.accuracy.std is not None and (after or len(inside) == 1):
        bar = 100 * end.accuracy.std
        axes.plot([end.rounds] * 2, [height - bar, height + bar], color=tone, linewidth=1.2, clip_on=False)
    _end(axes, tone, end.rounds, height, last)


def _draw_steps(axes: Axes, curve: TimeCurve, last: float) -> None:
    tone = curve.look.colour
    x = np.array([mark.seconds for mark in curve.marks])
    y = np.array([100 * mark.accuracy.mean for mark in curve.marks])
    spread = np.array([100 * (mark.accuracy.std or 0) for mark in curve.marks])
    axes.fill_between(x, y - spread, y + spread, color=tone, alpha=0.14, linewidth=0, step="post")
    axes.step(x, y, where="post", color=tone, linewidth=2, linestyle=curve.look.dash)
    axes.plot(x[:1], y[:1], color=tone, marker="|", markersize=9, markeredgewidth=2)  # nothing before
    _end(axes, tone, x[-1], y[-1], last)


def _end(axes: Axes, tone: str, x: float, y: float, last: float) -> None:
    """A dot where a curve ends, and its last value carried on to the names."""
    if x < last:
        axes.plot([x, last], [y, y], color=tone, linewidth=1, linestyle=":")
    axes.plot([x], [y], color=tone, marker="o", markersize=5.5, clip_on=False, zorder=4)
