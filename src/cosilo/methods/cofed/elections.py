"""Elections at the coordinator: by the paper's threshold, or by shares over all classes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.aggregation.voting import (
    Credibility,
    Rule,
    Tallies,
    Votes,
    VoteTable,
    credibility,
    elect,
    vote_dtype,
    whole_weights,
)
from cosilo.protocol.message import Fields
from cosilo.protocol.task import Task

#: Pool positions, and the class of each in the silo's own codes.
Labels = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Ballots:
    """What every silo voted, in the codes of the vocabulary."""

    names: list[str]
    votes: list[Votes]
    tasks: list[list[int]]
    n_classes: int

    @classmethod
    def of(
        cls,
        replies: Mapping[str, Fields],
        tasks: Mapping[str, Task],
        vocabulary: Task,
        among: Collection[str],
    ) -> "Ballots":
        """Those of some of the silos that voted."""
        names = [name for name in replies if name in among]
        codes = [tasks[name].codes_in(vocabulary) for name in names]
        told = (_translate(replies[name].array("votes"), own) for name, own in zip(names, codes, strict=True))
        first = next(told, None)
        if first is None:
            return cls(names, [], codes, len(vocabulary))
        # Side by side, and on disk if they are many: replies come one at a time.
        votes = mapped.empty((len(names), len(first)), vote_dtype(len(vocabulary)))
        votes[0] = first
        for place, row in enumerate(told, start=1):
            votes[place] = row
        return cls(names, list(votes), codes, len(vocabulary))

    def credibility(self) -> Credibility:
        """How far each silo goes with the others, beyond chance."""
        return credibility(self.votes, self.tasks, self.n_classes)

    def read(self, credible: Credibility) -> "Ballots":
        """With the votes of silos that take their classes for each other as they are meant."""
        return replace(self, votes=credible.read(self.votes))

    def some(self, count: int) -> "Ballots":
        """Those of so many silos, evenly from all of them."""
        places = np.linspace(0, len(self.names) - 1, count).round().astype(int).tolist()
        return replace(
            self,
            names=[self.names[place] for place in places],
            votes=[self.votes[place] for place in places],
            tasks=[self.tasks[place] for place in places],
        )

    def holders(self) -> NDArray[np.int64]:
        """How many silos have each class."""
        return np.bincount([code for task in self.tasks for code in set(task)], minlength=self.n_classes)


class Outcome(ABC):
    """The outcome of an election by some rule."""

    #: The rule, as silos apply it.
    rule: Rule

    def __init__(self, ballots: Ballots, weights: Sequence[float]) -> None:
        self._ballots, self._weights = ballots, list(weights)
        #: By place among the ballots, what a vote weighs in whole units.
        self._units = whole_weights(weights)[0]

    def own_weight(self, voter: int | None) -> int:
        """Return the weight of a silo's own vote in units; `voter` is its place among the ballots."""
        return 0 if voter is None else int(self._units[voter])

    @abstractmethod
    def tallies(self, task: list[int]) -> Tallies:
        """Return what silos with these classes are told, apart from the weight of their own vote."""

    @abstractmethod
    def labels(self, task: list[int]) -> Labels:
        """Return the labels that such silos get that way."""

    @abstractmethod
    def per_class(self) -> NDArray[np.int64]:
        """Return how many instances each class of the vocabulary has."""

    def _count(self) -> VoteTable:
        ballots = self._ballots
        return VoteTable.of(ballots.votes, ballots.tasks, ballots.n_classes, self._weights)


class ByThreshold(Outcome):
    """Eqs. 18 and 19: an instance enters every class that more than the share α of its silos gave it."""

    def __init__(self, ballots: Ballots, alpha: float, weights: Sequence[float]) -> None:
        super().__init__(ballots, weights)
        self.rule = Rule("paper", alpha)
        units = self._units.astype(np.float64).tolist()
        self._elected = elect(ballots.votes, ballots.tasks, ballots.n_classes, alpha, units)

    @cached_property
    def _table(self) -> VoteTable:
        return self._count()

    def tallies(self, task: list[int]) -> Tallies:
        """Return the counts of the silos' own classes."""
        return self._table.tallies(task, self.rule)

    def labels(self, task: list[int]) -> Labels:
        """Return R_i."""
        index, label = self._elected.for_task(task)
        return index, _own_codes(task, self._elected.n_classes)[label]

    def per_class(self) -> NDArray[np.int64]:
        """Return |P_c|."""
        return self._elected.per_class()


class ByShares(Outcome):
    """An instance goes to the class that leads over all classes, and counts fully if it leads by two votes.

    With `soft`, networks learn the shares of all their classes there.
    """

    def __init__(
        self, ballots: Ballots, weights: Sequence[float], alpha: float = 0.0, soft: bool = False
    ) -> None:
        super().__init__(ballots, weights)
        self.rule = Rule("shares" if soft else "winner", alpha)
        self._table = self._count()
        self._won = self._table.winners(alpha)

    def tallies(self, task: list[int]) -> Tallies:
        """Return the counts of the silos' own classes, and the largest share of all others."""
        return self._table.tallies(task, self.rule, self._won)

    def labels(self, task: list[int]) -> Labels:
        """Return the class of each instance on which one of these classes leads over all."""
        index, label = self._won.for_task(task)
        return index, _own_codes(task, self._ballots.n_classes)[label]

    def per_class(self) -> NDArray[np.int64]:
        """Return how many instances each class has won."""
        label = self._won.label
        return np.bincount(label[label >= 0], minlength=self._ballots.n_classes).astype(np.int64, copy=False)


def without_vote(
    share: NDArray[np.float64], vote: NDArray[np.signedinteger[Any]], part: NDArray[Any]
) -> NDArray[np.float64]:
    """What shares would be without one silo's vote, given its part of the share of each class.

    Two of four gave it the first class, and the silo was one of them:

    >>> without_vote(np.array([[0.5, 0.25]]), np.array([0]), np.array([0.25, 0.25]))
    array([[0.33333333, 0.33333333]])
    """
    mine = np.zeros(share.shape)
    voted = np.flatnonzero(vote >= 0)
    mine[voted, vote[voted]] = part[vote[voted]]
    left = np.where(share > 0, share - mine, 0.0)  # a class that only a few have is not told: 0
    return np.asarray(np.maximum(left, 0) / np.maximum(1 - part, 1e-9))


def _own_codes(task: list[int], n_classes: int) -> NDArray[np.int32]:
    """By code of the vocabulary, the code in the task."""
    own = np.zeros(n_classes, np.int32)
    own[task] = np.arange(len(task))
    return own


def _translate(votes: NDArray[Any], codes: list[int]) -> NDArray[np.signedinteger[Any]]:
    """Votes in a silo's own codes as votes in the vocabulary's; −1 stays −1."""
    table = np.array([*codes, -1], vote_dtype(max(codes) + 1))  # index −1 is the last place
    translated: NDArray[np.signedinteger[Any]] = table[votes]
    return translated
