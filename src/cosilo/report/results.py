"""What a run found out: scores, gains, overlap of tasks, votes, failures."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from cosilo.data.labels import in_order
from cosilo.runs.run import Run

#: A histogram with more bars than this gets wider ones.
_MOST_BARS = 16


@dataclass(frozen=True)
class Score:
    """An accuracy, and the number of test instances it was taken on."""

    accuracy: float
    instances: int

    @property
    def error(self) -> float:
        """The standard error that comes from the size of the test set alone."""
        return math.sqrt(self.accuracy * (1 - self.accuracy) / self.instances) if self.instances else math.nan


@dataclass(frozen=True)
class Failed:
    """A step a silo did not do, with the one line that says why."""

    silo: str
    step: str
    kind: str
    text: str


@dataclass(frozen=True)
class SiloResult:
    """One silo: its task, its scores by stage, what it got out of the vote."""

    name: str
    classes: tuple[str, ...]
    scores: Mapping[str, Score]
    relative: float | None
    received: int | None
    abstained: float | None
    failures: tuple[Failed, ...]

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
        local, federated = self.scores["local"], self.scores["federated"]
        return abs(federated.accuracy - local.accuracy) > 2 * math.hypot(local.error, federated.error)


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
class Round:
    """One vote: who voted, what was elected, who got how much, who agreed with whom."""

    stage: str
    voters: tuple[str, ...]
    elected: Mapping[str, int]
    received: Mapping[str, int]
    abstained: Mapping[str, float]
    agreement: tuple[tuple[float | None, ...], ...]

    @property
    def mean_agreement(self) -> float | None:
        """Over the pairs of different silos that can be compared."""
        values = [
            value
            for i, row in enumerate(self.agreement)
            for j, value in enumerate(row)
            if i < j and value is not None
        ]
        return statistics.fmean(values) if values else None


@dataclass(frozen=True)
class Results:
    """What depends on settings, data and seed alone."""

    stages: tuple[str, ...]
    vocabulary: tuple[str, ...]
    silos: tuple[SiloResult, ...]
    #: Mean accuracy by stage, over the silos that have a score after every stage; `compared` of them.
    means: Mapping[str, float]
    compared: int
    spread: Spread | None
    histogram: Histogram | None
    #: How many classes two silos have in common; on the diagonal, how many one has.
    overlap: tuple[tuple[int, ...], ...]
    rounds: tuple[Round, ...]
    failures: tuple[Failed, ...]
    #: Accuracy by stage of the one global network, on the test data of all silos together.
    joint: Mapping[str, float]

    @property
    def has_local(self) -> bool:
        """Whether silos first trained alone: without that there is nothing to be relative to."""
        return "local" in self.stages


def results(run: Run, result: Mapping[str, Any]) -> Results:
    """Put together what result.json holds."""
    names: list[str] = run.about["silos"]
    tasks = {name: tuple(map(str, result["tasks"].get(name, ()))) for name in names}
    stages = tuple(result["scores"])
    relative = run.relative_accuracy()
    rounds = tuple(_round(one) for one in result.get("voting", []))
    failures = _failures(result["failures"], names)
    last = rounds[-1] if rounds else None
    silos = tuple(
        SiloResult(
            name,
            tasks[name],
            {
                stage: Score(float(found[name]["accuracy"]), int(found[name]["instances"]))
                for stage, found in result["scores"].items()
                if name in found
            },
            relative.get(name),
            last.received.get(name) if last else None,
            last.abstained.get(name) if last else None,
            tuple(failure for failure in failures if failure.silo == name),
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
        overlap=_overlap(list(tasks.values()), vocabulary),
        rounds=rounds,
        failures=failures,
        joint={stage: float(score["accuracy"]) for stage, score in result.get("joint", {}).items()},
    )


def _means(silos: Sequence[SiloResult], stages: Sequence[str]) -> dict[str, float]:
    if not silos:
        return {}
    return {stage: statistics.fmean(silo.scores[stage].accuracy for silo in silos) for stage in stages}


def _round(found: Mapping[str, Any]) -> Round:
    return Round(
        stage=found["stage"],
        voters=tuple(found["voters"]),
        elected=dict(found["elected"]),
        received=dict(found["received"]),
        abstained=dict(found["abstained"]),
        agreement=tuple(tuple(row) for row in found["agreement"]),
    )


def _failures(found: Sequence[Mapping[str, str]], names: list[str]) -> tuple[Failed, ...]:
    """In the order of the steps, and within a step in that of the silos: arrival is a matter of timing."""
    failures = [Failed(one["silo"], one["step"], one["kind"], one["text"]) for one in found]
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
    )


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
