"""What is found out beside scores, for the report: each vote, and what silos' own data said of the offers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from cosilo.aggregation.voting import agreement
from cosilo.methods.cofed.alarm import alarms
from cosilo.methods.cofed.elections import Ballots
from cosilo.protocol.findings import Findings
from cosilo.protocol.message import Fields
from cosilo.protocol.stage import Stage

#: Each of so many voters is compared with each; of more, a sample: pairs grow with the square.
COMPARED = 100


class Vote(BaseModel):
    """One vote: who voted, what was elected, who got how much, who agreed with whom."""

    stage: str
    voters: list[str]
    weights: list[float]
    #: Instances elected, by class.
    elected: dict[str, int]
    #: Instances that each silo was given, by silo.
    received: dict[str, int] = {}
    #: Of these, the share that has the label which the silo itself voted for.
    own_votes: dict[str, float] = {}
    #: The share of the pool on which a silo abstained.
    abstained: dict[str, float]
    #: How far each voter goes with the others, beyond chance: Cohen's κ against what leads among them.
    kappa: dict[str, float] = {}
    #: Of two voters, on the pool; None where they have no class in common.
    agreement: list[list[float | None]]
    #: Whose agreement that is: of many voters some, evenly from all of them; empty: all.
    compared: list[str] = []
    #: What the votes say against the pool or some of the voters.
    alarms: list[str] = []
    #: By silo, what its own data said of the model that it was offered; of those that share metrics.
    decisions: dict[str, "OwnDecision"] = {}

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """A vote in which all are compared is written as it always was."""
        return {key: value for key, value in dump(self).items() if key != "compared" or value}


class OwnDecision(BaseModel):
    """What a silo's own data said of an offer."""

    #: Whether the silo uses the model that it was offered.
    taken: bool
    #: Instances it was asked on; those that only the offer gets right, and that it alone gets wrong. Silos
    #: that do not share exact scores keep these to themselves.
    instances: int | None = None
    gained: int | None = None
    lost: int | None = None
    #: Whether silos agree too little on the pool, so that it asked for proof of a gain.
    doubtful: bool


class Votes(Findings):
    """What CoFED's part of the report reads."""

    voting: list[Vote] = Field(default_factory=list)


def vote_of(
    ballots: Ballots,
    weights: list[float],
    kappa: NDArray[np.float64],
    elected: NDArray[np.int64],
    classes: Sequence[str],
    stage: Stage,
) -> Vote:
    """What can be said of a vote before anybody has learnt from it."""
    kappas = dict(zip(ballots.names, np.round(kappa, 6).tolist(), strict=True))
    by_silo = dict(zip(ballots.names, ballots.votes, strict=True))
    some = ballots if len(ballots.names) <= COMPARED else ballots.some(COMPARED)
    return Vote(
        stage=str(stage),
        voters=ballots.names,
        weights=weights,
        kappa=kappas,
        elected=dict(zip(classes, elected.tolist(), strict=True)),
        abstained={name: float(np.mean(votes == -1)) for name, votes in by_silo.items()},
        agreement=_without_nan(agreement(some.votes, some.tasks, some.n_classes)),
        compared=[] if some is ballots else some.names,
        alarms=alarms(kappas),
    )


def decision_of(reply: Fields) -> OwnDecision:
    """What a silo told of its decision."""
    counts = {name: reply.integer(name) for name in ("instances", "gained", "lost") if name in reply}
    return OwnDecision(
        taken=bool(reply.integer("taken")),
        doubtful="doubtful" in reply and bool(reply.integer("doubtful")),
        **counts,
    )


def _without_nan(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 6) for value in row] for row in matrix]
