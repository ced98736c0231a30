"""The figures of a comparison: accuracy by round, one curve for each method, with its name at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from cosilo.report.figures import TALL
from cosilo.report.summary import Baseline, Mark, Row
from cosilo.report.svg import SOFT, WIDTH, look, new, render
from cosilo.report.words import short

#: Colours that people with any colour vision can tell apart (Okabe and Ito, with wine for the yellow that is
#: hard to see on white); if there are more methods they come again, with dashes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f2933", "#882255")
#: The same for type, which needs more contrast than a line.
_DARKER = {"#009e73": "#007a59", "#cc79a7": "#a84f80", "#e69f00": "#946600", "#56b4e9": "#1f7fb5"}
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (2, 1.5)))
#: Units between two lines of names, around the axes, and that a character of a name takes.
_LINE, _LEFT, _BOTTOM, _TOP, _GAP, _CHARACTER = 15, 46, 46, 10, 24, 6.2
#: A longer name is cut.
_LONGEST = 20


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    dash: Any = "solid"


@dataclass(frozen=True)
class Curve:
    """What is drawn of a method."""

    name: str
    look: Look
    marks: Sequence[Mark]


@dataclass(frozen=True)
class _End:
    """A name at the right edge, and the height of the line that it belongs to."""

    name: str
    height: float
    colour: str


def colours(rows: Sequence[Row]) -> dict[str, Look]:
    """How each method is drawn: the same everywhere; local training is grey, as the dashed lines are."""
    drawn = [row.name for row in rows if not row.alone]
    looks = {}
    for place, name in enumerate(drawn):
        again, at = divmod(place, len(_COLOURS))
        looks[name] = Look(_COLOURS[at], _DASHES[again % len(_DASHES)])
    return {row.name: looks.get(row.name, Look(SOFT)) for row in rows}


def by_round(name: str, curves: Sequence[Curve], baselines: Sequence[Baseline] = ()) -> str:
    """Accuracy by round: means as lines, ± one standard deviation as bands, local training dashed."""
    ends = [_End(one.name, 100 * one.marks[-1].accuracy.mean, one.look.colour) for one in curves]
    ends += [_End(_local(one, baselines), 100 * one.accuracy.mean, SOFT) for one in baselines]
    margin = _GAP + _CHARACTER * max(len(short(end.name, _LONGEST)) for end in ends)
    last = max(mark.rounds for one in curves for mark in one.marks)
    first = min(mark.rounds for one in curves for mark in one.marks)
    with look():
        height = max(TALL, _LINE * len(ends) + _BOTTOM + _TOP)
        figure = new(height)
        box = (_LEFT, _BOTTOM, WIDTH - _LEFT - margin, height - _BOTTOM - _TOP)
        axes = figure.add_axes((box[0] / WIDTH, box[1] / height, box[2] / WIDTH, box[3] / height))
        for base in baselines:
            axes.axhline(100 * base.accuracy.mean, color=SOFT, linewidth=1.5, linestyle=(0, (4, 3)))
        for one in curves:
            _draw(axes, one, last)
        axes.set_xlim(first - 0.02 * (last - first), last)
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 0), min(high, 101))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.grid(axis="y")
        axes.set_xlabel("rounds")
        axes.set_ylabel("accuracy, %")
        _name(axes, ends, box[3])
        told = ", ".join(f"{end.name} {end.height:.1f}%" for end in ends)
        return render(figure, name, f"Accuracy by round; at the end: {told}")


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
    if end.rounds < last:
        axes.plot([end.rounds, last], [height, height], color=tone, linewidth=1, linestyle=":")
    axes.plot([end.rounds], [height], color=tone, marker="o", markersize=5.5, clip_on=False, zorder=4)


def _name(axes: Axes, ends: Sequence[_End], units: float) -> None:
    """Write the names at the right edge, apart from each other, with a thin line to where they belong."""
    low, high = axes.get_ylim()
    ordered = sorted(ends, key=lambda end: end.height)
    heights = np.array([units * (end.height - low) / (high - low) for end in ordered])
    for end, height, place in zip(ordered, heights, apart(heights, _LINE, 0, units), strict=True):
        line = [height / units, place / units]
        inside = axes.transAxes
        axes.plot([1.015, 1.055], line, color=end.colour, linewidth=1, clip_on=False, transform=inside)
        text = short(end.name, _LONGEST)
        axes.text(
            1.07,
            line[1],
            text,
            color=_DARKER.get(end.colour, end.colour),
            va="center",
            size=11.5,
            transform=inside,
        )


def apart(heights: NDArray[np.float64], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Heights in rising order, moved as little as it takes to be `gap` apart and between `low` and `high`.

    >>> apart(np.array([10.0, 12.0, 40.0]), 10, 0, 50).tolist()
    [6.0, 16.0, 40.0]
    >>> apart(np.array([48.0, 50.0]), 10, 0, 50).tolist()
    [40.0, 50.0]
    """
    steps = gap * np.arange(len(heights))
    moved = isotonic_regression(heights - steps, y_min=low, y_max=high - steps[-1])
    found: NDArray[np.float64] = moved + steps
    return found
