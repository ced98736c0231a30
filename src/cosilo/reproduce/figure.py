"""The figure of a reproduction, as a file of its own: ours with their spread, and the paper's."""

import io
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from cosilo.config.reproduces import Curve, Number, Reproduces, Size
from cosilo.report.averages import average
from cosilo.report.formatting import size as size_of
from cosilo.report.mean_over_time import mean_over_time
from cosilo.report.svg import BLUE, INK, LINE, ORANGE, SOFT, look
from cosilo.reproduce.paper_verdict import number_values, spread_of
from cosilo.reproduce.record import ReproductionRecord
from cosilo.reproduce.sentences import BYTES, PERCENT, unit

#: By line of a curve: its points, for each seed.
CurvePoints: TypeAlias = Mapping[str, Sequence[Sequence[tuple[float, float]]]]

_COLOURS = (BLUE, ORANGE, "#3d8b57", "#7b4fa3")
#: Characters in a line above a panel, and in a line beside the dots.
_TITLE, _LABEL = 40, 50


def draw(about: Reproduces, sizes: Mapping[Size, ReproductionRecord], earlier: Collection[Size] = ()) -> str:
    """SVG text; the same values give the same bytes. Bars are the ± of the tables.

    `earlier`: the sizes whose records are of an earlier recipe.
    """
    names = {size: f"ours, {size} size{' (earlier recipe)' if size in earlier else ''}" for size in sizes}
    with look():
        run = [number for number in about.number if any(record.has(number.of) for record in sizes.values())]
        if any(number.x is not None for number in run):
            record = list(sizes.values())[-1]  # the largest that was run
            there = [number for number in run if number.x is not None and record.has(number.of)]
            picture = _lines(about, there, record, names[record.size])
        else:
            picture = _dots(run, sizes, names)
        return _svg(picture, about.what)


def drawn(curves: Sequence[Curve], points: CurvePoints) -> list[Curve]:
    """The curves that there are points of."""
    keys = {key for key, rows in points.items() if any(rows)}
    return [curve for curve in curves if any(curve.key(path) in keys for path in curve.of.values())]


def draw_curves(curves: Sequence[Curve], points: CurvePoints) -> str:
    """One panel for each curve that there are points of: the means over the seeds, with their spread."""
    there = drawn(curves, points)
    with look():
        columns = min(2, len(there))
        rows = -(-len(there) // columns)
        picture = Figure(figsize=(360 * columns / 72, (250 * rows + 30) / 72), layout="constrained")
        panels = picture.subplots(rows, columns, squeeze=False).ravel()
        for axes in panels[len(there) :]:
            axes.set_visible(False)
        for axes, curve in zip(panels, there, strict=False):
            for place, (label, path) in enumerate(curve.of.items()):
                marks = mean_over_time([list(row) for row in points.get(curve.key(path), []) if row])
                if not marks:
                    continue
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
            axes.set_title(textwrap.fill(curve.text, _TITLE))
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


def _lines(about: Reproduces, numbers: Sequence[Number], record: ReproductionRecord, name: str) -> Figure:
    """One panel for each unit."""
    panels = _by_unit(numbers)
    picture = Figure(figsize=(520 / 72, (50 + 250 * len(panels)) / 72), layout="constrained")
    rows = picture.subplots(len(panels), squeeze=False)[:, 0]
    for axes, mine in zip(rows, panels.values(), strict=True):
        at: set[float] = set()
        for place, label in enumerate(dict.fromkeys(number.line or "" for number in mine)):
            line = [number for number in mine if (number.line or "") == label]
            there = [
                (at_x, *found)
                for number in line
                if (at_x := number.x_in(record.size)) is not None
                and (found := _mean_and_spread(number, record)) is not None
            ]
            x, y, spread = zip(*there, strict=True)
            colour = _COLOURS[place % len(_COLOURS)]
            axes.errorbar(x, y, spread, color=colour, marker="o", markersize=5, capsize=3, label=label)
            at |= set(x)
        if max(at) > 100:
            axes.set_xscale("log")
            axes.minorticks_off()
        axes.set_xticks(sorted(at), [f"{x:,g}" for x in sorted(at)])
        axes.set_ylabel(mine[0].text.partition(",")[0])
        axes.grid(axis="y")
        if any(number.line for number in mine):
            axes.legend(frameon=False)
    rows[-1].set_xlabel(about.axis or "")
    rows[0].set_title(name)
    return picture


def _by_unit(numbers: Sequence[Number]) -> dict[str, list[Number]]:
    panels: dict[str, list[Number]] = {}
    for number in numbers:
        panels.setdefault(unit(number), []).append(number)
    return panels


def _mean_and_spread(number: Number, record: ReproductionRecord) -> tuple[float, float] | None:
    found = average(number_values(number, record.values))
    return None if found is None else (found.mean, spread_of(number, record.values, record.silos))


def _dots(
    numbers: Sequence[Number], sizes: Mapping[Size, ReproductionRecord], names: Mapping[Size, str]
) -> Figure:
    """One panel for each unit."""
    panels = _by_unit(numbers)
    heights = [len(mine) + 1 for mine in panels.values()]
    row = 34 if any(len(number.text) > _LABEL for number in numbers) else 26
    picture = Figure(figsize=(640 / 72, (30 + row * sum(heights)) / 72), layout="constrained")
    rows = picture.subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axes, (what, mine) in zip(rows, panels.items(), strict=True):
        places = range(len(mine))[::-1]
        for shift, (size, record) in enumerate(sizes.items()):
            there = [
                (y - 0.16 * shift, *found)
                for y, number in zip(places, mine, strict=True)
                if (found := _mean_and_spread(number, record)) is not None
            ]
            axes.errorbar(
                [mean for _, mean, _ in there],
                [y for y, _, _ in there],
                xerr=[spread for _, _, spread in there],
                fmt="o",
                color=_COLOURS[shift],
                capsize=3,
                label=names[size],
            )
        paper = [
            (y, number.paper) for y, number in zip(places, mine, strict=True) if number.paper is not None
        ]
        if paper:
            axes.scatter(
                [x for _, x in paper], [y for y, _ in paper], marker="|", s=160, color=INK, label="paper"
            )
        axes.set_yticks(list(places), [textwrap.fill(number.text, _LABEL) for number in mine])
        axes.set_ylim(-0.6, len(mine) - 0.4)
        axes.set_xlabel("" if what in (PERCENT, BYTES) else what)
        axes.grid(axis="x", color=LINE)
        if what == PERCENT:
            axes.xaxis.set_major_locator(MaxNLocator(5))  # with more of them "85.0 %" runs into the next one
            axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        elif what == BYTES:  # methods differ by orders of magnitude
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: size_of(value)))
    marks = {
        label: mark for axes in rows for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    picture.legend(marks.values(), marks, frameon=False, labelcolor=SOFT, loc="outside lower center", ncols=3)
    return picture
