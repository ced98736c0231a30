"""Names at the right ends of lines, apart from each other: what a legend would say, where it is needed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from cosilo.report.formatting import short
from cosilo.report.svg import TALL, WIDTH, new

#: Colours that people with any colour vision can tell apart (Okabe and Ito, with wine for the yellow that is
#: hard to see on white).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f2933", "#882255")
#: The same for type, which needs more contrast than a line.
_DARKER = {"#009e73": "#007a59", "#cc79a7": "#a84f80", "#e69f00": "#946600", "#56b4e9": "#1f7fb5"}
#: Units between two lines of names, around the axes, and that a character of a name takes.
_LINE, _LEFT, _BOTTOM, _TOP, _GAP, _CHARACTER = 15, 46, 46, 10, 24, 6.2
#: A longer name is cut.
_LONGEST = 20


@dataclass(frozen=True)
class End:
    """A name at the right edge, and the height of the line that it belongs to, in the units of the axis."""

    name: str
    height: float
    colour: str


def beside(ends: Sequence[End]) -> tuple[Figure, Axes]:
    """A figure that has room for these names on the right of its axes, one below the other."""
    margin = _GAP + _CHARACTER * max(len(short(end.name, _LONGEST)) for end in ends)
    height = max(TALL, _LINE * len(ends) + _BOTTOM + _TOP)
    figure = new(height)
    box = (_LEFT, _BOTTOM, WIDTH - _LEFT - margin, height - _BOTTOM - _TOP)
    axes = figure.add_axes((box[0] / WIDTH, box[1] / height, box[2] / WIDTH, box[3] / height))
    return figure, axes


def write_names(axes: Axes, ends: Sequence[End]) -> None:
    """Write the names beside axes in which everything is drawn, with a thin line to where they belong."""
    inside = axes.transAxes
    axes.set_ylim(axes.get_ylim())  # from here on they stay
    units = axes.get_position().height * axes.figure.get_figheight() * 72  # type: ignore[union-attr]
    to_axes = axes.transData + inside.inverted()
    middle = sum(axes.get_xlim()) / 2
    ordered = sorted(ends, key=lambda end: end.height)
    heights = np.array([units * to_axes.transform((middle, end.height))[1] for end in ordered])
    for end, height, place in zip(ordered, heights, apart(heights, _LINE, 0, units), strict=True):
        line = [height / units, place / units]
        axes.plot([1.015, 1.055], line, color=end.colour, linewidth=1, clip_on=False, transform=inside)
        colour = _DARKER.get(end.colour, end.colour)
        text = short(end.name, _LONGEST)
        axes.text(1.07, line[1], text, color=colour, va="center", size=11.5, transform=inside)


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
