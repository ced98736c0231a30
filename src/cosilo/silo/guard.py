"""The guard: what a federation offers is taken only if the silo's own data does not speak against it.

Before and after are compared on instances that neither has learnt from, by those on which just one of the two
is right: b that the offer alone gets right and c that it alone gets wrong (McNemar's test, one-sided). What a
silo's own data cannot decide, the votes do: a few dozen instances do not see a loss of five in a hundred, but
how well silos agree on the pool tells a sound one from nonsense. A pool is doubtful to a silo if the median κ
of the voters is below 0.25, or below two thirds of the κ between its own model and its own labels: silos that
know their classes so well would agree better about instances like their own.

- A sound pool: the offer is refused if b − c < −z · √(b + c), with z = 1. An offer that is in truth as good
  as the model before is refused with a probability of Φ(−1), one in six. To ask for proof of a gain would
  turn most gains down: a silo whose own data is of one kind cannot see what it learns about others.
- A doubtful pool: the offer is taken only if b − c > z · √(b + c), with z = 1.645. An offer that is in truth
  no better is taken with a probability of at most 5 %.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from cosilo.aggregation.voting import kappa
from cosilo.learners.base import Codes, Learner
from cosilo.protocol.message import Fields
from cosilo.silo.data import Examples
from cosilo.silo.holdings import Holdings

#: How many standard errors an offer may be behind, and how many it has to lead by if the pool is doubtful.
BEHIND = 1.0
AHEAD = 1.645
#: Below this median κ a pool is doubtful to all, and below this part of its own κ to one silo.
LOW = 0.25
PART = 2 / 3
FOLDS = 5
#: So many instances tell a loss of two in a hundred; more would only be dear.
ENOUGH = 1000

#: Trains a learner on some of the silo's own examples, and on what others taught.
Train = Callable[[Learner, Examples], None]


@dataclass(frozen=True)
class Decision:
    """What the silo's own data says of an offer."""

    #: Instances that were looked at; those that only the offer gets right, and that it alone gets wrong.
    instances: int
    gained: int
    lost: int
    #: Whether the votes say that the pool is unlike the silos' data.
    doubtful: bool | int = False

    @property
    def accepted(self) -> bool:
        """Whether the offer is taken.

        >>> Decision(50, gained=5, lost=2).accepted, Decision(50, gained=1, lost=9).accepted
        (True, False)
        >>> Decision(50, gained=5, lost=2, doubtful=True).accepted
        False
        """
        lead, error = self.gained - self.lost, math.sqrt(self.gained + self.lost)
        return lead > AHEAD * error if self.doubtful else lead >= -BEHIND * error


def noted(notes: Fields) -> Decision | None:
    """The last decision among a silo's notes; None if there was no offer."""
    return Decision(*map(int, notes.array("guard"))) if "guard" in notes else None


def decide(before: Codes, after: Codes, y: Codes, agreement: float = 1.0) -> Decision:
    """From what the two models say of instances of these classes, and how well silos agree on the pool."""
    one, other = before == y, after == y
    own = kappa(before, y, int(max(before.max(initial=0), y.max(initial=0))) + 1)
    doubtful = agreement < max(LOW, PART * own)
    return Decision(len(y), int(np.sum(other & ~one)), int(np.sum(one & ~other)), doubtful)


def by_held_out(silo: Holdings, trial: Learner, update: Train, agreement: float = 1.0) -> Decision:
    """With a trial that has not learnt from the validation part: it is updated, and asked again."""
    held, rest = silo.data.validation()
    before = trial.predict(held[0])
    offer = deepcopy(trial)
    update(offer, rest)
    return decide(before, offer.predict(held[0]), held[1], agreement)


def out_of_fold(silo: Holdings, train: Train, update: Train, agreement: float = 1.0) -> Decision:
    """With every instance held out once, a fifth at a time, until there are enough to go by.

    What is refitted for that is thrown away: the model in use has learnt from all.
    """
    nobody = np.zeros(0, np.int64)
    before, after, truth = [nobody], [nobody], [nobody]
    for (X, y), kept in silo.data.folds(FOLDS):
        alone, offer = deepcopy(silo.learner), deepcopy(silo.learner)
        train(alone, kept)
        update(offer, kept)
        before.append(alone.predict(X))
        after.append(offer.predict(X))
        truth.append(y)
        if sum(map(len, truth)) >= ENOUGH:
            break
    return decide(np.concatenate(before), np.concatenate(after), np.concatenate(truth), agreement)
