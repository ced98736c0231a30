"""The numbers of a comparison: runs in, means and standard deviations over the seeds out; no sentence.

Every number of a run is its last one, never its best. A mean over silos is over those that have a score after
every stage of the run; a spread is the sample standard deviation (n − 1) over the seeds.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cosilo.protocol.stage import LOCAL, Stage
from cosilo.report.averages import Average, average
from cosilo.report.facts import Facts, gather
from cosilo.report.mean_over_time import MeanAtTime, mean_over_time
from cosilo.report.metrics import Change
from cosilo.runs.comparison import Comparison
from cosilo.runs.run import RunDirectory
from cosilo.simulated_time.clock import Clock


@dataclass(frozen=True)
class Point:
    """The accuracy after a stage, and how many rounds there were until then."""

    rounds: int
    stage: Stage
    accuracy: float


@dataclass(frozen=True)
class Numbers:
    """One finished run; None stands for what it does not have."""

    seed: int
    #: Mean over silos, on their own test data: after local training, and at the end.
    local: float | None
    accuracy: float | None
    #: Mean over silos of accuracy ÷ local, and how many silos are above 1.
    relative: float | None
    gained: int
    compared: int
    #: Mean over silos of what as much training without the others comes to ÷ local, and of what is beyond it.
    control: float | None
    taught: float | None
    #: The one global model over all classes, on the test data of all silos together.
    joint: float | None
    #: Of the unlabelled target points, the share that has the right label: mean over silos.
    labelling: float | None
    #: Bytes that left a silo, mean over silos.
    left: float
    seconds: float
    #: All silos, and those with a score after every stage, which the means are over.
    silos: int
    scored: int
    failures: int
    #: Local accuracy by silo: what this run's relative accuracy is relative to.
    baseline: Mapping[str, float]
    curve: tuple[Point, ...]
    joint_curve: tuple[Point, ...]
    #: Seconds by the comparison's clock; and seconds with the accuracy that was then reached.
    simulated: float | None
    time_curve: tuple[tuple[float, float], ...]
    joint_time_curve: tuple[tuple[float, float], ...]
    #: Of every other metric that silos share: means over silos, at the end and of relative gains.
    metrics: Mapping[str, Change]

    @property
    def share(self) -> float | None:
        """The share of silos that gained."""
        return self.gained / self.compared if self.compared else None


@dataclass(frozen=True)
class MeanPoint:
    """A point of a curve: the mean over seeds."""

    rounds: int
    stage: Stage
    accuracy: Average


@dataclass(frozen=True)
class Row:
    """One method."""

    name: str
    parameters: Mapping[str, Any]
    runs: tuple[Numbers, ...]
    #: Why seeds have no result.
    failed: Mapping[int, str]

    @property
    def rounds(self) -> int | None:
        """How many rounds it has, if it has rounds."""
        rounds = self.parameters.get("rounds")
        return rounds if isinstance(rounds, int) else None

    @property
    def accuracy(self) -> Average | None:
        """On each silo's own test data, at the end."""
        return average(run.accuracy for run in self.runs)

    @property
    def alone(self) -> bool:
        """Whether its silos only train, each for itself: then its accuracy is that of local training."""
        return bool(self.runs) and not any(run.curve for run in self.runs)

    @property
    def local(self) -> Average | None:
        """After local training."""
        return average(run.local for run in self.runs)

    @property
    def relative(self) -> Average | None:
        """Accuracy ÷ local."""
        return average(run.relative for run in self.runs)

    @property
    def share(self) -> Average | None:
        """The share of silos that gained."""
        return average(run.share for run in self.runs)

    def metric(self, name: str) -> Average | None:
        """Another metric at the end."""
        return average(run.metrics[name].federated for run in self.runs if name in run.metrics)

    def metric_gain(self, name: str) -> Average | None:
        """The same relative to local training: above 1 is better."""
        return average(run.metrics[name].relative for run in self.runs if name in run.metrics)

    @property
    def joint(self) -> Average | None:
        """Of the global model, at the end."""
        return average(run.joint for run in self.runs)

    @property
    def labelling(self) -> Average | None:
        """The share of target points with the right label, at the end."""
        return average(run.labelling for run in self.runs)

    @property
    def simulated(self) -> Average | None:
        """Simulated seconds of the whole run."""
        return average(run.simulated for run in self.runs)

    @property
    def left(self) -> Average | None:
        """Bytes that left a silo."""
        return average(run.left for run in self.runs)

    @property
    def seconds(self) -> Average | None:
        """At work."""
        return average(run.seconds for run in self.runs)

    @property
    def curve(self) -> tuple[MeanPoint, ...]:
        """Accuracy by round."""
        return _mean_curve([run.curve for run in self.runs])

    @property
    def joint_curve(self) -> tuple[MeanPoint, ...]:
        """Accuracy of the global model by round."""
        return _mean_curve([run.joint_curve for run in self.runs])

    @property
    def time_curve(self) -> tuple[MeanAtTime, ...]:
        """Accuracy by simulated time."""
        return mean_over_time([run.time_curve for run in self.runs if run.time_curve])

    @property
    def joint_time_curve(self) -> tuple[MeanAtTime, ...]:
        """Accuracy of the global model by simulated time."""
        return mean_over_time([run.joint_time_curve for run in self.runs if run.joint_time_curve])


