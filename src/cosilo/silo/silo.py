"""A silo: private data, a learner, a task, and the policy of what may leave. Private data is touched here."""

from collections.abc import Iterable
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, as_instances, fingerprint, take
from cosilo.data.pool_labels import as_pool_labels
from cosilo.errors import ConfigError, DataError
from cosilo.learners import Learner, as_learner
from cosilo.learners.base import Codes, balanced_weights, weights_towards
from cosilo.protocol.message import Message
from cosilo.protocol.participant import Participant
from cosilo.protocol.task import Task, class_names, in_order
from cosilo.silo import predicting
from cosilo.silo.data import Examples, PrivateData, Test, joined
from cosilo.silo.network import NetworkView
from cosilo.silo.target import Target, TargetLabels, wanted_classes

if TYPE_CHECKING:
    import pandas as pd

    from cosilo.methods.base import Method, Step
    from cosilo.runs.silo_record import Record


def joint(stage: str) -> str:
    """The name of the score of a shared network after a stage, among all classes of the vocabulary."""
    return f"{stage}, joint"


def labelling(stage: str) -> str:
    """The name of the score of the labels that the unlabelled target points have after a stage."""
    return f"{stage}, labelling"


class Silo(Participant):
    """One organisation in a federation.

    `test` is a fraction of the data to hold out, a pair (X, y), or None for no evaluation. `task` are the
    classes (default: those in the data). With a `target` it learns from the labelled target points too, and
    predicts and is judged among the target classes only, by test data of these. `validation` is the fraction
    of the training data that a method or an early-stopping learner may hold out. `shares` is the policy: the
    kinds of fields that may leave. `pool_labels` are the classes of the public instances, for methods that
    learn from those.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.eye(8), list("abababab")
    >>> Silo("clinic-a", X, y, DecisionTreeClassifier(), shares=["labels"])
    <Silo 'clinic-a': 8 instances, task a, b>
    """

    def __init__(
        self,
        name: str,
        X: Any,
        y: Any,
        learner: Any,
        *,
        target: Target | None = None,
        test: Test = "auto",
        task: Iterable[str] | None = None,
        validation: float = 0.2,
        shares: Iterable[str] = ("labels", "metrics"),
        pool: Any = None,
        pool_labels: Any = None,
    ) -> None:
        super().__init__(name, shares)
        self.learner: Learner = as_learner(learner)
        wanted = () if target is None else wanted_classes(target, self._where)
        self.task = self._task(task, class_names(y), wanted)
        # A network has an output for every class of its task; most other learners fail on one class.
        least = 1 if self.learner.has_weights and target is None else 2
        self.data = PrivateData(self._where, self.task, X, y, test, validation, target, least)
        #: The classes that it is judged on: those of its target if it has one, else its task.
        self.wanted = Task(tuple(c for c in self.task.classes if c in wanted)) if wanted else self.task
        #: The classes that its model chooses among.
        self.among = self.task if target is not None and target.hidden else self.wanted
        self.pool: Instances | None = None
        self.pool_labels: NDArray[np.str_] | None = None
        self.pool_fingerprint: str | None = None
        if pool is not None:
            self.use_pool(pool, labels=pool_labels)
        elif pool_labels is not None:
            raise ConfigError(f"{self._where}: got pool_labels but no pool; wants both, or no labels")

    @property
    def network(self) -> NetworkView:
        """The learner as a network, for methods that share networks."""
        return NetworkView(self)

    def __repr__(self) -> str:
        classes = ", ".join(self.task.classes)
        return f"<Silo {self.name!r}: {len(self.data.all[1])} instances, task {classes}>"

    # ------------------------------------------------------------------ what is checked when it is made

    def _task(self, task: Iterable[str] | None, names: NDArray[np.str_], wanted: tuple[str, ...]) -> Task:
        if len(names) == 0:
            raise DataError(f"{self._where}: data is empty; wants at least two instances of two classes")
        if task is None and len(np.unique(names)) < 2:
            raise DataError(
                f"{self._where}: all {len(names)} instances are of class {str(names[0])!r}; "
                "a classifier needs at least two classes"
            )
        try:
            return Task(in_order([*names.tolist(), *wanted]) if task is None else tuple(map(str, task)))
        except DataError as error:
            raise DataError(f"{self._where}: {error}") from None

    # ------------------------------------------------------------------ set-up

    def use_pool(self, pool: Any, known_fingerprint: str | None = None, labels: Any = None) -> None:
        """Hold the public pool, with its labels if it has any; its form has to be that of the data."""
        instances = as_instances(pool, f"{self._where}, pool")
        if len(instances) == 0:
            raise DataError(f"{self._where}, pool: is empty; wants instances")
        self.data.same_form(instances, "its pool")
        self.pool = instances
        checked = labels is None or known_fingerprint is not None  # one copy for all silos of a federation
        self.pool_labels = labels if checked else as_pool_labels(labels, instances, f"{self._where}, pool")
        self.pool_fingerprint = known_fingerprint or fingerprint(instances, self.pool_labels)

    def fresh(self) -> "Silo":
        """The same silo for another run: data and policy are shared, what was learnt is not."""
        other = copy(self)
        other.data = copy(self.data)
        other.learner = deepcopy(self.learner)
        other.forget()
        return other

    # ------------------------------------------------------------------ what its boundary does with it

    def fingerprint(self) -> str:
        """A hash of all data."""
        return self.data.fingerprint()

    def prepare(self, method: "Method") -> None:
        """What the method looks at before anything is computed."""
        method.prepare(self)

    def open(self, method: "Method", seed: int, record: "Record") -> None:
        """Hold out the test data."""
        self.data.split(self.seed)

    def carry_out(self, method: "Method", step: "Step", message: Message, number: int) -> Message | None:
        """What the method says."""
        return step.run(method, self, **message)

    # ------------------------------------------------------------------ what steps do

    @property
    def size(self) -> int:
        """The number of training instances."""
        return len(self.data.train[1])

    def fit(
        self,
        stage: str,
        *,
        pseudo: Examples | None = None,
        update: bool = False,
        warm: bool = False,
        classes: Literal["auto", "equal", "own", "none"] | None = None,
        validate: bool = False,
        on_test: bool = False,
        epochs: int | None = None,
    ) -> None:
        """Train the learner on the training data, and `pseudo` if given; then take the score of `stage`.

        `classes` says how much each class counts: all the same, as in the silo's own data, as they come, or
        (auto) as a learner that weighs them by itself does, else as in the silo's own data if it can. Without
        it the learner gets no sample weights.

        `epochs` is for networks, instead of their training's.

        A part of the training data is held out when `validate` asks for it or the learner wants it, the same
        part every time. A learner that stops early has as large a part of `pseudo` held out too: its own data
        alone cannot tell what pseudo-labels teach about the rest of the world. With `on_test` it looks at the
        test data instead, which no honest result does.
        """
        validation, (X, y) = None, self.data.train
        if validate or (self.learner.wants_validation and not on_test):
            validation, (X, y) = self.data.validation()
        if on_test:
            validation = self.data.test
        if pseudo is not None:
            if self.learner.wants_validation and validation is not None and not on_test:
                held, pseudo = self.data.parted(pseudo)
                validation = joined(validation, held)
            X, y = joined((X, y), pseudo)
        self.changed = True
        self.network.narrow()
        learner: Any = self.learner
        options = (
            {} if epochs is None else {"training": learner.training.model_copy(update={"epochs": epochs})}
        )
        learner.fit(
            X,
            y,
            n_classes=len(self.task),
            seed=self.seed,
            update=update,
            warm=warm,
            sample_weight=self._sample_weight(y, classes),
            validation=validation,
            **options,
        )
        self.trained = True
        self.take_score(stage)

    def take_score(self, stage: str) -> None:
        """Judge the model on the test data, privately; model and score are kept with this step.

        A silo with a target also labels its unlabelled points, unless the method did (`keep_labels`).
        """
        self.changed = True
        if self.data.test is not None:
            self.scores[stage] = (self._accuracy(self.data.test), len(self.data.test[1]))
        labelled = TargetLabels(self).take()
        if labelled is not None:
            self.scores[labelling(stage)] = labelled

    def take_joint_score(self, stage: str, model: Learner | None = None) -> None:
        """Judge the global model on the test data among all classes of the vocabulary, privately.

        It is the silo's own network unless `model` is given. All silos' scores together are its accuracy on
        the joint test set.
        """
        self.changed = True
        if model is None and stage in self.scores and len(self.among) == self.notes.get("outputs"):
            self.scores[joint(stage)] = self.scores[stage]  # its own classes are all
        elif self.data.test is not None:
            X, y = self.data.test
            right = (model or self.learner).predict(X) == self.network.codes[y]
            self.scores[joint(stage)] = (float(np.mean(right)), len(y))

    def _sample_weight(self, y: Codes, classes: str | None) -> NDArray[np.float64] | None:
        if classes == "auto":
            classes = "own" if self.learner.can_weigh and not self.learner.weighs_by_itself else "auto"
        if classes == "equal":
            return balanced_weights(y, len(self.task))
        if classes == "own":
            return weights_towards(np.bincount(self.data.train[1], minlength=len(self.task)), y)
        # A learner that weighs by itself is told not to.
        return np.ones(len(y)) if classes == "none" and self.learner.can_weigh else None

    def keep_score(self, stage: str) -> None:
        """The model did not change in `stage`: its last scores still hold."""
        stages = [name.removesuffix(labelling("")) for name in self.scores if not name.endswith(joint(""))]
        for name in (str, labelling):
            if stages and name(stages[-1]) in self.scores:
                self.scores[name(stage)] = self.scores[name(stages[-1])]
                self.changed = True

    def validation_accuracy(self) -> float:
        """Accuracy on the part of the training data that `fit(validate=True)` held out."""
        X, y = self.data.validation()[0]
        return float(np.mean(predicting.predict(self, X, self.task) == y))

    def _accuracy(self, examples: Examples) -> float:
        X, y = examples
        return float(np.mean(predicting.predict(self, X, self.among) == y))

    def keep_labels(
        self, codes: Codes, confidence: NDArray[np.floating[Any]], speakers: list[str] | None = None
    ) -> None:
        """Take over labels for the unlabelled target points that a method found, before `take_score`.

        Codes are of the silo's task; `speakers` are the silos whose models had a say, if not its own alone.
        """
        TargetLabels(self).keep(codes, confidence, speakers)

    def label_pool(self, margin: float = 0.0) -> NDArray[np.signedinteger[Any]]:
        """One code per pool instance; −1 where the two most likely classes are within `margin`."""
        return predicting.votes(self, self.need_pool(), margin)

    def pool_examples(self, index: NDArray[np.integer[Any]], label: NDArray[np.integer[Any]]) -> Examples:
        """Pool instances with the labels elected for them, checked: the coordinator may be wrong."""
        pool = self.need_pool()
        good = index.ndim == 1 and index.shape == label.shape
        if not good or (len(index) and not (index.min() >= 0 and index.max() < len(pool))):
            raise DataError(f"{self._where}: got pseudo-labels for instances that its pool does not have")
        if len(label) and not (label.min() >= 0 and label.max() < len(self.task)):
            raise DataError(f"{self._where}: got pseudo-labels outside its task")
        return take(pool, index), label.astype(np.int64)

    def labelled_pool(self) -> tuple[Instances, NDArray[np.str_]]:
        """The public instances and their classes."""
        pool = self.need_pool()
        if self.pool_labels is None:
            raise DataError(f"{self._where}: its pool has no labels; give pool_labels=… with it")
        return pool, self.pool_labels

    def need_pool(self) -> Instances:
        """The public instances, or an error."""
        if self.pool is None:
            raise DataError(f"{self._where}: has no pool; give one to the silo or to the federation")
        return self.pool

    # ------------------------------------------------------------------ for its owner

    def predict(self, X: Any) -> NDArray[np.str_]:
        """Class names for new instances, by the silo's model."""
        instances = as_instances(X, f"{self._where}, new instances")
        return self.task.decode(predicting.predict(self, instances, self.among))

    def target_labels(self) -> "pd.DataFrame":
        """What its unlabelled target points are, in their order: label, confidence, and who spoke.

        `speakers` has the silos whose models had a say, with commas between them; empty: its own model alone.
        """
        return TargetLabels(self).frame()
