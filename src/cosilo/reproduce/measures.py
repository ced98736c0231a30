"""What is read from finished runs, by seed."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from cosilo.comparison.plan import Plan
from cosilo.config.reproduces import Measure, Reproduces, ValuePath
from cosilo.config.settings import Settings, validate
from cosilo.methods.cofed import Votes
from cosilo.protocol.stage import FEDERATED, LOCAL
from cosilo.report.averages import average
from cosilo.report.summary import Numbers, numbers, summarise
from cosilo.report.time_to_accuracy import Goal, rounds_to, seconds_to, time_to_accuracy
from cosilo.runs.comparison import Comparison
from cosilo.runs.run import RunDirectory

#: Measures that say when an accuracy was reached, which all methods of the case have to have reached.
_TIMES = ("rounds_to", "seconds_to")


def finished_seeds(found: Mapping[str, Comparison]) -> list[int]:
    """The seeds on which there is a finished run; `found` are the comparisons by case."""
    return sorted({seed for case in found.values() for _, seed in case.runs})


def measure(found: Mapping[str, Comparison], about: Reproduces) -> dict[str, list[float | None]]:
    """The values of all paths of these cases, one for each seed; None where a run is not finished."""
    seeds = finished_seeds(found)
    values: dict[str, list[float | None]] = {}
    known: dict[tuple[str, str, int], Numbers] = {}
    goals = _goals(found, about)
    for text in about.paths:
        path = ValuePath.parse(text)
        if path.case not in found:
            continue  # another size has it, or it comes later
        case = found[path.case]
        row: list[float | None] = []
        for seed in seeds:
            run = case.runs.get((path.method, seed))
            if run is None:
                row.append(None)
            elif path.whom is not None:
                row.append(_of_some(run, path.measure, chosen_silos(case, run, path.whom)))
            else:
                key = (path.case, path.method, seed)
                if key not in known:
                    known[key] = numbers(run, case.clock)
                row.append(_of_all(run, known[key], path.measure, goals.get(path.case)))
        values[text] = row
    for number in about.number:
        if number.over is not None and (ratios := _mean_ratios(found, number.of, number.over)):
            values[number.key] = ratios
    return values


def measure_goals(found: Mapping[str, Comparison], about: Reproduces) -> dict[str, float]:
    """The accuracy that methods are timed to, by case and seed, such as "iid 200"."""
    return {
        f"{case} {seed}": goal.accuracy
        for case, goal in _goals(found, about).items()
        for seed in finished_seeds({case: found[case]})
    }


def _goals(found: Mapping[str, Comparison], about: Reproduces) -> dict[str, Goal]:
    """By case, where the time to an accuracy is asked for."""
    paths = [ValuePath.parse(text) for text in about.paths]
    timed = dict.fromkeys(path.case for path in paths if path.measure in _TIMES and path.case in found)
    goals = {}
    for case in timed:
        summary = summarise(found[case])  # which may have other methods too
        rows = tuple(row for row in summary.rows if row.name in about.methods)
        if (goal := time_to_accuracy(replace(summary, rows=rows))) is not None:
            goals[case] = goal
    return goals


def measure_curves(
    found: Mapping[str, Comparison], about: Reproduces
) -> dict[str, list[list[tuple[float, float]]]]:
    """The points of all lines of these cases' curves, for each seed; none where a run is not finished.

    The lines of a panel are means over the same silos: CoFED's update may be done by some of them only.
    """
    points: dict[str, list[list[tuple[float, float]]]] = {}
    for curve in about.curve:
        lines = {text: ValuePath.parse(text) for text in curve.of.values()}
        there = {text: path for text, path in lines.items() if path.case in found}
        for seed in finished_seeds(found):
            runs = {text: found[path.case].runs.get((path.method, seed)) for text, path in there.items()}
            among = _judged_by_all([run for run in runs.values() if run is not None])
            for text, run in runs.items():
                path = there[text]
                told = None if run is None else numbers(run, found[path.case].clock, among)
                row = [] if told is None else _points(told, path.measure == "joint", curve.over)
                points.setdefault(curve.key(text), []).append(row)
    return {line: rows for line, rows in points.items() if any(rows)}


def _judged_by_all(runs: Sequence[RunDirectory]) -> set[str] | None:
    """The silos that all runs have a score of after every stage; None if these are all that any run has."""
    stages = [list(run.result["scores"].values()) for run in runs]
    judged = [set.intersection(*map(set, by_stage)) for by_stage in stages if by_stage]
    common = set.intersection(*judged) if judged else set()
    return common if common and any(names != common for names in judged) else None


def _points(told: Numbers, joint: bool, over: Literal["rounds", "seconds"]) -> list[tuple[float, float]]:
    if over == "seconds":
        return list(told.joint_time_curve if joint else told.time_curve)
    return [(point.rounds, point.accuracy) for point in (told.joint_curve if joint else told.curve)]


def _mean_ratios(found: Mapping[str, Comparison], of: str, over: str) -> list[float | None]:
    """For each seed the mean over silos of the ratio of two values; nothing if they are not silos'."""
    rows = []
    for text in (of, over):
        path = ValuePath.parse(text)
        case = found.get(path.case)
        if case is None:
            return []
        rows.append([_of_silos(case, path, seed) for seed in finished_seeds(found)])
    means = [
        average(one[name] / other[name] for name in one if other.get(name))
        for one, other in zip(*rows, strict=True)
    ]
    return [None if mean is None else mean.mean for mean in means] if any(means) else []


