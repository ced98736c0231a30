"""Heat maps: silo by silo, and silo by round. They name up to 25 silos, and are as small for a hundred."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cosilo.report.formatting import short
from cosilo.report.results import MOST_DRAWN, Results, evenly
from cosilo.report.svg import BLUE, INK, WIDTH, look, new, render

#: Up to this many silos a heat map has a number in every cell; up to this many it names them.
NUMBERED, NAMED = 12, 25

# It starts at a light blue, so that white is free to mean "nothing to show".
_SCALE = LinearSegmentedColormap.from_list("blues", ["#e3eef7", "#8dbbdd", "#3d86bf", "#0d4a7c"])
_BLUES = _SCALE.with_extremes(bad=(1, 1, 1, 0))
#: Empty or filled.
_TWO = ListedColormap(["#eef2f6", BLUE])


def overlap(results: Results) -> str:
    """How many classes each pair of silos shares."""
    matrix = np.array(results.overlap, dtype=float)
    names = [silo.name for silo in evenly(results.silos, MOST_DRAWN)]
    alt = f"Heat map of the number of classes that each pair of {len(names)} silos shares"
    places = [results.places[name] for name in names]
    return heat_map("overlap", alt, matrix, names, "{:.0f}", "shared classes", top=None, places=places)


def filled_cells(
    name: str,
    alt: str,
    matrix: NDArray[np.float64],
    places: Mapping[str, int],
    columns: Sequence[int],
    label: str,
) -> str:
    """A row for each silo, a column for each number; filled where the matrix is 1."""
    with look():
        row = 19 if len(places) <= NAMED else max(1.5, 420 / len(places))
        figure = new(70 + row * len(places))
        axes = figure.add_subplot()
        axes.imshow(matrix, cmap=_TWO, vmin=0, vmax=1, interpolation="none", aspect="auto")
        axes.spines[:].set_visible(False)
        if len(places) <= NAMED:
            axes.set_yticks(range(len(places)), [short(one, 16) for one in places])
        else:
            at, labels = _ticks(list(places.values()))
            axes.set_yticks(at, labels)
            axes.set_ylabel("number of the silo in the table")
        if len(places) <= NAMED and len(columns) <= 40:
            _gaps(axes, len(places), len(columns))
        step = max(1, -(-len(columns) // 10))
        axes.set_xticks(range(0, len(columns), step), [str(one) for one in columns[::step]])
        axes.set_xlabel(label)
        return render(figure, name, alt, crop=True)


def heat_map(
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
    """A square of silos, blank where the matrix is NaN.

    Parameters
    ----------
    form
        How a value is written, where there is room.
    label
        What the colours mean, where there is none.
    top
        The value of the darkest colour; None: the highest there is.
    places
        The numbers of the silos in the table, where there are too many to name.
    sides
        What the axes of rows and of columns are called.
    """
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
                    text = form.format(value)
                    if top:  # a share: .75, or 1, so that it fits into a small cell
                        text = text.removeprefix("0").removesuffix(".00")
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


def _readable_on(colour: NDArray[np.float64]) -> str:
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
    if places and places[-1] > 2 * len(places):  # some of many
        at = list(range(0, len(places), 20))
        return at, [f"{places[number]:,}" for number in at]
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
