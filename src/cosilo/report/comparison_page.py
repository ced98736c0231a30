"""The page of a comparison: numbers, curves and sentences put into the template."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cosilo.report import curves, formatting
from cosilo.report.averages import Average, points
from cosilo.report.comparison_verdict import notes, verdict
from cosilo.report.mean_over_time import MeanAtTime
from cosilo.report.metrics import NAMES
from cosilo.report.parts import Card
from cosilo.report.run_page import environment
from cosilo.report.summary import MeanPoint, Row, Summary, summarise
from cosilo.report.time_to_accuracy import time_to_accuracy
from cosilo.runs.comparison import Comparison
from cosilo.runs.durable_files import write
from cosilo.text import listing
from cosilo.version import __version__

#: With more runs than this the table of runs scrolls in a box of its own.
_LONG = 30


def write_comparison(comparison: Comparison) -> Path:
    """Write `comparison.html` into the comparison's folder; one file that opens anywhere, offline."""
    path = comparison.folder / "comparison.html"
    write(path, render(comparison).encode())
    return path


def render(comparison: Comparison) -> str:
    """The whole page."""
    summary, own = summarise(comparison), ("method", "compare", "seed")
    rows = summary.rows
    shared = {key: value for key, value in comparison.values.items() if key not in own}
    return (
        environment()
        .get_template("comparison.html")
        .render(
            folder=comparison.folder.resolve().name,
            source=comparison.source,
            version=__version__,
            summary=summary,
            verdict=verdict(summary),
            notes=[*notes(summary), *comparison.unequal],
            rows=[_row(row, curves.colours(rows)[row.name], summary) for row in rows],
            scale=_scale(summary),
            cards=_cards(summary),
            goal=time_to_accuracy(summary),
            colours={name: look.colour for name, look in curves.colours(rows).items()},
            keys=list(dict.fromkeys(key for row in rows for key in row.parameters)),
            recipe=list(formatting.dotted(shared)),
            failures=[(row.name, seed, text) for row in rows for seed, text in row.failed.items()],
            silos=sorted({run.silos for row in rows for run in row.runs}),
            seconds=sum(run.seconds for row in rows for run in row.runs),
            odd=any(run.failures or run.scored < run.silos for row in rows for run in row.runs),
            several=len(summary.seeds) > 1,
            has_local=bool(summary.baselines),
            metrics=[NAMES[name] for name in summary.metrics],
            has_joint=any(row.joint for row in rows),
            has_labelling=any(row.labelling for row in rows),
            has_clock=any(row.simulated for row in rows),
            long=summary.planned > _LONG,
        )
    )


# ---------------------------------------------------------------------- the table of methods


def _row(row: Row, look: curves.Look, summary: Summary) -> dict[str, Any]:
    low, high = _scale(summary)

    def at(accuracy: float) -> float:
        return round(4 + 92 * (min(max(accuracy, low), high) - low) / (high - low), 1)

    bar = None
    if row.accuracy:
        mean, std = row.accuracy.mean, row.accuracy.std or 0.0
        seeds = [at(run.accuracy) for run in row.runs if run.accuracy is not None]
        bar = {"mean": at(mean), "from": at(mean - std), "to": at(mean + std), "seeds": seeds}
    return {
        "row": row,
        "colour": look.colour,
        "bar": bar,
        "local": _cell(row.local, points, "%"),
        "accuracy": _cell(row.accuracy, points, "%"),
        "relative": _cell(row.relative, formatting.ratio),
        "share": _cell(row.share, points, "%"),
        "metrics": [
            _cell(value, formatting.ratio)
            for name in summary.metrics
            for value in (row.metric(name), row.metric_gain(name))
        ],
        "joint": _cell(row.joint, points, "%"),
        "labelling": _cell(row.labelling, points, "%"),
        "simulated": _cell(row.simulated, formatting.seconds),
        "left": _cell(row.left, formatting.size),
        "seconds": _cell(row.seconds, formatting.seconds),
    }


def _cell(value: Average | None, form: Callable[[float], str], unit: str = "") -> tuple[str, str]:
    return ("–", "") if value is None else value.parts(form, unit)


