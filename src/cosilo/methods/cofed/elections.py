"""What becomes of the votes: by the paper's threshold, or by shares over all classes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.aggregation.voting import (
    FEWEST,
    Credibility,
    Votes,
    credibility,
    elect,
    share_bytes,
    vote_dtype,
    winners,
)
from cosilo.protocol.message import Fields, Message
from cosilo.protocol.task import Task

#: A label that leads by so many votes counts fully.
CLEAR = 2
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


class Outcome(Protocol):
    """What an election came to."""

    def message(self, task: list[int], voter: int | None) -> Message:
        """What a silo with these classes is told; `voter` is its place among the ballots, if it voted.

        It is also told which labels would be the same without its own vote: those can be held against data
        that its model, and so its vote, has seen.
        """

    def labels(self, task: list[int]) -> Labels:
        """The labels that it gets that way."""

    def per_class(self) -> NDArray[np.int64]:
        """How many instances each class of the vocabulary has."""


class ByThreshold:
    """Eqs. 18 and 19: an instance enters every class that more than the share α of its silos gave it."""

    def __init__(self, ballots: Ballots, alpha: float, weights: Sequence[float]) -> None:
        self._elected = elect(ballots.votes, ballots.tasks, ballots.n_classes, alpha, weights)
        self._ballots, self._alpha, self._weights = ballots, alpha, list(weights)
        self._totals = _totals(ballots, weights)

    def message(self, task: list[int], voter: int | None) -> Message:
        """R_i, in the silo's own codes."""
        index, label = self.labels(task)
        stands = np.ones(len(index), bool)
        if voter is not None:
            code = np.array(task)[label]
            rest, count = self._totals[code] - self._weights[voter], np.zeros(len(index))
            for place, (votes, weight) in enumerate(zip(self._ballots.votes, self._weights, strict=True)):
                if place != voter:
                    count += weight * (votes[index] == code)
            stands = np.divide(count, rest, out=np.zeros(len(index)), where=rest > 1e-12) > self._alpha
        return {"index": index, "label": label, "stands": stands.astype(np.uint8)}

    def labels(self, task: list[int]) -> Labels:
        """R_i."""
        index, label = self._elected.for_task(task)
        return index, _own_codes(task, self._elected.n_classes)[label]

    def per_class(self) -> NDArray[np.int64]:
        """|P_c|."""
        return self._elected.per_class()


class ByShares:
    """An instance goes to the class that leads over all classes, and counts fully if it leads by two votes.

    `soft` also tells silos the shares that their other classes have there, for networks to learn.
    """

    def __init__(
        self, ballots: Ballots, weights: Sequence[float], alpha: float = 0.0, soft: bool = False
    ) -> None:
        self._n_classes, self._alpha, self._holders = ballots.n_classes, alpha, ballots.holders()
        self._votes, self._weights, self._totals = ballots.votes, list(weights), _totals(ballots, weights)
        self._won = winners(ballots.votes, ballots.tasks, ballots.n_classes, weights, alpha)
        self._shares = share_bytes(ballots.votes, ballots.tasks, ballots.n_classes, weights) if soft else None

    def message(self, task: list[int], voter: int | None) -> Message:
        """Where one of its classes leads, that class, and in a byte how much the label counts.

        That is by how many votes of those who have the class it leads over the next one, of two: who leads by
        one vote would not without it. Votes count here as they weigh. All labels of a class that fewer than
        three silos have count half: more would show somebody's vote. `part` is what the silo's own vote is of
        the share of each class.
        """
        index, label = self.labels(task)
        own = 0.0 if voter is None else self._weights[voter]
        part = np.divide(own, self._totals[task], out=np.zeros(len(task)), where=self._totals[task] > 0)
        stands = np.ones(len(index), bool)
        if voter is not None:
            stands = self._stands(index, label, np.array(task), voter, part)
        code = np.array(task)[label]
        ahead = (self._won.share[index] - self._won.second[index]) * self._totals[code]
        counts = np.where(self._holders[code] < FEWEST, 0.5, np.minimum(ahead / CLEAR, 1))
        told = {
            "index": index,
            "label": label,
            "stands": stands.astype(np.uint8),
            "weight": np.maximum(np.rint(255 * counts), 1).astype(np.uint8),
        }
        if self._shares is not None:
            told["shares"] = self._shares[index[:, None], task]
            told["part"] = part.astype(np.float32)
        return told

    def _stands(
        self,
        index: NDArray[Any],
        label: NDArray[Any],
        task: NDArray[np.int64],
        voter: int,
        part: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Whether a class still leads without one vote, on the safe side: the second may gain the most."""
        rest = np.maximum(1 - part, 1e-9)
        mine = self._votes[voter][index] == task[label]
        left = (self._won.share[index] - np.where(mine, part[label], 0)) / rest[label]
        return np.asarray((left > self._won.second[index] / rest.min() + 1e-6) & (left > self._alpha))

    def labels(self, task: list[int]) -> Labels:
        """Where one of its classes leads over all, that class."""
        index, label = self._won.for_task(task)
        return index, _own_codes(task, self._n_classes)[label]

    def per_class(self) -> NDArray[np.int64]:
        """How many instances each class has won."""
        label = self._won.label
        return np.bincount(label[label >= 0], minlength=self._n_classes).astype(np.int64, copy=False)


def _totals(ballots: Ballots, weights: Sequence[float]) -> NDArray[np.float64]:
    """By class, what the votes of all who have it weigh."""
    total = np.zeros(ballots.n_classes)
    for task, weight in zip(ballots.tasks, weights, strict=True):
        total[task] += weight
    return total


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
