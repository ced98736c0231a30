"""The figure of a reproduction, as a file of its own: ours with their spread, and the paper's."""

import io
from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from cosilo.config.reproduces import Curve, Number, Reproduces, Size
from cosilo.report.mean_over_time import mean_over_time
from cosilo.report.svg import BLUE, INK, LINE, ORANGE, SOFT, look
from cosilo.reproduce.paper_verdict import Values, judge_number
from cosilo.reproduce.sentences import PERCENT, unit

_COLOURS = (BLUE, ORANGE, "#3d8b57", "#7b4fa3")


def draw(about: Reproduces, sizes: Mapping[Size, Values]) -> str:
    """SVG text; the same values give the same bytes."""
    with look():
        on_lines = [number for number in about.number if number.x is not None]
        if on_lines:
            size, values = list(sizes.items())[-1]  # the largest that was run
            picture = _lines(about, on_lines, values, size)
        else:
            run = [n for n in about.number if any(n.of in values for values in sizes.values())]
            picture = _dots(run, sizes)
        return _svg(picture, about.what)


def draw_curves(
    curves: Sequence[Curve], points: Mapping[str, Sequence[Sequence[tuple[float, float]]]]
) -> str:
    """One panel for each curve that there are points of: the means over the seeds, with their spread."""
    there = [curve for curve in curves if any(curve.key(path) in points for path in curve.of.values())]
    with look():
        columns = min(2, len(there))
        rows = -(-len(there) // columns)
        picture = Figure(figsize=(360 * columns / 72, (250 * rows + 30) / 72), layout="constrained")
        panels = picture.subplots(rows, columns, squeeze=False).ravel()
        for axes in panels[len(there) :]:
            axes.set_visible(False)
        for axes, curve in zip(panels, there, strict=False):
            for place, (label, path) in enumerate(curve.of.items()):
                marks = mean_over_time([list(row) for row in points.get(curve.key(path), [])])
                x, mean = [mark.seconds for mark in marks], [mark.accuracy.mean for mark in marks]
                spread = [mark.accuracy.std or 0.0 for mark in marks]
                colour = _COLOURS[place % len(_COLOURS)]
                if len(marks) == 1:  # what has one round is a line that others may cross
                    axes.axhline(mean[0], color=colour, label=label, linestyle="--")
                    continue
                axes.plot(x, mean, color=colour, label=label)
                low = [y - half for y, half in zip(mean, spread, strict=True)]
                high = [y + half for y, half in zip(mean, spread, strict=True)]
                axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.set_title(curve.text)
            axes.set_xlabel("simulated seconds" if curve.over == "seconds" else "rounds")
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
            axes.grid(axis="y")
            axes.legend(frameon=False)
        return _svg(picture, " ".join(curve.text for curve in there))


def _svg(picture: Figure, salt: str) -> str:
    """The same figure gives the same bytes."""
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        metadata = dict.fromkeys(["Date", "Creator", "Format", "Type"])
        picture.savefig(file, format="svg", metadata=metadata, facecolor="white")
    text = file.getvalue()
    return "\n".join(line.rstrip() for line in text[text.index("<svg") :].splitlines()) + "\n"


def _lines(about: Reproduces, numbers: Sequence[Number], values: Values, size: Size) -> Figure:
    picture = Figure(figsize=(520 / 72, 300 / 72), layout="constrained")
    axes = picture.subplots()
    at: set[float] = set()
    for place, label in enumerate(dict.fromkeys(number.line or "" for number in numbers)):
        mine = [number for number in numbers if (number.line or "") == label]
        found = [(number.x_in(size), judge_number(number, values).average) for number in mine]
        there = [(x, average) for x, average in found if x is not None and average is not None]
        x, y = [x for x, _ in there], [average.mean for _, average in there]
        spread = [average.std or 0.0 for _, average in there]
        colour = _COLOURS[place % len(_COLOURS)]
        axes.errorbar(x, y, spread, color=colour, marker="o", markersize=5, capsize=3, label=label)
        at |= set(x)
    if max(at, default=0.0) > 100:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(sorted(at), [f"{x:,g}" for x in sorted(at)])
    axes.set_xlabel(about.axis or "")
    axes.set_ylabel(numbers[0].text.partition(",")[0])
    axes.grid(axis="y")
    axes.legend(frameon=False)
    return picture


def _dots(numbers: Sequence[Number], sizes: Mapping[Size, Values]) -> Figure:
    """One panel for each unit."""
    panels: dict[str, list[Number]] = {}
    for number in numbers:
        panels.setdefault(unit(number), []).append(number)
    heights = [len(mine) + 1 for mine in panels.values()]
    picture = Figure(figsize=(640 / 72, (30 + 26 * sum(heights)) / 72), layout="constrained")
    rows = picture.subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axes, (what, mine) in zip(rows, panels.items(), strict=True):
        places = range(len(mine))[::-1]
        for shift, (size, values) in enumerate(sizes.items()):
            found = [
                (y - 0.16 * shift, judge_number(n, values).average) for y, n in zip(places, mine, strict=True)
            ]
            there = [(y, average) for y, average in found if average is not None]
            axes.errorbar(
                [average.mean for _, average in there],
                [y for y, _ in there],
                xerr=[average.std or 0.0 for _, average in there],
                fmt="o",
                color=_COLOURS[shift],
                capsize=3,
                label=f"ours, {size} size",
            )
        paper = [
            (y, number.paper) for y, number in zip(places, mine, strict=True) if number.paper is not None
        ]
        axes.scatter(
            [x for _, x in paper], [y for y, _ in paper], marker="|", s=160, color=INK, label="paper"
        )
        axes.set_yticks(list(places), [number.text for number in mine])
        axes.set_ylim(-0.6, len(mine) - 0.4)
        axes.set_xlabel("" if what == PERCENT else what)
        axes.grid(axis="x", color=LINE)
        if what == PERCENT:
            axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    marks, labels = rows[0].get_legend_handles_labels()
    picture.legend(marks, labels, frameon=False, labelcolor=SOFT, loc="outside lower center", ncols=3)
    return picture
