"""Tempo's pace: how many epochs each institution trains, and how far it is from the global model."""

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator, NullFormatter

from cosilo.methods.tempo import Pace
from cosilo.report.line_ends import COLOURS, End, beside, write_names
from cosilo.report.parts.part import Card, ReportPart
from cosilo.report.results import Results
from cosilo.report.svg import BLUE, TALL, look, new, render

#: Up to this many institutions have a name at the end of their line.
MOST_NAMES = 20
#: By institution, a value for each round; None where it took no part.
Series = Mapping[str, Sequence[float | None]]


def show_pace(found: Pace, results: Results) -> ReportPart:
    """Epochs and weight differences, round by round."""
    rounds = [one.round for one in found.pace]
    epochs = _series([one.epochs for one in found.pace])
    differences = _series([one.differences for one in found.pace])
    cards = {}
    if epochs:
        cards["epochs"] = Card(
            "Epochs by institution",
            "How many epochs each institution's members train in a round: fewer where its model is far from "
            "the global one.",
            Markup(draw_series("epochs", rounds, epochs, "epochs in the round")),
        )
    if any(value for row in differences.values() for value in row):
        cards["differences"] = Card(
            "Weight difference by institution",
            "ω: how far an institution's weights are from the global ones, on a logarithmic axis.",
            Markup(draw_series("differences", rounds, differences, "weight difference ω", log=True)),
        )
    return ReportPart(cards)


def _series(rounds: Sequence[Mapping[str, float]]) -> Series:
    names = dict.fromkeys(name for one in rounds for name in one)
    return {name: [one.get(name) for one in rounds] for name in names}


def draw_series(name: str, rounds: Sequence[int], values: Series, label: str, *, log: bool = False) -> str:
    """A line for each institution, with its name at its end; a log axis has no place for 0."""
    if log:
        values = {
            one: [value if value is not None and value > 0 else None for value in found]
            for one, found in values.items()
        }
    there = {one: known for one, found in values.items() if (known := [v for v in found if v is not None])}
    named = len(there) <= MOST_NAMES
    tones = {one: COLOURS[place % len(COLOURS)] if named else BLUE for place, one in enumerate(there)}
    ends = [End(one, known[-1], tones[one]) for one, known in there.items()]
    with look():
        if named:
            figure, axes = beside(ends)
        else:
            figure = new(TALL)
            axes = figure.add_subplot()
        for one in there:
            axes.plot(
                rounds,
                np.array([np.nan if value is None else value for value in values[one]]),
                color=tones[one],
                marker="o",
                markersize=4 if named and len(rounds) <= 40 else 0,
                linewidth=1.8 if named else 1.2,
                alpha=1 if named else 0.3,
            )
        if log:
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            if high < 50 * low:  # else there may be no power of ten in sight
                axes.yaxis.set_major_locator(MaxNLocator(5))
            axes.yaxis.set_major_formatter("{x:g}")  # powers would want type that the page does not have
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(axis="y")
        axes.set_xlabel("rounds")
        axes.set_ylabel(label)
        if named:
            write_names(axes, ends)
        return render(figure, name, f"{label} of {len(there)} institutions over {len(rounds)} rounds")
