"""Accuracies of one run, by round and by simulated time."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from cosilo.protocol.stage import LOCAL, Stage
from cosilo.report.averages import Average
from cosilo.report.curves import Look, TimeCurve, by_time
from cosilo.report.facts import Facts
from cosilo.report.line_ends import End, beside, write_names
from cosilo.report.mean_over_time import MeanAtTime
from cosilo.report.results import MOST_DRAWN, evenly
from cosilo.report.summary import Baseline
from cosilo.report.svg import BLUE, DASHED, INK, ORANGE, SOFT, TALL, look, new, render

#: Colours of the mean of the silos, of their labels, of the global network.
_LABELS, _GLOBAL = "#009e73", ORANGE


def by_stage(facts: Facts) -> str:
    """Accuracy after every stage: each silo a thin line, means thick; local training dashed."""
    results = facts.results
    place = {stage: number for number, stage in enumerate(results.stages)}
    drawn = _means(facts)
    ends = [
        End(f"{name} {100 * list(means.values())[-1]:.1f}%", 100 * list(means.values())[-1], colour)
        for name, colour, means in drawn
    ]
    local = results.means.get(LOCAL)
    if local is not None:
        ends.append(End(f"local {100 * local:.1f}%", 100 * local, SOFT))
    with look():
        if ends:
            figure, axes = beside(ends)
        else:
            figure = new(TALL)
            axes = figure.add_subplot()
        for silo in evenly(results.silos, MOST_DRAWN):
            x = [place[stage] for stage in silo.scores]
            y = [100 * score.accuracy for score in silo.scores.values()]
            axes.plot(x, y, color=BLUE, alpha=0.3, linewidth=1.2, solid_capstyle="round")
        if local is not None:
            axes.axhline(100 * local, color=SOFT, linewidth=1.5, linestyle=DASHED)
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
        return render(figure, "stages", f"Accuracy of the silos after {', '.join(map(str, results.stages))}")


def _means(facts: Facts) -> list[tuple[str, str, Mapping[Stage, float]]]:
    """Name, colour and values by stage of what is drawn thick."""
    found = [
        ("mean", INK, facts.results.means),
        ("labelling", _LABELS, facts.targets.means),
        ("global", _GLOBAL, facts.results.joint),
    ]
    return [(name, colour, means) for name, colour, means in found if means]


def _stage_ticks(axes: Axes, stages: Sequence[Stage], *, beside_names: bool) -> None:
    most = 4 if beside_names else 6
    step = max(1, -(-len(stages) // most))
    shown = [*range(0, len(stages) - 1, step), len(stages) - 1]
    if len(shown) > 2 and shown[-1] - shown[-2] < step:
        del shown[-2]
    axes.set_xticks(shown, [str(stages[number]) for number in shown])
    axes.margins(x=0.08)


def by_simulated_time(facts: Facts) -> str:
    """The same means by simulated time."""
    assert facts.simulated is not None
    curves = []
    for name, colour, means in _means(facts):
        points = facts.simulated.curve(means)
        if points:
            marks = [MeanAtTime(at, Average(accuracy)) for at, accuracy in points]
            curves.append(TimeCurve(name, Look(colour), marks))
    local = facts.results.means.get(LOCAL)
    baselines = [] if local is None else [Baseline((facts.about.method,), Average(local))]
    return by_time("time-to-accuracy", curves, baselines)
