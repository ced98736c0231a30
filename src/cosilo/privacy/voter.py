"""The private voter: what it thinks of the pool, and what that cost."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances
from cosilo.learners.base import Codes
from cosilo.privacy import dp_sgd
from cosilo.privacy.accounting import Schedule, noise_multiplier
from cosilo.privacy.features import features
from cosilo.privacy.settings import Privacy

#: How many features there are, from how many records on: the noise grows with them.
_WIDTHS = ((0, 30), (500, 60))
_HIDDEN = 32
#: The least ε times the number of records at which votes tell more of the records than of the noise.
_INFORMED = 400.0


@dataclass(frozen=True)
class Mechanism:
    """How a voter is made, as the ledger says it: all of it is public."""

    voter: str
    epsilon: float
    delta: float
    noise_multiplier: float
    sampling: float
    steps: int
    clip: float
    count_noise: float


def schedule_for(epsilon: float) -> Schedule:
    """What a training of this cost does; the count takes a small part of it.

    Like the rates of `dp_sgd` it was chosen on seeds of MNIST, Adult and DBpedia that no figure comes from.
    """
    return Schedule(count_noise=max(10.0, 20.0 / epsilon))


def mechanism(privacy: Privacy) -> Mechanism:
    """How a voter that keeps this promise is trained."""
    schedule = schedule_for(privacy.epsilon)
    noise = noise_multiplier(privacy.epsilon, privacy.delta, schedule)
    return Mechanism(
        voter=privacy.voter,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise_multiplier=noise,
        clip=dp_sgd.CLIP,
        **asdict(schedule),
    )


class Opinions(NamedTuple):
    """All that is kept of a voter. Both are in the account: what is computed from them costs nothing."""

    #: By pool instance, how likely each class is.
    chances: NDArray[Any]
    #: The number of records it was trained on, with noise; 0 if an earlier version did not keep it.
    records: float

    def are_informed(self, epsilon: float) -> bool:
        """Return whether votes tell enough to hold labels against them.

        With little data or a small ε a voter is mostly noise, and an honest election seldom agrees with it
        (`benchmarks/honest_refusals.py`).

        >>> chances = np.ones((5, 2)) / 2
        >>> Opinions(chances, 150.0).are_informed(3.0), Opinions(chances, 150.0).are_informed(1.0)
        (True, False)
        """
        return epsilon * self.records >= _INFORMED


def opinions(how: Mechanism, X: Instances, y: Codes, n_classes: int, pool: Instances) -> Opinions:
    """Train a voter and return what it thinks of the pool."""
    count = dp_sgd.noisy_count(len(X), how.count_noise)
    width = max(width for least, width in _WIDTHS if count >= least)
    made = features(pool, width)
    schedule = Schedule(how.sampling, how.steps, how.count_noise)
    hidden = _HIDDEN if how.voter == "mlp" else 0
    layers = dp_sgd.train(made(X), y, n_classes, how.noise_multiplier, schedule, count, hidden)
    return Opinions(dp_sgd.chances(layers, made(pool)).astype(np.float32), count)
