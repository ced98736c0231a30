"""Bars and histograms of one run: facts in, SVG text out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cosilo.report.formatting import seconds, short
from cosilo.report.results import Results
from cosilo.report.svg import BLUE, DASHED, INK, LINE, ORANGE, SOFT, TALL, look, new, render
from cosilo.report.timing import Timing

#: Up to this many bars have a name each.
MOST_BARS = 25

_OFFSET: dict[str, Any] = {"textcoords": "offset points"}
_STEPS = [1, 2, 5, 10]


def relative(results: Results) -> str:
    """How many silos have which relative accuracy (Fig. 2 of the CoFED paper)."""
    histogram, spread = results.histogram, results.spread
    assert histogram is not None
    assert spread is not None
    edges, counts = np.array(histogram.edges), np.array(histogram.counts)
    with look():
        figure = new(TALL)
        axes = figure.add_subplot()
        colours = [BLUE if edge >= 1 else ORANGE for edge in edges[:-1]]
        axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=colours, edgecolor="white")
        width = edges[1] - edges[0]
        low, high = min(edges[0], 1) - width, max(edges[-1], 1) + width
        axes.set_xlim(low, high)
        axes.set_ylim(0, counts.max() * 1.25 + 0.1)
        axes.axvline(1, color=INK, linewidth=1.5)
        axes.axvline(spread.mean, color=INK, linewidth=1.5, linestyle=DASHED)
        # The label of the mean goes to the side with more room.
        left = spread.mean > (low + high) / 2
        axes.annotate(
            f"mean {spread.mean:.3f}",
            (spread.mean, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-6 if left else 6, -4),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
        )
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True, steps=_STEPS))
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=_STEPS))
        axes.grid(axis="y")
        axes.set_xlabel("relative accuracy (federated ÷ local)")
        axes.set_ylabel("silos")
        return render(
            figure,
            "relative",
            f"Histogram of the relative accuracy of {spread.silos} silos, mean {spread.mean:.3f}",
        )


def named_bars(names: Sequence[str], values: Sequence[float], form: str) -> Figure:
    """A bar for each name, with its value written as `form` says; without a form, no value."""
    figure = new(min(max(64 + (26 if len(names) <= 12 else 20) * len(names), TALL), 90 + 40 * len(names)))
    axes = figure.add_subplot()
    axes.barh(range(len(names)), values, 0.7, color=BLUE)
    _horizontal(axes, names, 1.2 * max(values, default=0))
    for row, value in enumerate(values if form else ()):
        axes.annotate(form.format(value), (value, row), (7, 0), va="center", color=SOFT, **_OFFSET)
    return figure


def _horizontal(axes: Axes, names: Sequence[str], top: float) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, top or 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=_STEPS))
    axes.xaxis.set_major_formatter("{x:,.4g}")
    axes.grid(axis="x")
    axes.spines["left"].set_color(LINE)
    axes.spines["bottom"].set_visible(False)


def timeline(timing: Timing) -> str:
    """Asks on the clock; if there are many, seconds by step."""
    alt = f"Timeline of {len(timing.asks)} asks over {seconds(timing.wall)}"
    with look():
        if len(timing.asks) > MOST_BARS:
            steps = timing.by_step()
            names = [f"{short(step, 14)} × {count}" for step, (count, _) in steps.items()]
            figure = named_bars(names, [total for _, total in steps.values()], "{:.3g} s")
            figure.axes[0].set_xlabel("seconds in all asks for the step")
            return render(figure, "timeline", alt)
        figure = new(64 + 26 * max(3, len(timing.asks)))
        axes = figure.add_subplot()
        _horizontal(axes, [f"{ask.number} {short(ask.step, 14)}" for ask in timing.asks], 1.03 * timing.wall)
        for row, ask in enumerate(timing.asks):
            # A bar of no visible width is still an ask: it gets the width of a line.
            axes.barh(row, ask.seconds, 0.7, left=ask.start, color=BLUE, edgecolor=BLUE, linewidth=1.5)
            end = ask.start + ask.seconds
            if end < 0.8 * timing.wall:
                where, gap, side, colour = end, 6, "left", SOFT
            elif ask.start > 0.25 * timing.wall:
                where, gap, side, colour = ask.start, -6, "right", SOFT
            else:
                where, gap, side, colour = end, -6, "right", "white"
            style: dict[str, Any] = {"ha": side, "va": "center", "color": colour, **_OFFSET}
            axes.annotate(seconds(ask.seconds), (where, row), (gap, 0), **style)
        axes.axvline(timing.wall, color=INK, linewidth=1.2, linestyle=DASHED)
        axes.set_xlabel("seconds at work since the start")
        return render(figure, "timeline", alt)
