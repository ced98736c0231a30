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

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from cosilo.aggregation.robust import bounded
from cosilo.aggregation.voting import agreement
from cosilo.coordination.coordinator import Silos
from cosilo.errors import ConfigError, DataError, LearnerError
from cosilo.methods.base import Method
from cosilo.methods.cofed.elections import (
    Ballots,
    ByShares,
    ByThreshold,
    Outcome,
    weights_by_agreement,
    without_vote,
)
from cosilo.methods.effort import Effort, epochs_of
from cosilo.protocol.findings import Findings
from cosilo.protocol.forms import SHARE
from cosilo.protocol.message import Fields, Message, Shared
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import step
from cosilo.protocol.task import Task
from cosilo.runs.journal import Replies
from cosilo.silo.lessons import Lessons
from cosilo.silo.silo import Silo
from cosilo.text import listing

Weight = Annotated[float, Field(ge=0)]


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
    rule : {"paper", "winner", "shares"}, default "paper"
        What is elected. paper: an instance enters every class that more than α of its silos gave it. winner:
        it goes to the class with the largest share over all classes, and counts as much as that share.
        shares: networks learn the shares of their own classes as soft targets; others as by winner.
    weights : {"equal", "size", "accuracy", "agreement"} or dict of float, default "equal"
        What a vote weighs (§ 4.6): the same, by training size (none more than ten times the median), by
        validation accuracy, by how far a silo's votes go with those of the others, or given by silo.
    own_weight : float, default 1.0
        What one of a silo's own instances counts for beside one that others labelled.
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
    accept : {"better", "always"}, default "always"
        Whether a silo asks its own data if it is better off, and else stays with the model it has.
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
    #: Votes after an update tell what the labels that were sent did to the model, and so who was trained on.
    cautious: ClassVar[Mapping[str, float]] = {"rounds": 1}

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.3
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    rule: Literal["paper", "winner", "shares"] = "paper"
    weights: Literal["equal", "size", "accuracy", "agreement"] | dict[str, Weight] = "equal"
    own_weight: Annotated[float, Field(gt=0)] = 1.0
    update_from: Literal["auto", "local", "scratch"] = "auto"
    class_weights: Literal["auto", "equal", "own", "none"] = "auto"
    selection: Literal["validation", "test"] = "validation"
    updates: Annotated[int | None, Field(ge=1)] = None
    accept: Literal["better", "always"] = "always"
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
            ballots = Ballots.of(votes, silos.tasks, silos.vocabulary, weights)
            outcome, vote = self._elect(silos, ballots, weights, stage)  # 3. aggregation
            self._update(silos, learners, outcome, ballots.names, stage)  # 4. update training
            self._note(silos, learners, votes, outcome, vote)
            if silos.last_round and stage != FEDERATED:  # there is no time for more
                silos.evaluate(FEDERATED, to=silos.ask("finish", to=learners))

    def _elect(
        self, silos: Silos, ballots: Ballots, weights: dict[str, float], stage: Stage
    ) -> tuple[Outcome, Vote]:
        kappas = ballots.kappas()
        weighed = [weights[name] for name in ballots.names]
        if self.weights == "agreement":
            weighed = weights_by_agreement(kappas)
        outcome: Outcome = (
            ByThreshold(ballots, self.alpha, weighed) if self.rule == "paper" else ByShares(ballots, weighed)
        )
        by_silo = dict(zip(ballots.names, ballots.votes, strict=True))
        return outcome, Vote(
            stage=str(stage),
            voters=ballots.names,
            weights=weighed,
            kappa=dict(zip(ballots.names, np.round(kappas, 6).tolist(), strict=True)),
            elected=dict(zip(silos.vocabulary.classes, outcome.per_class().tolist(), strict=True)),
            abstained={name: float(np.mean(votes == -1)) for name, votes in by_silo.items()},
            agreement=_without_nan(agreement(ballots.votes, ballots.tasks, ballots.n_classes)),
        )

    def _update(
        self, silos: Silos, learners: list[str], outcome: Outcome, voters: list[str], stage: Stage
    ) -> None:
        def message(name: str) -> Message:
            voter = voters.index(name) if name in voters else None
            told = outcome.message(silos.tasks[name].codes_in(silos.vocabulary), voter)
            return {**told, "stage": str(stage)}

        step = "update" if self.rule == "paper" else "learn"
        silos.evaluate(stage, to=silos.ask(step, each=message, to=learners))

    def _note(
        self, silos: Silos, learners: list[str], votes: Mapping[str, Fields], outcome: Outcome, vote: Vote
    ) -> None:
        """What the report shows of a round."""
        for name in learners:
            index, label = outcome.labels(silos.tasks[name].codes_in(silos.vocabulary))
            vote.received[name] = len(index)
            if name in votes and len(index):
                said = votes[name].array("votes")[index]
                vote.own_votes[name] = round(float(np.mean(said == label)), 6)
        silos.found(Votes).voting.append(vote)

    def _weights(self, silos: Silos, trained: Replies) -> dict[str, float]:
        if self.weights == "size":
            replies = silos.ask("size", to=trained)
            return bounded({name: reply.number("size") for name, reply in replies.items()})
        if self.weights == "accuracy":
            replies = silos.ask("credibility", to=trained)
            return {name: reply.number("accuracy") for name, reply in replies.items()}
        if isinstance(self.weights, dict):
            return dict(self.weights)
        return dict.fromkeys(silos.names, 1.0)

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """Update training is of all data again, and what was elected; no model leaves a silo."""
        local, update = epochs_of(participants), epochs_of(participants, "update")
        epochs = None if local is None or update is None else local + self.rounds * update
        return Effort(epochs=epochs, held_out=0.0)

    # ------------------------------------------------------------------ at the silo

    @step()
    def train(self, silo: Silo) -> None:
        """Local training on the silo's own data."""
        # A network's offer is held against a trial; whatever is cheap to train, against five.
        validate = self.weights == "accuracy" or (self.accept == "better" and silo.learner.has_weights)
        silo.fit(LOCAL, validate=validate, on_test=self.selection == "test")

    @step(after="train", size=Shared("size", "how many training instances it has: the weight of its vote"))
    def size(self, silo: Silo) -> Message:
        """How many training instances there are, as a weight."""
        return {"size": silo.size}

    @step(
        accuracy=Shared(
            "metrics",
            "share of its validation instances that its model gets right: the weight of its vote",
            form=SHARE,
        ),
        after="train",
    )
    def credibility(self, silo: Silo) -> Message:
        """Accuracy on validation data, as a weight."""
        return {"accuracy": silo.validation_accuracy()}

    @step(after="train", votes=Shared("labels", "its vote on each pool instance: a class, or an abstention"))
    def label(self, silo: Silo) -> Message:
        """One class of the silo's own task for every pool instance (eq. 17), or an abstention."""
        return {"votes": silo.label_pool(self.margin)}

    @step(after="label")
    def update(
        self, silo: Silo, index: NDArray[Any], label: NDArray[Any], stands: NDArray[Any], stage: str
    ) -> None:
        """Train on D_i ∪ R_i."""
        lessons = silo.pool_lessons(index, label)
        silo.hold_against_votes(index, lessons.likeliest)
        self._teach(silo, lessons, lessons.take(np.flatnonzero(stands)), Stage.parse(stage))

    @step(after="label")
    def learn(
        self,
        silo: Silo,
        shares: NDArray[Any],
        won: NDArray[Any],
        stands: NDArray[Any],
        part: NDArray[Any],
        stage: str,
    ) -> None:
        """Train on D_i and what the votes say of the pool: soft targets, or the winners by their shares."""
        share = shares / 255
        if self.rule == "shares" and silo.learner.has_weights:
            own = silo.label_pool(self.margin)
            lessons, check = silo.soft_lessons(share), silo.soft_lessons(without_vote(share, own, part))
        else:
            index = np.flatnonzero(won >= 0)
            weight = np.maximum(share[index, won[index]], 1 / 255)  # of a class that only a few have it is 0
            lessons = silo.pool_lessons(index, won[index], weight if silo.learner.can_weigh else None)
            silo.hold_against_votes(index, lessons.likeliest)
            check = lessons.take(np.flatnonzero(stands[index]))
        self._teach(silo, lessons, check, Stage.parse(stage))

    def _teach(self, silo: Silo, lessons: Lessons, check: Lessons, stage: Stage) -> None:
        if len(lessons) == 0:
            silo.keep_score(stage)
            return
        silo.remember_lessons(lessons)
        silo.fit(
            stage,
            lessons=lessons,
            own_weight=self.own_weight,
            update=True,
            warm=self._warm(silo),
            classes=self.class_weights,
            validate=self.weights == "accuracy",
            on_test=self.selection == "test",
            control=self.control,
            check=check if self.accept == "better" else None,
        )

    def _warm(self, silo: Silo) -> bool:
        """Whether update training goes on from the model there is."""
        prefers = silo.learner.warm_starts_by_default
        return prefers if self.update_from == "auto" else self.update_from == "local"

    @step(timed=False, after="train")
    def finish(self, silo: Silo) -> None:
        """The last score is the result."""
        silo.keep_score(FEDERATED)

    # ------------------------------------------------------------------ when a run is over

    def welcome(self, silos: Silos, name: str, said: Callable[[str], Mapping[str, Fields]]) -> None:
        """A late silo trains and votes, and gets what all ballots elect: as if it had been there."""
        silos.evaluate(LOCAL, to=silos.ask("train", to=[name]))
        weights = dict.fromkeys(silos.names, 1.0)
        if isinstance(self.weights, dict):
            if name not in self.weights:
                raise ConfigError(f"silo {name!r}: the run's weights have no number for it; start a new run")
            weights = dict(self.weights)
        elif self.weights in ("size", "accuracy"):
            step, field = ("size", "size") if self.weights == "size" else ("credibility", "accuracy")
            told = {**said(step), **silos.ask(step, to=[name], quorum=1.0)}
            weights = {silo: reply.number(field) for silo, reply in told.items()}
        votes = {**said("label"), **silos.ask("label", to=[name], quorum=1.0)}
        ballots = Ballots.of(votes, silos.tasks, silos.vocabulary, weights)
        outcome, vote = self._elect(silos, ballots, weights, FEDERATED)
        self._update(silos, [name], outcome, ballots.names, FEDERATED)
        self._note(silos, [name], votes, outcome, vote)

    def train_on(self, silo: Silo) -> None:
        """On what it has and the labels that were elected for it."""
        lessons = silo.remembered_lessons()
        silo.fit(
            FEDERATED,
            lessons=lessons,
            own_weight=self.own_weight,
            update=True,
            warm=self._warm(silo),
            classes=self.class_weights,
        )

    # ------------------------------------------------------------------ before anything is computed

    def uses(self, step: str) -> bool:
        """Sizes and accuracies are asked for only if votes are weighted by them; a rule has one update."""
        asked = {"size": self.weights == "size", "credibility": self.weights == "accuracy"}
        return {**asked, "update": self.rule == "paper", "learn": self.rule != "paper"}.get(step, True)

    def prepare(self, silo: Silo) -> None:
        """The learner has to be able to do what the parameters ask of it."""
        learner, where = silo.learner, f"silo {silo.name!r}: {silo.learner.name}"
        silo.check_votes()
        if self.selection == "test" and not silo.has_test:
            raise DataError(f"silo {silo.name!r}: has no test data, which selection = 'test' looks at")
        if self.margin > 0 and not learner.has_probabilities and silo.privacy is None:
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


def _without_nan(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 6) for value in row] for row in matrix]
