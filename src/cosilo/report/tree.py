"""The tree of a federation: server, institutions, members."""

from collections.abc import Mapping, Sequence
from typing import Any

from cosilo.report.formatting import short
from cosilo.report.svg import BLUE, INK, LINE, SOFT, WIDTH, look, new, render

#: Dots in a line of members, and lines of dots; the number beside them counts all members.
_ACROSS, _LINES = 20, 3
#: With more institutions than `_FEW`, each has one line; those beyond `_MOST` are not drawn.
_FEW, _MOST = 12, 40
#: Units of a line of dots, and between institutions.
_LINE, _GAP, _NARROW = 13, 18, 5
#: Where the server, the institutions' branches and the first dot are.
_SERVER, _BRANCH, _DOTS = 22, 48, 170


def tree(silos: Sequence[str], members: Mapping[str, Sequence[str]]) -> str:
    """A line for each silo with its members as dots; a silo without members is a leaf."""
    most, gap = (_LINES, _GAP) if len(silos) <= _FEW else (1, _NARROW)
    drawn = silos[:_MOST]
    tops, height = [], 42.0
    for name in drawn:
        tops.append(height)
        height += gap + _LINE * min(max(1, -(-len(members.get(name, ())) // _ACROSS)), most)
    total = sum(map(len, members.values()))
    alt = f"Tree: a server, {len(silos)} silos, {total} members"
    with look():
        figure = new(height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        axes.axis("off")
        style: dict[str, Any] = {"color": LINE, "linewidth": 1.5, "zorder": 1}
        axes.plot([_SERVER, _SERVER], [16, tops[-1]], **style)
        axes.plot([_SERVER], [12], marker="s", markersize=9, color=INK)
        axes.text(_SERVER + 12, 12, "server", va="center", size=12.5)
        for name, top in zip(drawn, tops, strict=True):
            inside = len(members.get(name, ()))
            axes.plot([_SERVER, _BRANCH - 6], [top, top], **style)
            axes.plot([_BRANCH], [top], marker="o", markersize=8, color=BLUE if inside else SOFT)
            axes.text(_BRANCH + 9, top, short(name, 15), va="center", size=12)
            shown = min(inside, _ACROSS * most)
            x = [_DOTS + 9 * (place % _ACROSS) for place in range(shown)]
            y = [top + _LINE * (place // _ACROSS) for place in range(shown)]
            axes.plot(x, y, marker="o", markersize=4.5, linestyle="none", color=BLUE, alpha=0.55)
            if inside:
                across = min(inside, _ACROSS)
                axes.text(_DOTS + 9 * across + 4, top, f"{inside:,}", va="center", size=11.5, color=SOFT)
        if len(drawn) < len(silos):
            rest = f"and {len(silos) - len(drawn):,} more"
            axes.text(_BRANCH - 6, height - 6, rest, va="center", size=12, color=SOFT)
        return render(figure, "tree", alt)
