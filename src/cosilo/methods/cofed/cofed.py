"""CoFED: silos label one public pool, the coordinator votes, everyone trains on what was elected.

X. Cao, Z. Li, H. Yu and G. Sun, "CoFED: Cross-silo Heterogeneous Federated Multi-task Learning via
Co-training" (section, equation and algorithm numbers below are those of its second version).

`CoFED(rule="paper")` is the paper to the letter. By default cosilo does what proved better with the same
labels leaving each silo (docs/cofed.md has the figures): the class that leads over all classes wins, votes
weigh as far as their silo goes with the others, networks learn shares, and a silo keeps the model it had if
its own data speaks against the new one.

Deviations from the paper, also with its rule:

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
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from cosilo.aggregation.robust import bounded
from cosilo.aggregation.voting import Rule, TaughtLabels, labels_from
from cosilo.coordination.coordinator import Silos
from cosilo.errors import ConfigError, DataError
from cosilo.methods.base import Method
from cosilo.methods.cofed.alarm import misnamed, single_votes
from cosilo.methods.cofed.checks import check_learner, check_tasks
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold, Outcome
from cosilo.methods.cofed.findings import Vote, Votes, decision_of, vote_of
from cosilo.methods.cofed.messages import (
    Agreement,
    Counted,
    Counts,
    Other,
    Own,
    Total,
    Unit,
    UpdateMessages,
    When,
    longest_update,
    read_tallies,
)
from cosilo.methods.cofed.soft_targets import soft_lessons
from cosilo.methods.effort import Effort, epochs_of, hidden_share
from cosilo.protocol.forms import SHARE, YES_OR_NO, Count
from cosilo.protocol.message import Fields, Message, Shared
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import step
from cosilo.protocol.task import Task
from cosilo.runs.journal import Replies
from cosilo.silo.lessons import Lessons
from cosilo.silo.silo import Silo

Weight = Annotated[float, Field(ge=0)]


def _counted(about: str) -> Shared:
    """A count of the silo's own instances."""
    return Shared("metrics", about, optional=True, exact=True, form=Count(least=0))


