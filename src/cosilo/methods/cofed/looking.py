"""What an election would come to, by one rule or another, without any training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from cosilo.methods.cofed.alarm import is_doubtful
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold, Outcome

ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class RuleFacts:
    """One rule: what it elects, and what each silo gets of that."""

    name: str
    #: Instances by class of the vocabulary.
    per_class: tuple[int, ...]
    #: By silo: how many labels it gets, and the share of these that it voted for itself.
    received: Mapping[str, int]
    own_votes: Mapping[str, float]

    @property
    def elected(self) -> int:
        """Pairs of an instance and a class."""
        return sum(self.per_class)

    @property
    def mean_received(self) -> float:
        """Over silos."""
        return fmean(self.received.values()) if self.received else 0.0

    @property
    def mean_own_votes(self) -> float | None:
        """Over silos that get anything: what of it is their own opinion, and teaches them little."""
        return fmean(self.own_votes.values()) if self.own_votes else None


@dataclass(frozen=True)
class Look:
    """All that can be said of the votes of a run."""

    ballots: Ballots
    classes: tuple[str, ...]
    #: Cohen's κ of each silo's votes against what leads among the others.
    kappas: Mapping[str, float]
    rules: tuple[RuleFacts, ...]

    @property
    def holders(self) -> tuple[int, ...]:
        """How many silos have each class."""
        return tuple(self.ballots.holders().tolist())

    @property
    def median_kappa(self) -> float:
        """How far silos go with each other: near 1 on a pool like their data, near 0 on nonsense."""
        return float(np.median(list(self.kappas.values())))

    @property
    def is_doubtful(self) -> bool:
        """Whether the votes speak against the pool."""
        return is_doubtful(list(self.kappas.values()))


def look(ballots: Ballots, classes: Sequence[str], alphas: Sequence[float] = ALPHAS) -> Look:
    """Hold the same votes against each rule."""
    outcomes = dict(paper_rule(ballots, alpha) for alpha in alphas)
    outcomes["winner"] = ByShares(ballots, [1.0] * len(ballots.names))
    outcomes |= [by_agreement(ballots)]
    return Look(
        ballots,
        tuple(classes),
        dict(zip(ballots.names, ballots.credibility().kappa.tolist(), strict=True)),
        tuple(_facts(name, outcome, ballots) for name, outcome in outcomes.items()),
    )


def paper_rule(ballots: Ballots, alpha: float) -> tuple[str, Outcome]:
    """What the paper's rule elects, and what it is called here."""
    return f"α = {alpha:g}", ByThreshold(ballots, alpha, [1.0] * len(ballots.names))


def by_agreement(ballots: Ballots) -> tuple[str, Outcome]:
    """What leads over all classes if votes weigh as far as silos go with each other."""
    credible = ballots.credibility()
    return "winner, by agreement", ByShares(ballots.read(credible), credible.weight.tolist())


def examples(outcome: Outcome, ballots: Ballots, code: int, most: int = 12) -> NDArray[np.int64]:
    """Some pool positions that were elected to a class, evenly from all of them."""
    index, label = outcome.labels([code])
    found = np.asarray(index[label == 0], dtype=np.int64)
    return found[np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)] if len(found) else found


def _facts(name: str, outcome: Outcome, ballots: Ballots) -> RuleFacts:
    received, own = {}, {}
    for silo, task, votes in zip(ballots.names, ballots.tasks, ballots.votes, strict=True):
        index, label = outcome.labels(task)
        received[silo] = len(index)
        if len(index):
            own[silo] = float(np.mean(votes[index] == np.array(task)[label]))
    return RuleFacts(name, tuple(outcome.per_class().tolist()), received, own)
