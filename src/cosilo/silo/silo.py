"""A silo: private data, a learner, a task, and the policy of what may leave. Private data is touched here."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.voting import contradicts
from cosilo.data.instances import Instances, as_instances
from cosilo.data.labels import class_names
from cosilo.errors import LearnerError, Refused
from cosilo.learners.base import Codes, Learner
from cosilo.privacy.account_text import without_guarantee
from cosilo.privacy.voter import mechanism
from cosilo.protocol.message import Message
from cosilo.protocol.metrics import METRIC_KINDS, as_json
from cosilo.protocol.stage import LOCAL, Measure, Score, Stage
from cosilo.protocol.step import Step
from cosilo.silo import predicting
from cosilo.silo.data import Examples
from cosilo.silo.fitting import ClassWeights, Fit, fit_control, fit_for_a_look, fit_with_trial
from cosilo.silo.guard import Decision, by_held_out, noted, out_of_fold
from cosilo.silo.holdings import Holdings
from cosilo.silo.labeller import Labeller
from cosilo.silo.lessons import Lessons
from cosilo.silo.metrics import UNSURE, metrics_of
from cosilo.silo.network import NetworkView
from cosilo.silo.predictor import Predictor
from cosilo.silo.private_votes import PrivateVotes
from cosilo.silo.target_labels import TargetLabels

if TYPE_CHECKING:
    import pandas as pd

#: The silo's notes about the votes that left it: which, and whether a private voter's say enough.
_VOTES = "votes"
_INFORMED = "votes_are_informed"


class Silo(Holdings, Predictor):
    """One organisation in a federation: private data, a learner, and the policy of what may leave.

    Parameters
    ----------
    name : str
        What it is called everywhere: letters of any script, digits, '.', '_' and '-'.
    X : array, DataFrame or list of str
        Its instances: rows of numbers, images (n, height, width[, channels]), columns, or texts.
    y : array of labels
        Their classes. `predict` gives labels of the same type.
    learner : estimator, torch module or Learner
        What it trains: anything with `fit(X, y)` and `predict(X)`, a torch module, or a `Network`. It stays
        untouched: a copy is trained.
    target : Target, default None
        What it wants to classify, if not what it has training data of. It then learns from the labelled
        target points too, and predicts and is judged among the target classes only.
    test : float, pair (X, y), None or "auto", default "auto"
        What it is judged by: a fraction of the data to hold out, test data, or None for no evaluation; auto
        is 0.25, or None beside a target. Beside a target, test data is of target classes.
    task : iterable of str, default None
        The names of its classes, where there may be more than in the data; None: those in the data and
        target.
    validation : float, default 0.2
        The fraction of the training data that a method or an early-stopping learner may hold out.
    shares : iterable of str, default ("labels", "metrics")
        The policy: the kinds of fields that may leave it, of labels, logits, weights, similarity, metrics and
        size. A method that needs another one is refused before anything is computed.
    pool : array, DataFrame or list of str, default None
        The public instances, where the federation does not hand them over.
    pool_labels : array of labels, default None
        Their classes, for methods that learn from those.
    privacy : Privacy, default None
        What it promises its records: its votes then come from a voter that is trained with differential
        privacy, and not from its model. docs/privacy.md has what that gives and costs.

    Attributes
    ----------
    task : Task
        The names of its classes, as the federation knows them.
    classes : array
        The classes that its model chooses among, as labels of the type of `y`.
    model : object
        What its learner has learnt: the fitted estimator or pipeline, the torch module.
    size : int
        The number of its training instances.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.eye(8), list("abababab")
    >>> Silo("clinic-a", X, y, DecisionTreeClassifier(), shares=["labels"])
    <Silo 'clinic-a': 8 instances, task a, b>
    """

    @property
    def network(self) -> NetworkView:
        """The learner as a network, for methods that share networks."""
        return NetworkView(self)

    # ------------------------------------------------------------------ set-up

    def fresh(self) -> "Silo":
        """The same silo for another run: data and policy are shared, what was learnt is not."""
        other = copy(self)
        other.data = copy(self.data)
        other.learner = deepcopy(self.learner)
        other.forget()
        return other

    def preload(self) -> None:
        """Find out how much noise its voter takes, which is the same for all silos, and takes seconds."""
        super().preload()
        if self.privacy is not None:
            mechanism(self.privacy)

    # ------------------------------------------------------------------ what its boundary does with it

    def perform(self, step: Step, message: Message, number: int) -> Message | None:
        """What the method says."""
        return step.run(self, **message)

    # ------------------------------------------------------------------ what steps do

    def fit(
        self,
        stage: Stage,
        *,
        lessons: Lessons | None = None,
        own_weight: float = 1.0,
        update: bool = False,
        warm: bool = False,
        classes: ClassWeights = None,
        validate: bool = False,
        on_test: bool = False,
        epochs: int | None = None,
        control: bool = False,
        check: Lessons | None = None,
        agreement: float = 1.0,
    ) -> None:
        """Train the learner on the training data, and `lessons` if given; then take the score of `stage`.

        One of the silo's own instances counts for `own_weight` beside one of the lessons.

        `classes` says how much each class counts: all the same, as in the silo's own data, as they come, or
        (auto) as a learner that weighs them by itself does, else as in the silo's own data if it can. Without
        it the learner gets no sample weights.

        `epochs` is for networks: the most epochs they train for, instead of their training's.

        A learner that has something to choose, when to stop or which settings, makes the choice with a part
        of the training data held out, the same part every time, and is then trained on all of it. `validate`
        asks for such a trial in any case (`validation_accuracy`). With `on_test` the choice is made on the
        test data, which no honest result does.

        `control` also scores what as much training without the lessons would have led to. `check` are the
        lessons that the silo's own vote did not decide: with these its own data is asked whether it is better
        off, and if not, it stays with the model it has (`cosilo.silo.guard`). `agreement` says how well silos
        agree on the pool: if it is too little, only proof of a gain makes it change.
        """
        self.changed = True
        self.network.narrow()
        learner: Any = self.learner
        fit, training = Fit(update, warm, classes, own_weight), None
        before = deepcopy(learner) if check is not None or (control and warm) else None
        decision = None if check is None else self._asked(fit, check, agreement)
        if epochs is not None:
            training = learner.training.but(epochs=epochs)
        choosing = learner.wants_validation if training is None else training.patience is not None
        if not on_test and (validate or choosing):
            fit_with_trial(self, fit, lessons, training)
        else:
            fit(self, learner, self.data.train, lessons, self.data.test if on_test else None, training)
        self.trained = True
        self.take_score(stage)
        if before is not None and control and warm and self.data.test is not None:
            other = deepcopy(before)
            instances = self.size + (0 if lessons is None else len(lessons))
            with self._off_the_clock():
                fit_control(self, fit, other, getattr(learner, "trained_as_", None), instances)
                X, y = self.data.test
                score = Score(float(np.mean(other.predict(X) == y)), len(y))
                self.scores.take(stage, Measure.CONTROL, score)
        if decision is not None and before is not None:
            self._choose(stage, before, decision)

    def _asked(self, fit: Fit, check: Lessons, agreement: float) -> Decision:
        """What the silo's own data says of these lessons."""

        def update(learner: Learner, own: Examples) -> None:
            fit_for_a_look(self, fit, learner, own, check)

        if self.trial is not None:
            return by_held_out(self, self.trial, update, agreement)
        return out_of_fold(
            self, lambda learner, own: fit_for_a_look(self, Fit(), learner, own), update, agreement
        )

    def _choose(self, stage: Stage, before: Learner, decision: Decision) -> None:
        """Keep both models, and use the one that the decision is for."""
        if (offered := self.scores.get(stage, {}).get(Measure.OWN)) is not None:
            self.scores.take(stage, Measure.OFFERED, offered)
        self.notes["guard"] = np.array(
            [decision.instances, decision.gained, decision.lost, int(decision.doubtful)]
        )
        self.spare = before
        if not decision.accepted:
            self.learner, self.spare = before, self.learner
            self.take_score(stage)

    @property
    def decision(self) -> Decision | None:
        """What its own data said of the last model that it was offered; None if there was no offer."""
        return noted(self.notes)

    def take_score(self, stage: Stage) -> None:
        """Judge the model on the test data, privately; model and score are kept with this step.

        A silo with a target also labels its unlabelled points, unless the method did (`keep_labels`).
        """
        self.changed = True
        self.trained_alone |= stage == LOCAL
        with self._off_the_clock():
            if self.data.test is not None:
                self.scores.take(stage, Measure.OWN, self._score(self.data.test, self.shares))
            labelled = TargetLabels(self).take()
            if labelled is not None:
                self.scores.take(stage, Measure.LABELLING, labelled)

    def take_joint_score(self, stage: Stage, network: NetworkView | None = None) -> None:
        """Judge the global model on the test data among all classes of the vocabulary, privately.

        It is the silo's own network unless another one is given. All silos' scores together are its
        accuracy on the joint test set, in which every instance counts once.
        """
        own = self.scores.get(stage, {}).get(Measure.OWN)
        with self._off_the_clock():
            if network is None and own is not None and self._judged_among_all():
                self.scores.take(stage, Measure.JOINT, own)  # its own classes are all
            elif (score := (network or self.network).joint_accuracy()) is not None:
                self.scores.take(stage, Measure.JOINT, score)

    def _judged_among_all(self) -> bool:
        """Whether its own score is that of the global network on the joint test set."""
        return self.data.counts_jointly is None and len(self.among) == self.notes.get("outputs")

    @contextmanager
    def _off_the_clock(self) -> Iterator[None]:
        """What is done for the experiment's sake takes none of the method's time."""
        began = time.thread_time()
        yield
        self.judging += time.thread_time() - began

    def keep_score(self, stage: Stage) -> None:
        """The model did not change in `stage`: its last scores still hold."""
        last = list(self.scores.values())[-1:]
        for measure in (Measure.OWN, Measure.LABELLING, Measure.CONTROL, Measure.OFFERED):
            for scores in last:
                if measure in scores:
                    self.scores.take(stage, measure, scores[measure])

    def validation_accuracy(self) -> float:
        """Accuracy of the trial on the part of the training data that was held out of it."""
        if self.trial is None:
            raise LearnerError(f"{self._where}: nothing was held out; fit with validate=True first")
        X, y = self.data.validation()[0]
        return float(np.mean(self.trial.predict(X) == y))

    def _score(self, examples: Examples, kinds: Collection[str]) -> Score:
        """The accuracy, and the other metrics of these kinds."""
        X, y = examples
        said = predicting.predict(self, X, self.among)
        found: dict[str, Any] = {}
        if kinds & METRIC_KINDS.keys():
            sure = self.learner.has_probabilities and bool(UNSURE & set(kinds))
            chances = predicting.probabilities(self, X, self.among) if sure else None
            places = list(self.among.codes_in(self.task))
            found = metrics_of(kinds, y, said, chances, places, len(self.task))
        return Score(float(np.mean(said == y)), len(y), {name: as_json(one) for name, one in found.items()})

    def keep_labels(
        self, codes: Codes, confidence: NDArray[np.floating[Any]], speakers: list[str] | None = None
    ) -> None:
        """Take over labels for the unlabelled target points that a method found, before `take_score`.

        Codes are of the silo's task; `speakers` are the silos whose models had a say, if not its own alone.
        """
        TargetLabels(self).keep(codes, confidence, speakers)

    def keep_labeller(self, models: Mapping[str, Weights], ratios: Mapping[str, float]) -> None:
        """Take over the models that labelled the target, for new points; ratios say how much each counts."""
        Labeller(self).keep(models, ratios)

    def hold_against_votes(self, lessons: Lessons) -> None:
        """Raise if lessons about the pool are not what an election that the silo voted in may come to.

        A silo that limits its coordinator compares the labels, or the largest of each instance's soft
        targets, with the votes that left it: they must not contradict them (`contradicts`), as labels do
        that somebody chose to see what they do to the model. The model itself is not asked: with
        `privacy` it must not tell anything that its private votes do not. If the silo voted on fewer than
        20 of these instances, or its private voter is mostly noise, there is nothing to compare, and
        nothing is refused.
        """
        least = 0.0 if self.allow is None else self.allow.agreement
        if least <= 0 or len(lessons) == 0:
            return
        if self.privacy is not None and not (_INFORMED in self.notes and self.notes.flag(_INFORMED)):
            return
        assert lessons.places is not None
        if contradicts(self.sent_votes, lessons.places, lessons.likeliest, len(self.task), least):
            raise Refused(
                f"{self._where}: labels it was sent do not go with its own votes: their agreement beyond "
                f"chance is below {least:g}; its own file says less in [allow] agreement = …"
            )

    def label_pool(self, margin: float = 0.0) -> NDArray[np.signedinteger[Any]]:
        """One code per pool instance; −1 where the two most likely classes are within `margin`.

        It is the only way in which a silo's opinions leave it as labels: that of its private voter, if it has
        one, and else that of its model. What left is kept as `sent_votes`.
        """
        if self.privacy is not None:
            opinions = PrivateVotes(self).opinions()
            votes = predicting.leading(opinions.chances, margin)
            self.notes[_INFORMED] = bool(opinions.are_informed(self.privacy.epsilon))
        else:
            votes = predicting.votes(self, self.need_pool(), margin)
        self.notes[_VOTES] = votes
        return votes

    @property
    def sent_votes(self) -> NDArray[np.signedinteger[Any]]:
        """The last votes that left the silo, one code per pool instance; −1 where it abstained.

        If none left, it abstained everywhere.
        """
        if _VOTES in self.notes:
            return self.notes.array(_VOTES)
        return np.full(len(self.need_pool()), -1, np.int8)

    def check_votes(self) -> None:
        """Raise if voting would cost its records more than it promised them; nothing is computed."""
        if self.privacy is not None:
            PrivateVotes(self).check()

    def left(self, kinds: set[str]) -> None:
        """Account for what left, of these kinds."""
        if self.privacy is not None and kinds:
            PrivateVotes(self).note(kinds)

    # ------------------------------------------------------------------ for its owner

    def privacy_lines(self, kinds: set[str]) -> list[str]:
        """What fields of these kinds would tell about its records, one line each, before they leave."""
        if self.privacy is not None:
            return PrivateVotes(self).forecast(kinds)
        return [without_guarantee(sorted(kinds))] if kinds else []

    def metrics(self, X: Any, y: Any) -> dict[str, Any]:
        """All that scikit-learn says about the silo's model on new instances, for its owner.

        Parameters
        ----------
        X : array, DataFrame or list of str
            Instances of the same form as the silo's data.
        y : array of labels
            Their true classes, of the silo's task.

        Returns
        -------
        dict
            `accuracy`, `balanced_accuracy`, `macro_f1`, `precision` and `recall` (by class), `confusion` (a
            row for each class, in the order of the task), and of a learner with probabilities `auc`,
            `log_loss`, `calibration` and `calibration_error`.
        """
        instances = self.read(X)
        codes = self.task.encode(class_names(y), f"{self._where}, new instances")
        score = self._score((instances, codes), METRIC_KINDS.keys())
        return {"accuracy": score.accuracy, **score.metrics}

    @property
    def model(self) -> object:
        """What its learner has learnt: the fitted scikit-learn object or pipeline, the torch module.

        It knows the silo's classes by number, in the order of the task.
        """
        predicting.need_model(self)
        return self.learner.fitted()

    def read(self, X: Any) -> Instances:
        """New instances, checked."""
        return as_instances(X, f"{self._where}, new instances")

    def target_labels(self) -> "pd.DataFrame":
        """What its unlabelled target points are, in their order: label, confidence, and who spoke.

        `speakers` has the silos whose models had a say, with commas between them; empty: its own model alone.
        """
        return TargetLabels(self).frame()