@dataclass(frozen=True)
class Baseline:
    """Methods whose silos have the same local models, and their mean accuracy."""

    methods: tuple[str, ...]
    accuracy: Average


@dataclass(frozen=True)
class Summary:
    """All numbers of a comparison."""

    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    baselines: tuple[Baseline, ...]
    #: The accuracy that the recipe wants to see timed.
    reach: float | None = None

    @property
    def finished(self) -> int:
        """How many runs have a result."""
        return sum(len(row.runs) for row in self.rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics beside accuracy that silos share in any run."""
        return tuple(dict.fromkeys(name for row in self.rows for run in row.runs for name in run.metrics))

    @property
    def planned(self) -> int:
        """How many runs there are."""
        return len(self.rows) * len(self.seeds)


def summarise(comparison: Comparison) -> Summary:
    """Read all runs of a comparison."""
    rows = []
    for name, parameters in comparison.methods.items():
        runs = [comparison.runs.get((name, seed)) for seed in comparison.seeds]
        failed = {cell[1]: failure.text for cell, failure in comparison.failures.items() if cell[0] == name}
        rows.append(Row(name, parameters, _all_numbers(runs, comparison.clock), failed))
    return Summary(comparison.seeds, tuple(rows), baselines(rows), comparison.reach)


def _all_numbers(runs: Sequence[RunDirectory | None], clock: Clock | None) -> tuple[Numbers, ...]:
    return tuple(numbers(run, clock) for run in runs if run)


def numbers(run: RunDirectory, clock: Clock | None = None, among: Collection[str] | None = None) -> Numbers:
    """What one run comes to; all runs of a comparison are on the clock of its recipe.

    `among`: the silos that curves are means over, if another run has judged these only.
    """
    facts = gather(run, clock)
    results, spread = facts.results, facts.results.spread
    by_stage = results.means if among is None else results.means_among(among)
    joint, labels = results.joint, facts.targets.means
    told = facts.simulated if clock is not None else None
    return Numbers(
        seed=facts.about.seed,
        local=results.means.get(LOCAL),
        accuracy=results.means.get(results.stages[-1]) if results.stages else None,
        relative=spread.mean if spread else None,
        gained=spread.gained if spread else 0,
        compared=spread.silos if spread else 0,
        control=fmean(results.control.values()) if results.control else None,
        taught=results.taught,
        joint=list(joint.values())[-1] if joint else None,
        labelling=list(labels.values())[-1] if labels else None,
        left=facts.traffic.total / len(facts.traffic.silos),
        seconds=facts.timing.wall,
        silos=len(results.silos),
        scored=results.compared,
        failures=len(results.failures),
        baseline=run.scores(LOCAL),
        curve=_curve(facts, by_stage),
        joint_curve=_curve(facts, joint),
        simulated=told.total if told else None,
        time_curve=told.curve(by_stage) if told else (),
        joint_time_curve=told.curve(joint) if told else (),
        metrics=facts.metrics.means,
    )


def _curve(facts: Facts, scores: Mapping[Stage, float]) -> tuple[Point, ...]:
    """Scores by round; what comes after the last round, such as fine-tuning, has the number of that round."""
    judged = [stage.round for stage in scores if stage.round is not None]
    end = facts.rounds or max(judged, default=0) + 1
    return tuple(
        Point(end if stage.round is None else stage.round, stage, accuracy)
        for stage, accuracy in scores.items()
        if stage != LOCAL
    )


def _mean_curve(curves: Sequence[Sequence[Point]]) -> tuple[MeanPoint, ...]:
    found: dict[tuple[int, Stage], list[float]] = {}
    for curve in curves:
        for point in curve:
            found.setdefault((point.rounds, point.stage), []).append(point.accuracy)
    marks = []
    for (rounds, stage), values in found.items():
        accuracy = average(values)
        assert accuracy is not None
        marks.append(MeanPoint(rounds, stage, accuracy))
    return tuple(sorted(marks, key=lambda mark: mark.rounds))


def baselines(rows: Sequence[Row]) -> tuple[Baseline, ...]:
    """Methods with the same local scores on all seeds that both have, together; the first of them stands."""
    groups: list[list[Row]] = []
    for row in rows:
        if row.local is None:
            continue
        same = next((group for group in groups if _same_local(group[0], row)), None)
        if same is None:
            groups.append([row])
        else:
            same.append(row)
    found = []
    for group in groups:
        # A seed on which one of them failed is still there in the others.
        by_seed = {run.seed: run.local for row in group for run in row.runs}
        accuracy = average(by_seed.values())
        assert accuracy is not None
        found.append(Baseline(tuple(row.name for row in group), accuracy))
    return tuple(found)


def _same_local(one: Row, other: Row) -> bool:
    theirs = {run.seed: run.baseline for run in other.runs}
    shared = [(run.baseline, theirs[run.seed]) for run in one.runs if run.seed in theirs]
    return bool(shared) and all(
        mine[name] == its[name] for mine, its in shared for name in mine if name in its
    )
