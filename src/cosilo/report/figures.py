"""The figures: facts in, SVG text out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cosilo.report.results import Results, Round
from cosilo.report.svg import BLUE, INK, LINE, ORANGE, SOFT, WIDTH, look, new, render
from cosilo.report.timing import Timing
from cosilo.report.words import seconds, short

#: Up to so many silos a heat map has a number in every cell; up to so many it names them.
NUMBERED, NAMED = 12, 24
#: Up to so many bars have a name each.
MOST_BARS = 25
#: The height of most figures: next to a heat map, they should not look lost.
TALL = 350

# It starts at a light blue, so that white is free to mean "nothing to show".
_SCALE = LinearSegmentedColormap.from_list("blues", ["#e3eef7", "#8dbbdd", "#3d86bf", "#0d4a7c"])
_BLUES = _SCALE.with_extremes(bad=(1, 1, 1, 0))


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
        axes.axvline(spread.mean, color=INK, linewidth=1.5, linestyle=(0, (4, 3)))
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


def stages(results: Results) -> str:
    """Accuracy after every stage: each silo a thin line, the mean a thick one."""
    with look():
        figure = new(TALL)
        axes = figure.add_subplot()
        place = {stage: number for number, stage in enumerate(results.stages)}
        for silo in results.silos:
            x = [place[stage] for stage in silo.scores]
            y = [100 * score.accuracy for score in silo.scores.values()]
            axes.plot(x, y, color=BLUE, alpha=0.3, linewidth=1.2, solid_capstyle="round")
        means = [100 * mean for mean in results.means.values()]
        if means:
            axes.plot(means, color=INK, linewidth=2.5, marker="o", markersize=5)
            plate = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
            last = (len(means) - 1, means[-1])
            below = means[-1] > sum(axes.get_ylim()) / 2
            where = (0, -20 if below else 9)
            axes.annotate(f"mean {means[-1]:.1f}%", last, where, ha="right", bbox=plate, **_OFFSET)
        step = max(1, -(-len(place) // 6))
        shown = [*range(0, len(place) - 1, step), len(place) - 1]
        if len(shown) > 2 and shown[-1] - shown[-2] < step:
            del shown[-2]
        axes.set_xticks(shown, [results.stages[number] for number in shown])
        axes.margins(x=0.08)
        axes.grid(axis="y")
        axes.set_ylabel("accuracy, %")
        return render(figure, "stages", f"Accuracy of the silos after {', '.join(results.stages)}")


_OFFSET: dict[str, Any] = {"textcoords": "offset points"}
_STEPS = [1, 2, 5, 10]


def overlap(results: Results) -> str:
    """How many classes each pair of silos shares."""
    matrix = np.array(results.overlap, dtype=float)
    names = [silo.name for silo in results.silos]
    alt = f"Heat map of the number of classes that each pair of {len(names)} silos shares"
    return _heat_map("overlap", alt, matrix, names, "{:.0f}", "shared classes", top=None)


def agreement(round_: Round, numbers: dict[str, int]) -> str:
    """How often each pair of silos gave the same label; `numbers` are the places of the silos in tables."""
    matrix = np.array([[np.nan if v is None else v for v in row] for row in round_.agreement], dtype=float)
    alt = f"Heat map of the share of pool labels on which each pair of {len(matrix)} silos agrees"
    names = list(round_.voters)
    places = [numbers[name] for name in names]
    return _heat_map("agreement", alt, matrix, names, "{:.2f}", "agreement", top=1.0, places=places)


def _heat_map(
    name: str,
    alt: str,
    matrix: NDArray[np.float64],
    names: Sequence[str],
    form: str,
    label: str,
    top: float | None,
    places: Sequence[int] | None = None,
) -> str:
    count = len(names)
    with look():
        # A few silos do not need large cells; many need all the width there is.
        figure = new(min(WIDTH + 60, 120 + 75 * count))
        axes = figure.add_subplot()
        # An image of one pixel per cell: as small for a hundred silos as for ten.
        picture = axes.imshow(matrix, cmap=_BLUES, vmin=0, vmax=top, interpolation="none")
        axes.spines[:].set_visible(False)
        if count <= NAMED:
            _names(axes, [short(one, 16) for one in names])
        else:
            _numbers(axes, list(places or range(1, count + 1)))
        if count <= NUMBERED:
            for (row, column), value in np.ndenumerate(matrix):
                if not np.isnan(value):
                    text = form.format(value).removeprefix("0") if top else form.format(value)
                    colour = _readable_on(picture.to_rgba(np.array(value)))
                    axes.text(column, row, text, ha="center", va="center", color=colour, size=11.5)
        else:
            bar = figure.colorbar(picture, ax=axes, shrink=0.62, pad=0.02, aspect=25)
            bar.outline.set_visible(False)
            bar.ax.yaxis.set_major_locator(MaxNLocator(5, integer=top is None))
            bar.ax.tick_params(right=False)
            bar.set_label(label)
        return render(figure, name, alt, crop=True)


def _readable_on(colour: Any) -> str:
    """White or ink, whichever has more contrast with a colour (WCAG's relative luminance)."""
    rgb = np.array(colour[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    ink = 0.022  # the luminance of INK
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / (ink + 0.05) else INK


def _names(axes: Axes, names: Sequence[str]) -> None:
    at = range(len(names))
    axes.set_yticks(at, names)
    slanted = len(names) <= NUMBERED
    axes.set_xticks(at, names)
    for text in axes.get_xticklabels():
        text.set(rotation=45 if slanted else 90, rotation_mode="anchor")
        text.set(horizontalalignment="right", verticalalignment="top" if slanted else "center")
    # White lines between the cells.
    edges = np.arange(len(names) - 1) + 0.5
    axes.hlines(edges, -0.5, len(names) - 0.5, color="white", linewidth=2)
    axes.vlines(edges, -0.5, len(names) - 0.5, color="white", linewidth=2)


def _numbers(axes: Axes, places: Sequence[int]) -> None:
    step = 10 if len(places) <= 120 else 50 if len(places) <= 600 else 100
    at = [number for number, place in enumerate(places) if place == 1 or place % step == 0]
    labels = [str(places[number]) for number in at]
    axes.set_xticks(at, labels)
    axes.set_yticks(at, labels)
    axes.set_xlabel("number of the silo in the table")


def elected(rounds: Sequence[Round]) -> str:
    """How many pseudo-labels of each class the last vote elected, and the first one."""
    last, first = rounds[-1].elected, rounds[0].elected
    alt = f"Bar chart of the pseudo-labels elected for each of {len(last)} classes"
    with look():
        if len(last) > MOST_BARS:
            return render(_ranked(sorted(last.values(), reverse=True)), "elected", alt)
        form = "{:,}" if len(rounds) == 1 else ""  # numbers would be in the way of the circles
        figure = _named_bars([short(name, 18) for name in last], list(last.values()), form)
        axes = figure.axes[0]
        axes.set_xlabel("pool instances elected")
        if len(rounds) > 1:
            at = range(len(last))
            style: dict[str, Any] = {"facecolor": "white", "edgecolor": ORANGE, "linewidth": 2, "zorder": 3}
            circles = [first.get(name, 0) for name in last]
            axes.scatter(circles, at, s=38, clip_on=False, **style)
            axes.set_xlim(0, 1.05 * max(*circles, *last.values(), 1))
        return render(figure, "elected", alt)


def _ranked(counts: Sequence[int]) -> Figure:
    figure = new(TALL)
    axes = figure.add_subplot()
    axes.bar(np.arange(1, len(counts) + 1), counts, 0.85, color=BLUE)
    axes.margins(x=0.01)
    axes.grid(axis="y")
    axes.set_xlabel("classes, from the most elected to the least")
    axes.set_ylabel("pool instances elected")
    return figure


def _named_bars(names: Sequence[str], values: Sequence[float], form: str) -> Figure:
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
            figure = _named_bars(names, [total for _, total in steps.values()], "{:.3g} s")
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
        axes.axvline(timing.wall, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.set_xlabel("seconds at work since the start")
        return render(figure, "timeline", alt)
