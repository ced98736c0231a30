"""The guard: what a federation offers is taken only if the silo's own data does not speak against it.

Before and after are compared on instances that neither has learnt from, by those on which just one of the two
is right: with b that the offer alone gets right and c that it alone gets wrong, it is refused if

    b − c < −z · √(b + c),

which a model that is in truth as good as the one before meets with a probability of about Φ(−z) (McNemar's
test, one-sided). A silo whose own data is of one kind cannot see what it learns about others: to ask for
proof of a gain would turn most gains down.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosilo.learners.base import Learner
from cosilo.silo.data import Examples
from cosilo.silo.holdings import Holdings

#: How many standard errors the offer may be behind; one in six equally good offers is turned down.
Z = 1.0
FOLDS = 5

#: Trains a learner on some of the silo's own examples, and on what others taught.
Train = Callable[[Learner, Examples], None]


@dataclass(frozen=True)
class Decision:
    """What the silo's own data says of an offer."""

    #: Instances that were looked at; those that only the offer gets right, and that it alone gets wrong.
    instances: int
    gained: int
    lost: int

    @property
    def accepted(self) -> bool:
        """Whether the offer is taken.

        >>> Decision(50, gained=5, lost=2).accepted, Decision(50, gained=1, lost=9).accepted
        (True, False)
        """
        return self.gained - self.lost >= -Z * math.sqrt(self.gained + self.lost)


def decide(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Decision:
    """From which instances each of the two gets right."""
    return Decision(len(before), int(np.sum(after & ~before)), int(np.sum(before & ~after)))


def by_held_out(silo: Holdings, trial: Learner, update: Train) -> Decision:
    """With a trial that has not learnt from the validation part: it is updated, and asked again."""
    held, rest = silo.data.validation()
    before = trial.predict(held[0]) == held[1]
    offer = deepcopy(trial)
    update(offer, rest)
    return decide(before, offer.predict(held[0]) == held[1])


def out_of_fold(silo: Holdings, train: Train, update: Train) -> Decision:
    """With every instance held out once: dear for large models, and five times as much to go by."""
    before, after = [], []
    for (X, y), kept in silo.data.folds(FOLDS):
        alone, offer = deepcopy(silo.learner), deepcopy(silo.learner)
        train(alone, kept)
        update(offer, kept)
        before.append(alone.predict(X) == y)
        after.append(offer.predict(X) == y)
    return decide(np.concatenate(before), np.concatenate(after))