class CoFED(Method):
    """Federated co-training: silos label a public pool, vote, and learn what was elected; only labels travel.

    Parameters
    ----------
    alpha : float in [0, 1], default 0.3
        An instance enters class c only if more than this share of the silos that have c says so (eq. 18).
    margin : float in [0, 1), default 0.0
        A silo abstains unless its most likely class leads the second by more than this probability.
    rule : {"shares", "winner", "paper"}, default "shares"
        What is elected. winner: an instance goes to the class with the largest share over all classes, and
        counts fully if it leads by two votes. shares: the same, but networks learn the shares of all their
        classes as soft targets there, sharpened. paper: an instance enters every class that more than α of
        its silos gave it; then `weights` and `accept` are the paper's too ("equal" and "always"), unless they
        are given.
    weights : {"agreement", "equal", "size", "accuracy"} or dict of float, default "agreement"
        What a vote weighs (§ 4.6): by how far a silo's votes go with those of the others, the same, by
        training size (none more than ten times the median), by validation accuracy, or given by silo.
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
    accept : {"better", "always"}, default "better"
        Whether a silo asks its own data if it is better off, and else stays with the model it has; both are
        kept. If silos hardly agree on the pool, only proof of a gain makes it change.
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
    #: A silo that takes every offer has no guard against labels that were chosen to harm it.
    cautious: ClassVar[Mapping[str, float | list[str]]] = {"rounds": 1, "accept": ["better"]}

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.3
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    rule: Literal["shares", "winner", "paper"] = "shares"
    weights: Literal["agreement", "equal", "size", "accuracy"] | dict[str, Weight] = "agreement"
    own_weight: Annotated[float, Field(gt=0)] = 1.0
    update_from: Literal["auto", "local", "scratch"] = "auto"
    class_weights: Literal["auto", "equal", "own", "none"] = "auto"
    selection: Literal["validation", "test"] = "validation"
    updates: Annotated[int | None, Field(ge=1)] = None
    accept: Literal["better", "always"] = "better"
    control: bool = True
    rounds: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="before")
    @classmethod
    def _paper_to_the_letter(cls, values: Any) -> Any:
        """What the paper's rule means for what is not given."""
        if isinstance(values, dict) and values.get("rule") == "paper":
            return {"weights": "equal", "accept": "always", **values}
        return values

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
            for line in vote.alarms:
                silos.warn(line)
            self._update(silos, learners, outcome, vote)  # 4. update training
            self._note(silos, learners, ballots, outcome, vote)
            if silos.last_round and stage != FEDERATED:  # there is no time for more
                silos.evaluate(FEDERATED, to=silos.ask("finish", to=learners))

    def _elect(
        self, silos: Silos, ballots: Ballots, weights: dict[str, float], stage: Stage
    ) -> tuple[Outcome, Vote]:
        credible, classes = ballots.credibility(), silos.vocabulary.classes
        by_agreement = self.weights == "agreement"
        weighed = credible.weight.tolist() if by_agreement else [weights[name] for name in ballots.names]
        meant = ballots.read(credible) if by_agreement else ballots
        outcome: Outcome
        if self.rule == "paper":
            outcome = ByThreshold(meant, self.alpha, weighed)
        else:
            outcome = ByShares(meant, weighed, self.alpha, soft=self.rule == "shares")
        vote = vote_of(ballots, weighed, credible.kappa, outcome.per_class(), classes, stage)
        if by_agreement:
            vote.alarms += misnamed(
                {
                    ballots.names[place]: {
                        classes[code]: classes[order[code]] for code in ballots.tasks[place]
                    }
                    for place, order in credible.readings.items()
                }
            )
        if self.rule == "paper":
            vote.alarms += single_votes(
                self.alpha, dict(zip(classes, ballots.holders().tolist(), strict=True))
            )
        return outcome, vote

    def _update(self, silos: Silos, learners: list[str], outcome: Outcome, vote: Vote) -> None:
        stage = Stage.parse(vote.stage)
        places = {name: place for place, name in enumerate(vote.voters)}
        more: dict[str, Any] = {"stage": vote.stage}
        if self.accept == "better":
            more["agreement"] = median(vote.kappa.values())
        messages = UpdateMessages(outcome, more)

        def message(name: str) -> Message:
            return messages.for_silo(silos.tasks[name].codes_in(silos.vocabulary), places.get(name))

        updated = silos.ask("update", each=message, to=learners)
        silos.evaluate(stage, to=updated)
        if self.accept == "better":
            willing = silos.offering("metrics", among=updated)
            replies = silos.ask("decision", to=willing, quorum=0.0)
            vote.decisions = {name: decision_of(reply) for name, reply in replies.items() if "taken" in reply}

    def _note(
        self, silos: Silos, learners: list[str], ballots: Ballots, outcome: Outcome, vote: Vote
    ) -> None:
        """What the report shows of a round."""
        places = {name: place for place, name in enumerate(ballots.names)}
        for name in learners:
            task = silos.tasks[name].codes_in(silos.vocabulary)
            index, label = outcome.labels(task)
            vote.received[name] = len(index)
            if name in places and len(index):
                said = ballots.votes[places[name]][index]
                vote.own_votes[name] = round(float(np.mean(said == np.array(task)[label])), 6)
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

    def told_silos(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """What each silo's vote weighs, and so who else is there, is for the coordinator."""
        return {**parameters, **({"weights": "equal"} if isinstance(self.weights, dict) else {})}

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """Update training is of all data again, and what was elected: all of the pool at most."""
        local, update = epochs_of(participants), epochs_of(participants, "update", pool)
        epochs = None if local is None or update is None else local + self.rounds * update
        return Effort(epochs=epochs, held_out=hidden_share(participants))

    # ------------------------------------------------------------------ at the silo

    @step()
    def train(self, silo: Silo) -> None:
        """Local training on the silo's own data."""
        # A network's offer is held against a trial; whatever is cheap to train, against five.
        ask_once = self.accept == "better" and silo.learner.has_weights and silo.can_validate
        validate = self.weights == "accuracy" or ask_once
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

    @step(after="label", longest=longest_update)
    def update(
        self,
        silo: Silo,
        stage: When,
        counts: Counts,
        total: Total,
        counted: Counted,
        own: Own,
        unit: Unit,
        other: Other | None = None,
        agreement: Agreement = 1.0,
    ) -> None:
        """Train on D_i ∪ R_i, which the silo derives from tallies.

        Everything is read before anything is compared with the silo's votes, or computed.
        """
        when = Stage.parse(stage)
        tallies = read_tallies(silo, self.rule, counts, total, counted, own, unit, other)
        taught = labels_from(tallies, Rule(self.rule, self.alpha), silo.sent_votes)
        self.learn(silo, taught, tallies.part.astype(np.float32), when, agreement)

    def learn(
        self,
        silo: Silo,
        taught: TaughtLabels,
        part: NDArray[np.float32],
        stage: Stage,
        agreement: float = 1.0,
    ) -> None:
        """Train on the silo's own data and these labels, if they agree with its votes.

        A network learns shares, if the rule has them; `part` is by class of the task what one vote of
        the silo is of its share.
        """
        if taught.shares is not None and silo.learner.has_weights:
            lessons, check = soft_lessons(silo, taught, silo.sent_votes, part)
        else:
            counts = None
            if taught.weight is not None and silo.learner.can_weigh:
                counts = taught.weight / 255
            lessons = silo.pool_lessons(taught.index, taught.label, counts)
            check = lessons.take(np.flatnonzero(taught.stands))
        silo.hold_against_votes(lessons)
        self._teach(silo, lessons, check, stage, agreement)

    def _teach(self, silo: Silo, lessons: Lessons, check: Lessons, stage: Stage, agreement: float) -> None:
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
            agreement=agreement,
        )

    def _warm(self, silo: Silo) -> bool:
        """Whether update training goes on from the model there is."""
        prefers = silo.learner.warm_starts_by_default
        return prefers if self.update_from == "auto" else self.update_from == "local"

    @step(
        voluntary=True,
        timed=False,
        after="update",
        taken=Shared(
            "metrics", "whether it uses the model that it was offered", optional=True, form=YES_OR_NO
        ),
        doubtful=Shared("metrics", "whether it asked for proof of a gain", optional=True, form=YES_OR_NO),
        instances=_counted("how many of its own instances it was asked on"),
        gained=_counted("how many of these only the offered model gets right"),
        lost=_counted("how many of these only the offered model gets wrong"),
    )
    def decision(self, silo: Silo) -> Message:
        """What its own data said of the model that it was offered; nothing if there was no offer.

        The counts tell how much data there is, so they leave only with `exact_scores`.
        """
        found = silo.decision
        if found is None:
            return {}
        told: Message = {"taken": int(found.accepted), "doubtful": int(found.doubtful)}
        counts = {"instances": found.instances, "gained": found.gained, "lost": found.lost}
        return {**told, **counts} if silo.exact_scores else told

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
        self._update(silos, [name], outcome, vote)
        self._note(silos, [name], ballots, outcome, vote)

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
        """Sizes and accuracies are asked for only if votes are weighted by them."""
        asked = {
            "size": self.weights == "size",
            "credibility": self.weights == "accuracy",
            "decision": self.accept == "better",
        }
        return asked.get(step, True)

    def prepare(self, silo: Silo) -> None:
        """The learner has to be able to do what the parameters ask of it."""
        silo.check_votes()
        if self.selection == "test" and not silo.has_test:
            raise DataError(f"silo {silo.name!r}: has no test data, which selection = 'test' looks at")
        check_learner(silo, self.margin, self.update_from, self.class_weights)

    def check(self, tasks: Mapping[str, Task]) -> None:
        """Every task has to share a class with another one (eq. 2), and given weights have to fit."""
        check_tasks(tasks)
        if isinstance(self.weights, dict) and set(self.weights) != set(tasks):
            odd = sorted(set(self.weights) ^ set(tasks))
            raise ConfigError(f"weights are given for other silos than there are (see {odd[0]!r})")
