"""CoFED: silos label one public pool, the coordinator votes, everyone trains on what was elected.

X. Cao, Z. Li, H. Yu and G. Sun, "CoFED: Cross-silo Heterogeneous Federated Multi-task Learning via
Co-training" (section, equation and algorithm numbers below are those of its second version).

Deviations from the paper:

- α = 1 elects nothing: eq. 18 is strict, so "the consent of all" needs an α just below 1.
- A silo may abstain (`margin`, from the authors' code); abstainers stay in TOTAL.
- A silo that failed or was lost before it voted is not in TOTAL: the vote is among those who voted.
- A silo for which nothing was elected keeps its model: update training would only repeat local training.
- Elected labels can be far from the silo's own class proportions, which misleads learners with a prior (see
  benchmarks/class_weights.py). The authors weigh classes for networks only; here every learner
  that takes sample weights sees its own proportions (`class_weights`).
- `weights="accuracy"` uses a validation split of each silo's training data, never its test data.
- When networks stop, and with which settings they train, is chosen on such a split too, in update training of
  D_i ∪ R_i: non-IID, the silo's own instances alone would call a model worse that knows what others know.
  Then they train on everything as was chosen. The authors' code takes the best of 50 local and of 2 update
  settings by test accuracy; `selection="test"` chooses by the loss on test data, and the report says so.
- Non-IID, the text of § 5.1 gives silos one or two subclasses of a superclass; the authors' code draws one,
  and its non-IID federation has the voters of the IID one.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from cosilo.aggregation.voting import Elected, agreement, elect, vote_dtype
from cosilo.coordination.coordinator import Silos
from cosilo.errors import ConfigError, DataError, LearnerError
from cosilo.methods.base import Method
from cosilo.methods.effort import Effort, epochs_of
from cosilo.protocol.findings import Findings
from cosilo.protocol.message import Message, Shared
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import step
from cosilo.protocol.task import Task
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo
from cosilo.text import listing


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
    #: Of two voters, on the pool; None where they have no class in common.
    agreement: list[list[float | None]]


class Votes(Findings):
    """What CoFED's part of the report reads."""

    voting: list[Vote] = Field(default_factory=list)