def _of_all(run: RunDirectory, told: Numbers, what: Measure, goal: Goal | None) -> float | None:
    if what in _TIMES:
        if goal is None:
            return None
        when = seconds_to if what == "seconds_to" else rounds_to
        return when(goal.accuracy, goal.joint, told)
    if what == "elected":
        votes = run.findings(Votes)
        return float(sum(votes.voting[-1].elected.values())) if votes and votes.voting else None
    if what == "own_votes":
        mean = average(_own_votes(run).values())
        return None if mean is None else mean.mean
    read: Callable[[Numbers], float | None] = {
        "accuracy": lambda one: one.accuracy,
        "local": lambda one: one.local,
        "relative": lambda one: one.relative,
        "share": lambda one: one.share,
        "control": lambda one: one.control,
        "taught": lambda one: one.taught,
        "joint": lambda one: one.joint,
        "labelling": lambda one: one.labelling,
        "bytes": lambda one: one.left,
    }[what]
    return read(told)


def _of_some(run: RunDirectory, what: Measure, silos: list[str]) -> float | None:
    """The mean over some of the silos."""
    values = _by_silo(run, what)
    mean = average(values.get(name) for name in silos)
    return None if mean is None else mean.mean


def _own_votes(run: RunDirectory) -> dict[str, float]:
    """Of the labels that a silo was given, the share that it had voted for itself."""
    votes = run.findings(Votes)
    return votes.voting[-1].own_votes if votes and votes.voting else {}


def _by_silo(run: RunDirectory, what: Measure) -> dict[str, float]:
    """What a measure is the mean of; nothing if it is none."""
    if what == "bytes":
        return {name: float(run.bytes_sent(name)) for name in run.about["silos"]}
    relative, control = run.relative_accuracy(), run.relative_control()
    labelling = run.result.get("labelling", {}).get(str(FEDERATED), {})
    found: dict[str, dict[str, float]] = {
        "accuracy": run.scores(FEDERATED),
        "local": run.scores(LOCAL),
        "relative": relative,
        "share": {name: float(value > 1) for name, value in relative.items()},
        "control": control,
        "taught": {name: value - control[name] for name, value in relative.items() if name in control},
        "own_votes": _own_votes(run),
        "joint": run.joint_accuracies() if what == "joint" else {},
        "labelling": {name: score["accuracy"] for name, score in labelling.items()},
    }
    return found.get(what, {})


def measure_silos(
    found: Mapping[str, Comparison], about: Reproduces
) -> dict[str, list[dict[str, float] | None]]:
    """By silo, for each seed, the values of those paths that are means over silos."""
    values: dict[str, list[dict[str, float] | None]] = {}
    for text in about.paths:
        path = ValuePath.parse(text)
        if path.case not in found:
            continue
        row = [_of_silos(found[path.case], path, seed) or None for seed in finished_seeds(found)]
        if any(row):
            values[text] = row
    return values


def _of_silos(case: Comparison, path: ValuePath, seed: int) -> dict[str, float]:
    """What a path is the mean of on one seed, by silo; nothing if it is no mean over silos."""
    run = case.runs.get((path.method, seed))
    mine = {} if run is None else _by_silo(run, path.measure)
    if run is not None and path.whom is not None:
        chosen = chosen_silos(case, run, path.whom)
        mine = {name: value for name, value in mine.items() if name in chosen}
    return mine


def chosen_silos(comparison: Comparison, run: RunDirectory, whom: str) -> list[str]:
    """The silo of that name, silos of that name with a number, or silos whose learner has that name."""
    settings = validate(comparison.values, comparison.source)
    return _chosen(settings, list(run.about["silos"]), whom)


def unknown_silos(case: str, plan: Plan, names: list[str], about: Reproduces) -> list[str]:
    """One line for each path of a case that names silos or learners which are not there."""
    named = {path: ValuePath.parse(path) for path in about.paths}
    odd = {
        text: path.whom
        for text, path in named.items()
        if path.case == case and path.whom is not None and not _chosen(plan.settings, names, path.whom)
    }
    return [
        f"{plan.source.name}: reproduces: no silo and no learner {who!r} in {at!r}" for at, who in odd.items()
    ]


def _chosen(settings: Settings, names: list[str], whom: str) -> list[str]:
    named = [name for name in names if name == whom or re.fullmatch(rf"{re.escape(whom)}-\d+", name)]
    if named or settings.simulation is None:
        return named
    # Learners are dealt in turn.
    learners = [one.use.rpartition(".")[2] for one in settings.simulation.learners]
    return [name for place, name in enumerate(names) if learners[place % len(learners)] == whom]
