"""Stages: the moments of a run after which models are judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cosilo.errors import BadMessage


@dataclass(frozen=True)
class Stage:
    """A moment after which models are judged: local training (LOCAL), a round, the federation (FEDERATED).

    Its text is how it stands in messages and files.

    Parameters
    ----------
    name : str
        What it is: local, round or federated.
    round : int, default None
        The number of the round, where the stage is the end of one.

    Examples
    --------
    >>> str(Stage.after_round(3)), Stage.parse("federated") == FEDERATED
    ('round 3', True)
    """

    name: str
    round: int | None = None

    def __str__(self) -> str:
        return self.name if self.round is None else f"{self.name} {self.round}"

    @classmethod
    def after_round(cls, number: int) -> "Stage":
        """The end of a round; 0 is the state before the first."""
        return cls("round", number)

    @classmethod
    def parse(cls, text: str) -> "Stage":
        """The stage that a text names."""
        if text in (str(LOCAL), str(FEDERATED)):
            return cls(text)
        name, _, number = text.partition(" ")
        if name == "round" and number.isdecimal():
            return cls(name, int(number))
        raise BadMessage(f"stage {text!r}: wants 'local', 'round N' or 'federated'")


LOCAL = Stage("local")
FEDERATED = Stage("federated")


class Measure(StrEnum):
    """What a score is the accuracy of."""

    #: The silo's model, among its own classes.
    OWN = "own"
    #: The global network, among all classes.
    JOINT = "joint"
    #: What the silo's model would be without what others taught it, after as much training.
    CONTROL = "control"
    #: What the federation offered the silo, whether it took that or stayed with what it had.
    OFFERED = "offered"
    #: The labels of unlabelled target points.
    LABELLING = "labelling"


@dataclass(frozen=True)
class Score:
    """An accuracy, how many instances it was taken on, and other metrics by name (`protocol.metrics`)."""

    accuracy: float
    instances: int
    metrics: Mapping[str, Any] = field(default_factory=dict, repr=False)