def _scale(summary: Summary) -> tuple[float, float]:
    """The ends of the little accuracy bars: tenths that hold every accuracy and its spread."""
    found = [row.accuracy for row in summary.rows if row.accuracy]
    seeds = [run.accuracy for row in summary.rows for run in row.runs if run.accuracy is not None]
    low = min([*seeds, *[one.mean - (one.std or 0) for one in found]], default=0.0)
    high = max([*seeds, *[one.mean + (one.std or 0) for one in found]], default=1.0)
    return max(0, int(10 * low - 1e-9) / 10), min(1.0, int(10 * high + 1) / 10)


# ---------------------------------------------------------------------- figures with captions


def _cards(summary: Summary) -> dict[str, Card]:
    found = {}
    drawn = _drawn(summary, lambda row: row.curve)
    if drawn:
        found["rounds"] = Card(
            "Accuracy by round",
            f"Mean over the silos, each on its own test data{_over(summary)}.{_dashed(summary)}"
            f"{_jumps(drawn)}",
            Markup(curves.by_round("rounds", drawn, summary.baselines)),
        )
    drawn = _drawn(summary, lambda row: row.joint_curve)
    if drawn:
        found["joint"] = Card(
            "Accuracy of the global model by round",
            f"One model over all classes, on the test data of all silos together{_over(summary)}."
            f"{_jumps(drawn)}",
            Markup(curves.by_round("joint", drawn)),
        )
    said = "a curve begins when every seed has a score, and a dotted line extends its last value."
    timed = _timed(summary, lambda row: row.time_curve)
    if timed:
        found["times"] = Card(
            "Accuracy by simulated time",
            "The accuracy of the models that exist at a given time, mean over the silos: it changes when a "
            f"round is over{_over(summary)}; {said}{_dashed(summary)} Simulated time is computing and "
            "sending by the recipe's clock.",
            Markup(curves.by_time("times", timed, summary.baselines)),
        )
    timed = _timed(summary, lambda row: row.joint_time_curve)
    if timed:
        found["joint-times"] = Card(
            "Accuracy of the global model by simulated time",
            f"One model over all classes, on the test data of all silos together{_over(summary)}; {said}",
            Markup(curves.by_time("joint-times", timed)),
        )
    return found


def _timed(summary: Summary, of: Callable[[Row], tuple[MeanAtTime, ...]]) -> list[curves.TimeCurve]:
    looks = curves.colours(summary.rows)
    return [curves.TimeCurve(row.name, looks[row.name], of(row)) for row in summary.rows if of(row)]


def _drawn(summary: Summary, of: Callable[[Row], tuple[MeanPoint, ...]]) -> list[curves.Curve]:
    """The curves; none if no method has more than one round, because then the table says the same."""
    looks = curves.colours(summary.rows)
    found = [curves.Curve(row.name, looks[row.name], of(row)) for row in summary.rows if of(row)]
    several = any(len({mark.rounds for mark in one.marks}) > 1 for one in found)
    return found if several else []


def _over(summary: Summary) -> str:
    return (
        "" if len(summary.seeds) == 1 else "; lines are means over the seeds, bands ± one standard deviation"
    )


def _dashed(summary: Summary) -> str:
    if not summary.baselines:
        return ""
    if len(summary.baselines) == 1:
        return " Dashed is local training, before any exchange."
    each = "; ".join(f"{listing(one.methods)} {one.accuracy.percent}" for one in summary.baselines)
    return f" Dashed is local training, before any exchange, which is not the same for all methods ({each})."


def _jumps(drawn: list[curves.Curve]) -> str:
    last = max(one.marks[-1].rounds for one in drawn)
    text = ""
    if any(one.marks[-1].rounds < last for one in drawn):
        text += " A dotted line extends the last value of a method with fewer rounds."
    tuned = [one.name for one in drawn if _goes_on(one.marks)]
    if tuned:
        text += f" After its last round {listing(tuned)} continues at each silo: dotted, straight up or down."
    return text


def _goes_on(marks: Sequence[MeanPoint]) -> bool:
    """Whether something comes after the last round that changes the models."""
    if len(marks) < 2:
        return False
    before, end = marks[-2:]
    return before.rounds == end.rounds and before.accuracy != end.accuracy
