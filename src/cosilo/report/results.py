"""What every run finds out: scores, gains, overlap of tasks, failures."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from cosilo.data.labels import in_order
from cosilo.protocol.stage import FEDERATED, LOCAL, Score, Stage
from cosilo.runs.run import RunDirectory

#: Up to this many silos have a row each; of more, the tables show those that lost and gained most.
MOST_ROWS, ENDS = 200, 20
#: Silos in a square of silos, and lines in a figure; of more, so many evenly from all.
MOST_DRAWN = 100
#: A histogram with more bars than this gets wider ones.
_MOST_BARS = 16

T = TypeVar("T")


def standard_error(score: Score) -> float:
    """Of an accuracy: what comes from the size of the test set alone.

    Two more instances count as right and two as wrong (Agresti and Coull): else twenty of twenty would leave
    no doubt at all.

    >>> round(standard_error(Score(0.8, 100)), 4), round(standard_error(Score(1.0, 20)), 4)
    (0.04, 0.0564)
    """
    if not score.instances:
        return math.nan
    number = score.instances + 4
    share = (score.accuracy * score.instances + 2) / number
    return math.sqrt(share * (1 - share) / number)


@dataclass(frozen=True)
class StepFailure:
    """A step a silo did not do, with the one line that says why."""

    silo: str
    step: str
    kind: str
    text: str


@dataclass(frozen=True)
class SiloResult:
    """One silo: its task, its scores by stage, the steps that it failed in."""

    name: str
    classes: tuple[str, ...]
    scores: Mapping[Stage, Score]
    relative: float | None
    failures: tuple[StepFailure, ...]

    @property
    def private(self) -> bool:
        """Whether the silo took part and shared no score."""
        return not self.scores and not self.failures

    @property
    def clear(self) -> bool:
        """Whether the change is larger than two standard errors of the difference.

        Both scores are from the same test set; taking them as independent makes this the cautious side.
        """
        if self.relative is None:
            return False
        local, federated = self.scores[LOCAL], self.scores[FEDERATED]
        error = math.hypot(standard_error(local), standard_error(federated))
        return abs(federated.accuracy - local.accuracy) > 2 * error


@dataclass(frozen=True)
class Spread:
    """The relative accuracies of all silos that share them."""

    mean: float
    median: float
    low: float
    high: float
    gained: int
    same: int
    lost: int
    clear_gains: int
    clear_losses: int
    #: Half of the 95 % interval of the mean: what the sizes of the test sets leave open.
    margin: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean; a ratio of accuracies is not below 0."""
        return max(0.0, self.mean - self.margin), self.mean + self.margin

    @property
    def silos(self) -> int:
        """How many there are."""
        return self.gained + self.same + self.lost


@dataclass(frozen=True)
class Histogram:
    """Counts between edges; a bar has its left edge and not its right one, and 1 is always an edge."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Results:
    """What depends on settings, data and seed alone."""

    stages: tuple[Stage, ...]
    vocabulary: tuple[str, ...]
    silos: tuple[SiloResult, ...]
    #: Mean accuracy by stage, over the silos that have a score after every stage; `compared` of them.
    means: Mapping[Stage, float]
    compared: int
    spread: Spread | None
    histogram: Histogram | None
    #: How many classes two silos have in common; on the diagonal, how many one has.
    overlap: tuple[tuple[int, ...], ...]
    failures: tuple[StepFailure, ...]
    #: By silo: what as much training without the others would have come to, relative to local training.
    control: Mapping[str, float]
    #: By silo: the accuracy of the last model that it was offered, used or not.
    offered: Mapping[str, float]
    #: Accuracy by stage of the one global network, on the test data of all silos together.
    joint: Mapping[Stage, float]

    @property
    def has_local(self) -> bool:
        """Whether silos first trained alone: without that there is nothing to be relative to."""
        return LOCAL in self.stages

    @property
    def taught(self) -> float | None:
        """What silos gained beyond their controls, relative to local training: the mean."""
        gains = [
            silo.relative - self.control[silo.name]
            for silo in self.silos
            if silo.relative is not None and silo.name in self.control
        ]
        return statistics.fmean(gains) if gains else None

    def means_among(self, names: Collection[str]) -> dict[Stage, float]:
        """Mean accuracy by stage over some silos, which have to have a score after every stage."""
        return _means([silo for silo in self.silos if silo.name in names], self.stages)

    @property
    def many(self) -> bool:
        """Whether there are too many silos for a row each."""
        return len(self.silos) > MOST_ROWS

    @cached_property
    def shown(self) -> tuple[SiloResult, ...]:
        """The silos that tables have a row for: all, or those that lost most and those that gained most.

        Where nothing can be compared, it is the lowest and the highest accuracies that are shown.
        """
        if not self.many:
            return self.silos

        def rank(silo: SiloResult) -> float | None:
            last = list(silo.scores.values())[-1:]
            return silo.relative if self.spread else last[0].accuracy if last else None

        ranked = [(value, silo) for silo in self.silos if (value := rank(silo)) is not None]
        ranked.sort(key=lambda one: one[0])
        order = [silo for _, silo in ranked] or list(self.silos)
        return tuple(order if len(order) <= 2 * ENDS else [*order[:ENDS], *order[-ENDS:]])

    @property
    def places(self) -> dict[str, int]:
        """The numbers of the silos in tables, which figures use where there is no room for names."""
        return {silo.name: number for number, silo in enumerate(self.silos, start=1)}


def results(run: RunDirectory, result: Mapping[str, Any]) -> Results:
    """Put together what result.json holds."""
    names: list[str] = run.about["silos"]
    tasks = {name: tuple(map(str, result["tasks"].get(name, ()))) for name in names}
    scores = scores_by_stage(result["scores"])
    stages = tuple(scores)
    relative = run.relative_accuracy()
    failures = _failures(result["failures"], names)
    failed: dict[str, list[StepFailure]] = {}
    for failure in failures:
        failed.setdefault(failure.silo, []).append(failure)
    silos = tuple(
        SiloResult(
            name,
            tasks[name],
            {stage: found[name] for stage, found in scores.items() if name in found},
            relative.get(name),
            tuple(failed.get(name, ())),
        )
        for name in names
    )
    complete = [silo for silo in silos if stages and len(silo.scores) == len(stages)]
    vocabulary = in_order(name for task in tasks.values() for name in task)
    return Results(
        stages=stages,
        vocabulary=vocabulary,
        silos=silos,
        means=_means(complete, stages),
        compared=len(complete),
        spread=_spread(silos),
        histogram=histogram(list(relative.values())),
        overlap=_overlap([silo.classes for silo in evenly(silos, MOST_DRAWN)], vocabulary),
        failures=failures,
        control=run.relative_control(),
        offered={
            name: score.accuracy
            for found in scores_by_stage(result.get("offered", {})).values()
            for name, score in found.items()
        },
        joint={
            Stage.parse(stage): float(score["accuracy"]) for stage, score in result.get("joint", {}).items()
        },
    )


def evenly(things: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of them, evenly from all.

    >>> evenly("abcdefg", 3)
    ['a', 'd', 'g']
    """
    if len(things) <= most:
        return things
    return [things[place] for place in np.linspace(0, len(things) - 1, most).round().astype(int)]