class CoFED(Method):
    """Federated co-training: silos label a public pool, vote, and learn what was elected; only labels travel.

    Parameters
    ----------
    alpha : float in [0, 1], default 0.3
        An instance enters class c if more than this share of the silos that have c says so (eq. 18).
    margin : float in [0, 1), default 0.0
        A silo abstains unless its most likely class leads the second by more than this probability.
    weights : {"equal", "size", "accuracy"} or dict of float, default "equal"
        What a vote weighs (§ 4.6): the same, by training size, by validation accuracy, or given by silo.
    update_from : {"auto", "local", "scratch"}, default "auto"
        Update training goes on from the local model, or starts from scratch; auto: as the learner prefers.
    class_weights : {"auto", "equal", "own", "none"}, default "auto"
        How much each class counts in update training: all the same, as in the silo's own data, as elected, or
        (auto) the same for networks and as in its own data for whatever takes sample weights.
    selection : {"validation", "test"}, default "validation"
        What a network chooses by when to stop, and which settings; test is no honest result, as the report
        says.
    updates : int, default None
        How many silos, drawn at random, do update training; the others only vote. None: all.
    control : bool, default True
        Whether networks that go on from their local model are also trained as long on their own data alone:
        what is gained beyond that is what elected labels taught. It takes as long as the update.
    rounds : int, default 1
        How often to label, vote and update; one is the paper's, more saturate.

    Examples
    --------
    >>> CoFED(alpha=0.3).needs()
    {'labels': "step 'label', field 'votes'"}
    """

    name: ClassVar[str] = "cofed"
    needs_pool: ClassVar[bool] = True

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.3
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weights: Literal["equal", "size", "accuracy"] | dict[str, Annotated[float, Field(ge=0)]] = "equal"
    update_from: Literal["auto", "local", "scratch"] = "auto"
    class_weights: Literal["auto", "equal", "own", "none"] = "auto"
    selection: Literal["validation", "test"] = "validation"
    updates: Annotated[int | None, Field(ge=1)] = None
    control: bool = True
    rounds: Annotated[int, Field(ge=1)] = 1

    def coordinate(self, silos: Silos) -> None:
        """The steps of § 4.1."""
        trained = silos.ask("train")  # 1. local training
        silos.evaluate(LOCAL, to=trained)
        weights = self._weights(silos, trained)
        learners = list(trained)
        if self.updates is not None and self.updates < len(learners):
            drawn = silos.rng.choice(len(learners), self.updates, replace=False)
            learners = [learners[place] for place in sorted(drawn)]
        for number in silos.rounds(0, self.rounds):
            stage = FEDERATED if number == self.rounds else Stage.after_round(number)
            votes = silos.ask("label", to=list(trained))  # 2. pseudolabelling
            silos.found(Votes).voting.append(self._round(silos, votes, learners, weights, stage))
            if silos.last_round and stage != FEDERATED:  # there is no time for more
                silos.evaluate(FEDERATED, to=silos.ask("finish", to=learners))

    def _round(
        self, silos: Silos, votes: Replies, learners: list[str], weights: dict[str, float], stage: Stage
    ) -> Vote:
        elected, vote = self._elect(silos, votes, weights, stage)  # 3. aggregation
        vocabulary = silos.vocabulary

        def share_of(name: str) -> tuple[NDArray[Any], NDArray[Any]]:  # R_i (eq. 19), in the silo's own codes
            codes = silos.tasks[name].codes_in(vocabulary)
            index, label = elected.for_task(codes)
            own = np.zeros(len(vocabulary), np.int32)
            own[codes] = np.arange(len(codes))
            return index, own[label]

        def message(name: str) -> Message:
            index, label = share_of(name)
            return {"index": index, "label": label, "stage": str(stage)}

        updated = silos.ask("update", each=message, to=learners)  # 4. update training
        silos.evaluate(stage, to=updated)
        for name in updated:
            index, label = share_of(name)
            vote.received[name] = len(index)
            if name in votes and len(index):
                said = votes[name].array("votes")[index]
                vote.own_votes[name] = round(float(np.mean(said == label)), 6)
        return vote

    def _weights(self, silos: Silos, trained: Replies) -> dict[str, float]:
        if self.weights == "size":
            return {name: reply.number("size") for name, reply in silos.ask("size", to=trained).items()}
        if self.weights == "accuracy":
            replies = silos.ask("credibility", to=trained)
            return {name: reply.number("accuracy") for name, reply in replies.items()}
        if isinstance(self.weights, dict):
            return dict(self.weights)
        return dict.fromkeys(silos.names, 1.0)

    def _elect(
        self, silos: Silos, votes: Replies, weights: dict[str, float], stage: Stage
    ) -> tuple[Elected, Vote]:
        names = [name for name in votes if name in weights]
        vocabulary = silos.vocabulary
        tasks = [silos.tasks[name].codes_in(vocabulary) for name in names]
        ballots = [
            _translate(votes[name].array("votes"), codes) for name, codes in zip(names, tasks, strict=True)
        ]
        elected = elect(ballots, tasks, len(vocabulary), self.alpha, [weights[name] for name in names])
        return elected, Vote(
            stage=str(stage),
            voters=names,
            weights=[weights[name] for name in names],
            elected=dict(zip(vocabulary.classes, elected.per_class().tolist(), strict=True)),
            abstained={name: float(np.mean(b == -1)) for name, b in zip(names, ballots, strict=True)},
            agreement=_without_nan(agreement(ballots, tasks, len(vocabulary))),
        )

    def effort(self, participants: Sequence[Participant]) -> Effort:
        """Update training is of all data again, and what was elected; no model leaves a silo."""
        local, update = epochs_of(participants), epochs_of(participants, "update")
        epochs = None if local is None or update is None else local + self.rounds * update
        return Effort(epochs=epochs, held_out=0.0)

    # ------------------------------------------------------------------ at the silo

    @step()
    def train(self, silo: Silo) -> None:
        """Local training on the silo's own data."""
        silo.fit(LOCAL, validate=self.weights == "accuracy", on_test=self.selection == "test")

    @step(size=Shared("size", "how many training instances it has: the weight of its vote"))
    def size(self, silo: Silo) -> Message:
        """How many training instances there are, as a weight."""
        return {"size": silo.size}

    @step(
        accuracy=Shared(
            "metrics", "share of its validation instances that its model gets right: the weight of its vote"
        )
    )
    def credibility(self, silo: Silo) -> Message:
        """Accuracy on validation data, as a weight."""
        return {"accuracy": silo.validation_accuracy()}

    @step(votes=Shared("labels", "its model's class for each pool instance, or an abstention"))
    def label(self, silo: Silo) -> Message:
        """One class of the silo's own task for every pool instance (eq. 17), or an abstention."""
        return {"votes": silo.label_pool(self.margin)}

    @step()
    def update(self, silo: Silo, index: NDArray[Any], label: NDArray[Any], stage: str) -> None:
        """Train on D_i ∪ R_i."""
        after = Stage.parse(stage)
        if len(index) == 0:
            silo.keep_score(after)
            return
        prefers = silo.learner.warm_starts_by_default
        warm = prefers if self.update_from == "auto" else self.update_from == "local"
        silo.fit(
            after,
            lessons=silo.pool_lessons(index, label),
            update=True,
            warm=warm,
            classes=self.class_weights,
            validate=self.weights == "accuracy",
            on_test=self.selection == "test",
            control=self.control,
        )

    @step(timed=False)
    def finish(self, silo: Silo) -> None:
        """The last score is the result."""
        silo.keep_score(FEDERATED)

    # ------------------------------------------------------------------ before anything is computed

    def uses(self, step: str) -> bool:
        """Sizes and validation accuracies are asked for only if votes are weighted by them."""
        return {"size": self.weights == "size", "credibility": self.weights == "accuracy"}.get(step, True)

    def prepare(self, silo: Silo) -> None:
        """The learner has to be able to do what the parameters ask of it."""
        learner, where = silo.learner, f"silo {silo.name!r}: {silo.learner.name}"
        if self.selection == "test" and not silo.has_test:
            raise DataError(f"silo {silo.name!r}: has no test data, which selection = 'test' looks at")
        if self.margin > 0 and not learner.has_probabilities:
            raise LearnerError(f"{where} has no predict_proba, so it cannot abstain; set margin = 0")
        if self.update_from == "local" and not learner.can_warm_start:
            raise LearnerError(f"{where} cannot go on training; set update_from = 'auto' or 'scratch'")
        if self.class_weights in ("equal", "own") and not learner.can_weigh:
            raise LearnerError(f"{where} takes no sample weights; set class_weights = 'auto' or 'none'")

    def check(self, tasks: Mapping[str, Task]) -> None:
        """Every task has to share a class with another one (eq. 2), and given weights have to fit."""
        for name, task in tasks.items():
            others = {c for other, task_ in tasks.items() if other != name for c in task_.classes}
            if not others & set(task.classes):
                mine, theirs = listing(task.classes), listing(sorted(others))
                raise ConfigError(
                    f"silo {name!r}: its task {{{mine}}} shares no class with any other silo's {{{theirs}}}; "
                    "CoFED can teach it nothing: leave it out or rename its classes"
                )
        if isinstance(self.weights, dict) and set(self.weights) != set(tasks):
            odd = sorted(set(self.weights) ^ set(tasks))
            raise ConfigError(f"weights are given for other silos than there are (see {odd[0]!r})")


def _translate(votes: NDArray[Any], codes: list[int]) -> NDArray[np.signedinteger[Any]]:
    """Votes in a silo's own codes as votes in the vocabulary's; −1 stays −1."""
    table = np.array([*codes, -1], vote_dtype(max(codes) + 1))  # index −1 is the last place
    translated: NDArray[np.signedinteger[Any]] = table[votes]
    return translated


def _without_nan(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 6) for value in row] for row in matrix]
