"""Heat maps: silo by silo, and silo by round. They name up to 25 silos, and are as small for a hundred."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cosilo.report.exchange import Exchange, Similarity
from cosilo.report.phrases import short
from cosilo.report.results import Results, Round
from cosilo.report.svg import BLUE, INK, WIDTH, look, new, render

#: Up to so many silos a heat map has a number in every cell; up to so many it names them.
NUMBERED, NAMED = 12, 25

# It starts at a light blue, so that white is free to mean "nothing to show".
_SCALE = LinearSegmentedColormap.from_list("blues", ["#e3eef7", "#8dbbdd", "#3d86bf", "#0d4a7c"])
_BLUES = _SCALE.with_extremes(bad=(1, 1, 1, 0))
#: Travelled or not.
_TWO = ListedColormap(["#eef2f6", BLUE])


def overlap(results: Results) -> str:
    """How many classes each pair of silos shares."""
    matrix = np.array(results.overlap, dtype=float)
    names = [silo.name for silo in results.silos]
    alt = f"Heat map of the number of classes that each pair of {len(names)} silos shares"
    return _heat_map("overlap", alt, matrix, names, "{:.0f}", "shared classes", top=None)


def agreement(round_: Round, numbers: Mapping[str, int]) -> str:
    """How often each pair of silos gave the same label; `numbers` are the places of the silos in tables."""
    matrix = np.array([[np.nan if v is None else v for v in row] for row in round_.agreement], dtype=float)
    alt = f"Heat map of the share of pool labels on which each pair of {len(matrix)} silos agrees"
    names = list(round_.voters)
    places = [numbers[name] for name in names]
    return _heat_map("agreement", alt, matrix, names, "{:.2f}", "agreement", top=1.0, places=places)


def similarity(found: Similarity, numbers: Mapping[str, int]) -> str:
    """How much the silo of a row learns from that of a column; blank where nothing."""
    matrix = np.array(found.values, dtype=float)
    matrix[matrix <= 0] = np.nan
    alt = f"Heat map of how much each of {len(matrix)} silos, a row, learns from each other one, a column"
    label = "similarity ratio" if found.kind == "similarity" else "weight over all rounds"
    places = [numbers[name] for name in found.silos]
    top = float(np.nanmax(matrix))
    names = list(found.silos)
    return _heat_map("similarity", alt, matrix, names, "{:.2f}", label, top, places, ("learns", "from"))


def travels(exchange: Exchange, numbers: Mapping[str, int]) -> str:
    """Whose models travelled in which round: a row for each silo, a column for each round."""
    names, rounds = list(numbers), exchange.rounds
    matrix = np.array([[name in one.uploaded for one in rounds] for name in names], dtype=float)
    alt = f"Grid of {len(names)} silos and {len(rounds)} rounds: filled where the silo's model travelled"
    with look():
        row = 19 if len(names) <= NAMED else max(1.5, 420 / len(names))
        figure = new(70 + row * len(names))
        axes = figure.add_subplot()
        axes.imshow(matrix, cmap=_TWO, vmin=0, vmax=1, interpolation="none", aspect="auto")
        axes.spines[:].set_visible(False)
        if len(names) <= NAMED:
            axes.set_yticks(range(len(names)), [short(name, 16) for name in names])
        else:
            at, labels = _ticks(list(numbers.values()))
            axes.set_yticks(at, labels)
            axes.set_ylabel("number of the silo in the table")
        if len(names) <= NAMED and len(rounds) <= 40:
            _gaps(axes, len(names), len(rounds))
        step = max(1, -(-len(rounds) // 10))
        axes.set_xticks(range(0, len(rounds), step), [str(one.round) for one in rounds[::step]])
        axes.set_xlabel("rounds")
        return render(figure, "travels", alt, crop=True)


def _heat_map(
    name: str,
    alt: str,
    matrix: NDArray[np.float64],
    names: Sequence[str],
    form: str,
    label: str,
    top: float | None,
    places: Sequence[int] | None = None,
    sides: tuple[str, str] = ("", ""),
) -> str:
    count = len(names)
    with look():
        # A few silos do not need large cells; many need all the width there is.
        figure = new(min(WIDTH + 100, 120 + 75 * count))
        axes = figure.add_subplot()
        # An image of one pixel per cell: as small for a hundred silos as for ten.
        picture = axes.imshow(matrix, cmap=_BLUES, vmin=0, vmax=top, interpolation="none")
        axes.spines[:].set_visible(False)
        axes.set_ylabel(sides[0])
        if count <= NAMED:
            _names(axes, [short(one, 16) for one in names])
            axes.set_xlabel(sides[1])
        else:
            _numbers(axes, list(places or range(1, count + 1)), sides[1])
        if count <= NUMBERED:
            for (row, column), value in np.ndenumerate(matrix):
                if not np.isnan(value):
                    text = form.format(value).removeprefix("0") if top else form.format(value)
                    colour = _readable_on(picture.to_rgba(np.array(value)))
                    axes.text(column, row, text, ha="center", va="center", color=colour, size=11.5)
        else:
            # On top, so that the cells have all the width.
            bar = figure.colorbar(picture, ax=axes, location="top", shrink=0.62, pad=0.02, aspect=30)
            bar.outline.set_visible(False)
            bar.ax.xaxis.set_major_locator(MaxNLocator(5, integer=top is None))
            bar.ax.tick_params(top=False)
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
    if len(names) > 16:
        axes.tick_params(labelsize=10.5)
    for text in axes.get_xticklabels():
        text.set(rotation=45 if slanted else 90, rotation_mode="anchor")
        text.set(horizontalalignment="right", verticalalignment="top" if slanted else "center")
    _gaps(axes, len(names), len(names))


def _gaps(axes: Axes, rows: int, columns: int) -> None:
    """White lines between the cells."""
    axes.hlines(np.arange(rows - 1) + 0.5, -0.5, columns - 0.5, color="white", linewidth=2)
    axes.vlines(np.arange(columns - 1) + 0.5, -0.5, rows - 0.5, color="white", linewidth=2)


def _ticks(places: Sequence[int]) -> tuple[list[int], list[str]]:
    step = 10 if len(places) <= 120 else 50 if len(places) <= 600 else 100
    at = [number for number, place in enumerate(places) if place == 1 or place % step == 0]
    return at, [str(places[number]) for number in at]


def _numbers(axes: Axes, places: Sequence[int], side: str) -> None:
    at, labels = _ticks(places)
    axes.set_xticks(at, labels)
    axes.set_yticks(at, labels)
    axes.set_xlabel(
        f"{side} (number of the silo in the table)" if side else "number of the silo in the table"
    )
