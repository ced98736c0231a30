"""The sentences of a comparison: which method is ahead, by how much, and whether that means anything.

Methods are held against each other seed by seed: on one seed they all have the same silos and test data, so
that the spread of the differences is what tells a lead from chance.
"""

from collections.abc import Sequence

from cosilo.report.averages import Average, average, points
from cosilo.report.formatting import plural
from cosilo.report.summary import Row, Summary
from cosilo.text import listing


def verdict(summary: Summary) -> str:
    """Who is ahead and by how much, with the numbers."""
    if not summary.finished:
        return "No run has finished, so there is nothing to compare."
    if not any(row.accuracy for row in summary.rows):
        return "No silo shares its accuracy, so this report cannot say which method is ahead."
    ranked = _ranked(summary)
    if not ranked:
        return "No method has an accuracy on every seed, so this report cannot say which one is ahead."
    best, *others = ranked
    seeds = plural(len(summary.seeds), "seed")
    if not others:
        only = "is the only method" + ("" if len(summary.rows) == 1 else " with an accuracy on every seed")
        return f"{best.name} {only}: {_accuracy(best)} over {seeds}."
    return f"{best.name} has the highest accuracy: {_accuracy(best)} over {seeds}, {_lead(best, others[0])}"


def _ranked(summary: Summary) -> list[Row]:
    """The methods with an accuracy on every seed, the best first: others would be judged on less."""
    whole = [
        row
        for row in summary.rows
        if [r.seed for r in row.runs if r.accuracy is not None] == [*summary.seeds]
    ]
    return sorted(whole, key=lambda row: -_mean(row.accuracy))


def difference(one: Row, other: Row) -> Average:
    """How much more accuracy one method has than another, seed by seed."""
    theirs = {run.seed: run.accuracy for run in other.runs}
    pairs = [(run.accuracy, theirs.get(run.seed)) for run in one.runs]
    found = average(mine - its for mine, its in pairs if mine is not None and its is not None)
    assert found is not None
    return found


def within_spread(lead: Average) -> bool:
    """Whether a lead is no larger than its standard deviation over the seeds, or that is not known."""
    return lead.std is None or lead.mean <= lead.std


def _lead(best: Row, second: Row) -> str:
    lead = difference(best, second)
    far = "level with" if points(lead.mean) == "0.0" else f"{points(lead.mean)} points above"
    text = f"{far} {second.name} ({_accuracy(second)})."
    if lead.std is None:
        return f"{text} One seed cannot tell a lead from chance."
    seen = f"seed by seed the difference is {' '.join(lead.parts(points))} points"
    if within_spread(lead):
        return f"{text} That is within the spread: {seen}, so these seeds do not tell the two apart."
    return f"{text} That is more than the spread: {seen}."


def notes(summary: Summary) -> list[str]:
    """What a reader of the numbers has to know besides, one sentence each."""
    found = []
    missing = summary.planned - summary.finished
    if missing:
        what = "has no result" if missing == 1 else "have no result"
        found.append(f"{missing} of {plural(summary.planned, 'run')} {what}: see Failures.")
    peeked = [row.name for row in summary.rows if row.parameters.get("selection") == "test"]
    if peeked:
        found.append(
            f"Not an honest result: in {listing(peeked)} when networks stopped, and which of their settings "
            'they took, was chosen by the test data, which also judges them (selection = "test").'
        )
    ranked = _ranked(summary)
    if ranked:
        found += _about_the_best(ranked)
    if ranked and not summary.baselines:
        found.append("No silo trained alone first, so there is no gain to report.")
    left_out = [row.name for row in summary.rows if row not in ranked]
    if ranked and left_out:
        found.append(f"Without an accuracy on every seed, and therefore left out above: {listing(left_out)}.")
    if len(summary.baselines) > 1:
        told = "; ".join(f"{listing(one.methods)}: {one.accuracy.percent}" for one in summary.baselines)
        found.append(
            f"Local training is not the same for all methods ({told}). Relative accuracy and gains are "
            "against a method's own; accuracies can be compared."
        )
    partial = [
        f"{row.name}, seed {run.seed} ({run.scored} of {run.silos})"
        for row in summary.rows
        for run in row.runs
        if run.accuracy is not None and run.scored < run.silos
    ]
    if partial:
        found.append(
            f"Means are over the silos with a score after every stage, not all in {listing(partial, 4)}."
        )
    return found


def _about_the_best(ranked: Sequence[Row]) -> list[str]:
    best, *others = ranked
    found = []
    near = [row.name for row in others[1:] if within_spread(difference(best, row))]
    if near and len(best.runs) > 1:
        found.append(f"{best.name} is not ahead of {listing(near)} by more than the spread.")
    if best.alone and others:
        found.append(f"{best.name} is local training: no method that exchanges anything is ahead of it.")
    elif best.relative:
        text = f"Relative accuracy (federated ÷ local) of {best.name}: {best.relative.ratio}"
        found.append(f"{text}, less than local training alone." if best.relative.mean < 1 else f"{text}.")
    first = max((row for row in ranked if row.relative), key=lambda row: _mean(row.relative), default=None)
    if first and first.relative and best.relative and first is not best:
        found.append(f"By relative accuracy {first.name} is first: {first.relative.ratio}.")
    return found


def _accuracy(row: Row) -> str:
    assert row.accuracy is not None
    return row.accuracy.percent


def _mean(value: Average | None) -> float:
    return value.mean if value is not None else 0.0
