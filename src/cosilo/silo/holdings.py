"""What a silo has: private data, a learner, a task, a pool, and the policy of what may leave."""

from abc import ABC
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.columns import kinds, notes
from cosilo.data.instances import Instances, as_instances, describe_form, fingerprint, form, is_bytes, take
from cosilo.data.labels import class_names, in_order, in_type_of
from cosilo.data.missing import columns_with_holes
from cosilo.data.pool_labels import as_pool_labels
from cosilo.errors import ConfigError, DataError, LearnerError, Refused
from cosilo.learners.adapt import as_learner
from cosilo.learners.base import Codes, Learner
from cosilo.learners.description import describe
from cosilo.learners.missing import check_missing
from cosilo.privacy.settings import Privacy
from cosilo.protocol.participant import Participant
from cosilo.protocol.task import Task
from cosilo.silo.data import PrivateData, Test
from cosilo.silo.lessons import Lessons
from cosilo.silo.target import Target, wanted_classes

#: What of its privacy settings its votes depend on.
_VOTES = {"epsilon", "delta", "voter"}
#: Fingerprints of pools without missing values: a large one is looked through once, not by every silo.
_COMPLETE: set[str] = set()
#: The silo's note about what others taught it.
_LESSONS = "lessons"


class Holdings(Participant, ABC):
    """All that a silo has, checked when it is handed over; `Silo` is what it does with that."""

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
        privacy: Privacy | None = None,
    ) -> None:
        super().__init__(name, shares)
        if not isinstance(privacy, Privacy | None):
            raise ConfigError(f"{self._where}: privacy: got {privacy!r}; wants Privacy(epsilon=…)")
        #: What it promises its records about its votes.
        self.privacy = privacy
        #: Where it keeps its record of the run it is in.
        self.record: Path | None = None
        self.learner: Learner = self._as_learner(learner)
        wanted = () if target is None else wanted_classes(target, self._where)
        self.task = self._task(task, class_names(y, f"{self._where}, data"), wanted)
        #: The keys of a recipe that its learner and its files were read by, and where paths start there.
        self.origin: dict[str, Any] | None = None
        #: The classes of its task as labels of the type that its own have.
        self._labels = in_type_of(y, self.task.classes)
        # A network has an output for every class of its task; most other learners fail on one class.
        least = 1 if self.learner.has_weights and target is None else 2
        self.data = PrivateData(
            self._where, self.task, X, y, test, validation, target, least, privacy is not None
        )
        if privacy is not None:
            self.data.split(0)  # the same in every run: the account is that of the records trained on
        #: The classes that it is judged on: those of its target if it has one, else its task.
        self.wanted = Task(tuple(c for c in self.task.classes if c in wanted)) if wanted else self.task
        #: The classes that its model chooses among.
        self.among = self.task if target is not None and target.hidden else self.wanted
        self.pool: Instances | None = None
        self.pool_labels: NDArray[np.str_] | None = None
        self.pool_fingerprint: str | None = None
        self._check_missing()
        if pool is not None:
            self.use_pool(pool, labels=pool_labels)
        elif pool_labels is not None:
            raise ConfigError(f"{self._where}: got pool_labels but no pool; wants both, or no labels")
        if privacy is not None and privacy.delta * self.size >= 1:
            raise ConfigError(
                f"{self._where}: privacy.delta = {privacy.delta:g} would allow it to show one of its "
                f"{self.size} records; wants far less than {1 / self.size:.1g}"
            )

    def __repr__(self) -> str:
        classes = ", ".join(self.task.classes)
        return f"<Silo {self.name!r}: {len(self.data.all[1])} instances, task {classes}>"

    # ------------------------------------------------------------------ what is checked when it is made

    def _as_learner(self, given: Any) -> Learner:
        try:
            return as_learner(given)
        except LearnerError as error:
            raise LearnerError(f"{self._where}, learner: {error}") from None

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

    def _check_missing(self, asked: Instances | None = None, what: str = "") -> None:
        """Raise if its learner cannot take missing values where there are some."""
        train, size = self.data.train, len(self.task)
        if asked is not None:
            check_missing(self.learner, *train, size, f"{self._where}, {what}", asked)
            return
        check_missing(self.learner, *train, size, self._where)
        if self.data.test is not None:
            self._check_missing(self.data.test[0], "test data")
        if self.data.target is not None:
            self._check_missing(self.data.target.unlabelled, "unlabelled target")

    def use_pool(self, pool: Any, known_fingerprint: str | None = None, labels: Any = None) -> None:
        """Hold the public pool, with its labels if it has any; its form has to be that of the data."""
        instances = pool if known_fingerprint else as_instances(pool, f"{self._where}, pool")
        if len(instances) == 0:
            raise DataError(f"{self._where}, pool: is empty; wants instances")
        self.data.same_form(instances, "its pool")
        if known_fingerprint not in _COMPLETE:
            self._check_missing(instances, "pool")
            if known_fingerprint and not columns_with_holes(instances):
                _COMPLETE.add(known_fingerprint)
        self.pool = instances
        checked = labels is None or known_fingerprint is not None  # one copy for all silos of a federation
        self.pool_labels = labels if checked else as_pool_labels(labels, instances, f"{self._where}, pool")
        self.pool_fingerprint = known_fingerprint or fingerprint(instances, self.pool_labels)

    def pool_lessons(
        self,
        index: NDArray[np.integer[Any]],
        label: NDArray[Any],
        weight: NDArray[np.float64] | None = None,
    ) -> Lessons:
        """Pool instances with the labels elected for them: codes, or soft targets (instances × classes)."""
        self.check_labels(index, label)
        codes = label if label.ndim == 2 else label.astype(np.int64)
        return Lessons(take(self.need_pool(), index), codes, weight, index)

    def check_labels(self, index: NDArray[np.integer[Any]], label: NDArray[Any]) -> None:
        """Raise if labels of pool instances are not what they should be: the coordinator may be wrong."""
        n_classes, soft = len(self.task), label.ndim == 2
        if index.ndim != 1 or label.shape != ((len(index), n_classes) if soft else index.shape):
            wants = f"one for each of {len(index)} instances" + (f" and {n_classes} classes" if soft else "")
            raise Refused(f"{self._where}: got pseudo-labels of shape {label.shape}; wants {wants}")
        if len(index) and not (index.min() >= 0 and index.max() < len(self.need_pool())):
            raise Refused(f"{self._where}: got pseudo-labels for instances that its pool does not have")
        least, most = (label.min(), label.max()) if label.size else (0, 0)
        if not (least >= 0 and (soft or most < n_classes)):
            raise Refused(f"{self._where}: got pseudo-labels outside its task")
        if len(np.unique(index.astype(np.int64) * n_classes + (0 if soft else label))) < len(index):
            raise Refused(f"{self._where}: got a pseudo-label twice; wants each instance once for a class")

    def remember_lessons(self, lessons: Lessons) -> None:
        """Keep what others taught about the pool: the silo can train on later, with more data of its own."""
        assert lessons.places is not None
        kept = {"index": np.asarray(lessons.places, np.int64), "label": lessons.y}
        if lessons.weight is not None:
            kept["weight"] = lessons.weight
        self.notes[_LESSONS] = kept

    def remembered_lessons(self) -> Lessons | None:
        """What others taught about the pool, if anything."""
        if _LESSONS not in self.notes:
            return None
        kept = self.notes.group(_LESSONS)
        return self.pool_lessons(kept["index"], kept["label"], kept.get("weight"))

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

    # ------------------------------------------------------------------ what is known of it

    @property
    def has_test(self) -> bool:
        """Whether there is, or will be, test data."""
        return self.data.has_test

    @property
    def has_target(self) -> bool:
        """Whether it wants classes that it may not have training data of."""
        return self.data.target is not None

    @property
    def target_size(self) -> int:
        """How many points its target has, labelled or not."""
        target = self.data.target
        return 0 if target is None else len(target.labelled[1]) + len(target.unlabelled)

    @property
    def knows_truth(self) -> bool:
        """Whether the classes of its unlabelled target points are known, to judge their labels by."""
        return self.data.target is not None and self.data.target.truth is not None

    @property
    def form(self) -> str:
        """The form of its instances, in words."""
        held = kinds(self.data.own[0])
        return f"{form(self.data.own[0])} {held}" if held else form(self.data.own[0])

    def notes_on_data(self) -> list[str]:
        """What its owner should look at before a run, one line each."""
        return [f"{self._where}: {line}" for line in notes(self.data.own[0])]

    @property
    def takes_bytes(self) -> bool:
        """Whether its instances are bytes, as images are."""
        return is_bytes(self.data.own[0])

    @property
    def validation_share(self) -> float:
        """The share of its labelled data that is for validation: target points, if it has a target."""
        return self._target_share if self.has_target else self.data.validation_fraction

    @property
    def hidden_share(self) -> float:
        """The share of its labelled data that methods do not see which know nothing of targets."""
        target = self.data.target
        return self._target_share if target is not None and target.hidden else 0.0

    @property
    def _target_share(self) -> float:
        labelled = 0 if self.data.target is None else len(self.data.target.labelled[1])
        return labelled / (len(self.data.own[1]) + labelled)

    @property
    def can_validate(self) -> bool:
        """Whether it is large enough to hold out validation data."""
        return len(self.data.held_out(self.data.train[1])[0]) > 0

    def need_validation(self) -> None:
        """Raise if it is too small to hold out validation data."""
        self.data.validation()

    def as_given(self, codes: Codes) -> NDArray[Any]:
        """Labels of the type that its own labels have, of codes of its task."""
        found: NDArray[Any] = self._labels[codes]
        return found

    @property
    def classes(self) -> NDArray[Any]:
        """The classes that its model chooses among, as labels of the type that its own have."""
        return self.as_given(np.array(self.among.codes_in(self.task)))

    def identity(self) -> dict[str, Any]:
        """All that its part of a result depends on, in hashes and settings, for its own use."""
        learner = describe(self.learner)
        return {
            **self.data.fingerprints(),
            "task": list(self.task.classes),
            "pool": self.pool_fingerprint,
            "learner": learner.value,
            "version": learner.versions,
            "privacy": None if self.privacy is None else self.privacy.model_dump(include=_VOTES),
            "shares": sorted(self.shares),
        }

    def about(self) -> dict[str, Any]:
        """What has to be known of it to use its model without its data."""
        return {
            "name": self.name,
            "classes": list(self.task.classes),
            "wanted": list(self.wanted.classes),
            "among": list(self.among.classes),
            "labels": self._labels.dtype.kind,
            "instances": describe_form(self.data.own[0]),
            "learner": self.learner.name,
            "origin": self.origin,
        }

    def count_jointly(self, counts: NDArray[np.bool_]) -> None:
        """Say which of its test instances count here in the joint test set, where other silos have them too.

        In a simulation several silos may be judged on the same instances.
        """
        self.data.counts_jointly = None if counts.all() else counts

    def hold_out_test_data(self) -> None:
        """Split off the test data, if it is a part of the silo's data: always the same part in a run."""
        self.data.split(self.seed)

    @property
    def counts(self) -> tuple[int, int]:
        """How many instances a run trains on, and how many it tests by."""
        return self.data.counts()

    @property
    def size(self) -> int:
        """The number of training instances."""
        return len(self.data.train[1])
