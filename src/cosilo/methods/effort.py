"""What a method does as far as methods have to be equal in it, if their results are to be compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from cosilo.coordination.institution import Institution
from cosilo.learners.training import Training
from cosilo.protocol.participant import Participant
from cosilo.silo.silo import Silo


@dataclass(frozen=True)
class Effort:
    """None stands for what a method does not have, or what is not known before it has run."""

    #: Models that leave silos in a round.
    uploads: int | None = None
    #: Instances that a silo trains on in all, its own, elected, public or those of its target, in epochs of
    #: its own data; the mean where not all take part, and the most where it is not known before.
    epochs: float | None = None
    #: Once in how many rounds models are judged.
    judged_every: int | None = None
    #: The share of a silo's labelled data that its models never learn from.
    held_out: float | None = None


def plain_silos(participants: Sequence[Participant]) -> list[Silo]:
    """The silos that train: those without members, and members."""
    found: list[Silo] = []
    for one in participants:
        found += one.silos if isinstance(one, Institution) else [one] if isinstance(one, Silo) else []
    return found


def hidden_share(participants: Sequence[Participant]) -> float:
    """The share of silos' labelled data that only a method for targets learns from, in the mean."""
    return fmean(silo.hidden_share for silo in plain_silos(participants))


def epochs_of(
    participants: Sequence[Participant], which: Literal["training", "update"] = "training", others: int = 0
) -> float | None:
    """The epochs that owners set, in the mean, in epochs of a silo's own data; None if a learner has none.

    An epoch is longer where the silo trains on `others` beside its own instances. Where an owner set how many
    instances are seen, it is these.
    """
    found = []
    for silo in plain_silos(participants):
        training = getattr(silo.learner, which, None)
        if not isinstance(training, Training):
            return None
        passes = training.epochs * (silo.size + others) if training.passes is None else training.passes
        found.append(passes / silo.size)
    return fmean(found) if found else None