def scores_by_stage(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[Stage, dict[str, Score]]:
    """Scores as result.json has them, by stage and silo."""
    return {
        Stage.parse(stage): {
            name: Score(float(score["accuracy"]), int(score["instances"])) for name, score in by_silo.items()
        }
        for stage, by_silo in found.items()
    }


def _means(silos: Sequence[SiloResult], stages: Sequence[Stage]) -> dict[Stage, float]:
    if not silos:
        return {}
    return {stage: statistics.fmean(silo.scores[stage].accuracy for silo in silos) for stage in stages}


def _failures(found: Sequence[Mapping[str, str]], names: list[str]) -> tuple[StepFailure, ...]:
    """In the order of the steps, and within a step in that of the silos: arrival depends on timing."""
    failures = [StepFailure(one["silo"], one["step"], one["kind"], one["text"]) for one in found]
    place = {name: number for number, name in enumerate(names)}
    steps = groupby(failures, key=lambda one: one.step)
    return tuple(one for _, group in steps for one in sorted(group, key=lambda one: place.get(one.silo, -1)))


def _spread(silos: Sequence[SiloResult]) -> Spread | None:
    values = [silo.relative for silo in silos if silo.relative is not None]
    if not values:
        return None
    clear = [silo.relative for silo in silos if silo.relative is not None and silo.clear]
    return Spread(
        mean=statistics.fmean(values),
        median=statistics.median(values),
        low=min(values),
        high=max(values),
        gained=sum(value > 1 for value in values),
        same=sum(value == 1 for value in values),
        lost=sum(value < 1 for value in values),
        clear_gains=sum(value > 1 for value in clear),
        clear_losses=sum(value < 1 for value in clear),
        margin=_margin(silos),
    )


def _margin(silos: Sequence[SiloResult]) -> float:
    """Half of the 95 % interval of the mean relative accuracy of these silos.

    It is these silos that were helped or not, and not others that they would stand for: how much their gains
    differ leaves nothing open. What does is that a test set is a sample; both scores of a silo are taken as
    independent, the cautious side, and the error of their ratio is that of its first-order expansion.
    """
    errors = []
    for silo in silos:
        if silo.relative is not None:
            local, federated = silo.scores[LOCAL], silo.scores[FEDERATED]
            error = math.hypot(standard_error(federated), silo.relative * standard_error(local))
            errors.append(error / local.accuracy)
    return 1.96 * math.hypot(*errors) / len(errors)


def histogram(values: Sequence[float]) -> Histogram | None:
    """Count values in bars of a round width, as narrow as a readable number of bars allows.

    >>> histogram([0.98, 1.0, 1.01, 1.039])
    Histogram(edges=(0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04), counts=(1, 0, 1, 1, 0, 1))
    """
    if not values:
        return None
    widths = (digit * 10.0**power for power in range(-2, 12) for digit in (1, 2, 5))
    for width in widths:
        # 1.15 is in the bar that starts at 1.15, though (1.15 − 1) / 0.05 is a hair less than 3.
        places = [math.floor((value - 1) / width + 1e-9) for value in values]
        first, last = min(places), max(places)
        if last - first < _MOST_BARS:
            break
    edges = tuple(round(1 + place * width, 10) for place in range(first, last + 2))
    return Histogram(edges, tuple(places.count(place) for place in range(first, last + 1)))


def _overlap(tasks: Sequence[tuple[str, ...]], vocabulary: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    code = {name: number for number, name in enumerate(vocabulary)}
    has = np.zeros((len(tasks), len(vocabulary)), dtype=np.int64)
    for number, task in enumerate(tasks):
        has[number, [code[name] for name in task]] = 1
    return tuple(tuple(row) for row in (has @ has.T).tolist())
