"""The curves of `benchmarks/scale.py`, from what it printed."""

import io
import math
import re
from collections import defaultdict
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from cosilo.report.svg import look

#: What a part grows, in the words of the legend.
LINES = {
    "silos": "silos (CoFED, pool of 1,000)",
    "pool": "instances in the pool (CoFED, four silos)",
    "classes": "classes (an election of 20 silos)",
    "parameters": "parameters (FedAvg, two silos)",
}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FIGURE = re.compile(r"^figure scale_(\w+?)_(\d+)_(seconds|megabytes) (\S+)$", re.MULTILINE)


def points(printed: str) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """By part and measure: what each size took; of a size that was measured again, the last time."""
    found: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for part, size, measure, value in _FIGURE.findall(printed):
        if part in LINES:
            found[part, measure][int(size)] = float(value)
    return {key: sorted(sizes.items()) for key, sizes in found.items()}


def _power(value: float) -> str:
    """A power of ten for an axis: 100 or 10⁶."""
    exponent = round(math.log10(value))
    return f"{value:g}" if exponent < 4 else f"10{str(exponent).translate(_RAISED)}"


def draw(printed: str, picture: Path) -> None:
    """Two panels with powers of ten on both axes: the slope of a line there is its exponent."""
    found = points(printed)
    with look():
        matplotlib.rcParams["svg.hashsalt"] = "scale"  # the same points give the same bytes
        figure = Figure(figsize=(760 / 72, 400 / 72), layout="constrained")
        panels = figure.subplots(1, 2)
        titles = {"seconds": "seconds of processors", "megabytes": "megabytes at the peak"}
        for axes, (measure, title) in zip(panels, titles.items(), strict=True):
            for place, (part, words) in enumerate(LINES.items()):
                sizes, values = zip(*found.get((part, measure), [(1, math.nan)]), strict=True)
                axes.plot(sizes, values, color=f"C{place}", marker="o", markersize=4, label=words)
            for axis, scaled in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
                scaled("log")
                axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
            axes.minorticks_off()
            axes.set_xlim(left=5)
            axes.set_title(title, loc="left")
            axes.set_xlabel("how many there are")
            axes.grid()
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    picture.write_text("\n".join(line.rstrip() for line in text[text.index("<svg") :].splitlines()) + "\n")
