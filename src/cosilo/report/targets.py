"""What silos with a target got out of a run: how many of their unlabelled points have the right label."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cosilo.protocol.stage import FEDERATED, LOCAL, Score, Stage
from cosilo.report.results import scores_by_stage


@dataclass(frozen=True)
class Targets:
    """The target classes by silo, and how good the labels are where the truth is known and shared."""

    wanted: Mapping[str, tuple[str, ...]]
    stages: tuple[Stage, ...]
    #: By silo and stage.
    scores: Mapping[str, Mapping[Stage, Score]]
    #: Mean by stage, over the silos that have a score after every stage; `compared` of them.
    means: Mapping[Stage, float]
    compared: int

    @property
    def shown(self) -> list[Stage]:
        """The stages that stand in the table of silos."""
        there = {stage for own in self.scores.values() for stage in own}
        return [stage for stage in (LOCAL, FEDERATED) if stage in there]

    def score(self, silo: str, stage: Stage) -> Score | None:
        """How good the labels of a silo were after a stage."""
        return self.scores.get(silo, {}).get(stage)


def targets(result: Mapping[str, Any], names: Sequence[str]) -> Targets:
    """Read `wanted` and `labelling`; a run without targets has neither."""
    found = scores_by_stage(result.get("labelling", {}))
    stages = tuple(found)
    scores = {
        name: {stage: by_silo[name] for stage, by_silo in found.items() if name in by_silo} for name in names
    }
    whole = [own for own in scores.values() if stages and len(own) == len(stages)]
    means = {stage: statistics.fmean(own[stage].accuracy for own in whole) for stage in stages if whole}
    wanted = {name: tuple(map(str, classes)) for name, classes in result.get("wanted", {}).items()}
    return Targets(wanted, stages, scores, means, len(whole))
