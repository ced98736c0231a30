"""Figures of one run from round to round: accuracies, the budget, the pace of institutions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter

from cosilo.report.averages import Average
from cosilo.report.curves import Look, TimeCurve, by_time
from cosilo.report.exchange import Exchange
from cosilo.report.facts import Facts
from cosilo.report.line_ends import COLOURS, End, beside, write_names
from cosilo.report.over_time import TimeMark
from cosilo.report.pace import Pace
from cosilo.report.summary import Baseline
from cosilo.report.svg import BLUE, INK, ORANGE, SOFT, TALL, look, new, render

#: Up to so many institutions have a name at the end of their line.
MOST_NAMES = 20
#: Colours of the mean of the silos, of their labels, of the global network.
_LABELS, _GLOBAL = "#009e73", ORANGE
_DASHED = (0, (4, 3))


def stages(facts: Facts) -> str:
    """Accuracy after every stage: each silo a thin line, means thick; local training dashed."""
    results = facts.results
    place = {stage: number for number, stage in enumerate(results.stages)}
    drawn = _means(facts)
    ends = [
        End(f"{name} {100 * list(means.values())[-1]:.1f}%", 100 * list(means.values())[-1], colour)
        for name, colour, means in drawn
    ]
    local = results.means.get("local")
    if local is not None:
        ends.append(End(f"local {100 * local:.1f}%", 100 * local, SOFT))
    with look():
        if ends:
            figure, axes = beside(ends)
        else:
            figure = new(TALL)
            axes = figure.add_subplot()
        for silo in results.silos:
            x = [place[stage] for stage in silo.scores]
            y = [100 * score.accuracy for score in silo.scores.values()]
            axes.plot(x, y, color=BLUE, alpha=0.3, linewidth=1.2, solid_capstyle="round")
        if local is not None:
            axes.axhline(100 * local, color=SOFT, linewidth=1.5, linestyle=_DASHED)
        for _, colour, means in drawn:
            x = [place[stage] for stage in means if stage in place]
            y = [100 * value for stage, value in means.items() if stage in place]
            axes.plot(x, y, color=colour, linewidth=2.5, marker="o", markersize=5 if len(x) <= 40 else 0)
        _stage_ticks(axes, results.stages, beside_names=bool(ends))
        axes.grid(axis="y")
        axes.set_ylabel("accuracy, %")
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 0), min(high, 101))
        if ends:
            write_names(axes, ends)
        return render(figure, "stages", f"Accuracy of the silos after {', '.join(results.stages)}")


def _means(facts: Facts) -> list[tuple[str, str, Mapping[str, float]]]:
    """Name, colour and values by stage of what is drawn thick."""
    found = [
        ("mean", INK, facts.results.means),
        ("labelling", _LABELS, facts.targets.means),
        ("global", _GLOBAL, facts.results.joint),
    ]
    return [(name, colour, means) for name, colour, means in found if means]


def _stage_ticks(axes: Axes, stages: Sequence[str], *, beside_names: bool) -> None:
    most = 4 if beside_names else 6
    step = max(1, -(-len(stages) // most))
    shown = [*range(0, len(stages) - 1, step), len(stages) - 1]
    if len(shown) > 2 and shown[-1] - shown[-2] < step:
        del shown[-2]
    axes.set_xticks(shown, [stages[number] for number in shown])
    axes.margins(x=0.08)


def time_to_accuracy(facts: Facts) -> str:
    """The same means by simulated time."""
    assert facts.simulated is not None
    curves = []
    for name, colour, means in _means(facts):
        points = facts.simulated.curve(means)
        if points:
            marks = [TimeMark(at, Average(accuracy)) for at, accuracy in points]
            curves.append(TimeCurve(name, Look(colour), marks))
    local = facts.results.means.get("local")
    baselines = [] if local is None else [Baseline((facts.about.method,), Average(local))]
    return by_time("time-to-accuracy", curves, baselines)


def budget(exchange: Exchange) -> str:
    """Seconds used up to each round, against T."""
    total = exchange.budget
    assert total is not None
    x = [one.round for one in exchange.rounds]
    y = [one.seconds for one in exchange.rounds]
    with look():
        figure = new(TALL)
        axes = figure.add_subplot()
        axes.bar(x, y, 0.7, color=BLUE)
        axes.axhline(total, color=INK, linewidth=1.5, linestyle=_DASHED)
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "left", "va": "bottom"}
        axes.annotate(f"T = {total:,.4g} s", (0, total), (4, 3), xycoords=("axes fraction", "data"), **style)
        axes.set_xlim(min(x) - 0.8, max(x) + 0.8)
        axes.set_ylim(0, 1.15 * max(total, *y))
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.set_major_formatter("{x:,.4g}")
        axes.grid(axis="y")
        axes.set_xlabel("rounds")
        axes.set_ylabel("seconds of the budget used")
        return render(figure, "budget", f"{y[-1]:.4g} of {total:.4g} seconds used after {len(x)} rounds")


def epochs(pace: Pace) -> str:
    """Epochs of each institution, round by round."""
    return _by_institution("epochs", pace.rounds, pace.epochs, "epochs in the round")


def differences(pace: Pace) -> str:
    """ω of each institution, round by round; on a log axis, where 0 has no place."""
    above = {
        name: tuple(None if value is None or value <= 0 else value for value in values)
        for name, values in pace.differences.items()
    }
    return _by_institution("differences", pace.rounds, above, "weight difference ω", log=True)


def _by_institution(
    name: str,
    rounds: Sequence[int],
    values: Mapping[str, Sequence[float | None]],
    label: str,
    *,
    log: bool = False,
) -> str:
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
        thick: dict[str, Any] = {"linewidth": 1.8 if named else 1.2, "alpha": 1 if named else 0.3}
        for one in there:
            y = np.array([np.nan if value is None else value for value in values[one]])
            size = 4 if named and len(rounds) <= 40 else 0
            axes.plot(rounds, y, color=tones[one], marker="o", markersize=size, **thick)
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
