"""From a matplotlib figure to SVG text that can stand in a page: small, unique ids, the same every time."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

BLUE, ORANGE = "#1b6ca8", "#c8560f"
INK, SOFT, LINE = "#1f2933", "#5b6773", "#d5dbe1"
#: How lines to compare with are drawn.
DASHED = (0, (4, 3))

#: Units of a figure's own coordinates: half a page on a desktop, a whole one on a phone, so that 12.5 units
#: of type are at least 10 pixels everywhere.
WIDTH = 420
#: The height of most figures: next to a heat map, they should not look lost.
TALL = 350

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a class may be called "$5"
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12.5,
    "axes.labelsize": 12.5,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "text.color": INK,
    "axes.labelcolor": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.edgecolor": LINE,
    "axes.linewidth": 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e8ecf0",
    "grid.linewidth": 1,
    "xtick.bottom": False,
    "ytick.left": False,
}
# No dates, no versions: the same run gives the same bytes.
_NOTHING = dict.fromkeys(["Date", "Creator", "Format", "Type"])


@contextmanager
def look() -> Iterator[None]:
    """The look of all figures, whatever the user's own matplotlib settings are."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        # The browser has the glyphs that matplotlib's font lacks; here it only measures.
        warnings.simplefilter("ignore", UserWarning)
        yield


def new(height: float) -> Figure:
    """An empty figure of the common width; a point of it is a unit of the SVG."""
    return Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")


def render(figure: Figure, name: str, alt: str, *, crop: bool = False) -> str:
    """The figure as an `<svg>` element; `name` keeps its ids apart from those of other figures.

    `crop` cuts the empty space above and below that a drawing of fixed proportions leaves; the width stays,
    so that type has the same size in all figures.
    """
    with matplotlib.rc_context({"svg.hashsalt": name}):
        file = io.StringIO()
        figure.savefig(
            file, format="svg", metadata=_NOTHING, transparent=True, bbox_inches=_box(figure, crop)
        )
    text = file.getvalue()
    text = text[text.index("<svg") :].strip()
    # The style inside would hold for the whole page; the page's own sheet says the same for figures.
    text = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = _own_ids(text, name)
    opening = f'<svg role="img" aria-label="{escape(alt)}" '
    head, body = text.split(">", 1)
    view = re.search(r'viewBox="[^"]*"', head)
    assert view is not None
    return re.sub(r">\s+<", "><", f"{opening}{view.group()}>{body}")


def _box(figure: Figure, crop: bool) -> Bbox | None:
    if not crop:
        return None
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # a second layout would move what was just measured
    tight = figure.get_tightbbox()
    return Bbox([[0, tight.y0 - 0.03], [WIDTH / 72, tight.y1 + 0.03]])


def _own_ids(text: str, name: str) -> str:
    """Drop ids that nothing refers to, and put the figure's name before the others."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))

    def in_tag(match: re.Match[str]) -> str:
        tag = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", match[0])
        return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", tag)

    # Only inside tags: a class may be called 'id="x"'.
    return re.sub(r"<[^>]*>", in_tag, text)
