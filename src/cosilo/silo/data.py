"""Private data: the instances and labels of one silo, checked when they are handed over, and split."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosilo.data import columns
from cosilo.data.instances import Instances, as_instances, digests, fingerprint, form, is_bytes, join, take
from cosilo.data.labels import class_names
from cosilo.data.stratified import hold_out
from cosilo.errors import ConfigError, DataError
from cosilo.learners.base import Codes
from cosilo.protocol.task import Task
from cosilo.silo.parts import Part
from cosilo.silo.target import Target, TargetData
from cosilo.text import listing

Examples = tuple[Instances, Codes]

#: A fraction to hold out, a pair (X, y), None for no evaluation; auto: a quarter, or none beside a target.
Test = float | tuple[Any, Any] | Literal["auto"] | None


class PrivateData:
    """Training and test data of a silo; `where` names the silo in errors.

    `test` is a fraction to hold out when `split` is called, a pair (X, y), or None. With a target, `own` is
    the training set alone, `target` is the target, and what is trained on is the training set and the
    labelled target points; test data is then of target classes. Of `least_classes` there has to be training
    data. `one_by_one`: whether an instance is held out is decided by that instance alone, in every run alike.
    """

    def __init__(
        self,
        where: str,
        task: Task,
        X: Any,
        y: Any,
        test: Test,
        validation: float,
        target: Target | None = None,
        least_classes: int = 2,
        one_by_one: bool = False,
    ) -> None:
        self._one_by_one = one_by_one
        self._where = where
        self._least_classes = least_classes
        self._task = task
        self.own = self.all = self._examples(X, y, "data")
        self.target: TargetData | None = None
        if target is not None:
            self.target = self._checked(target)
            labelled = self.target.labelled
            if not target.hidden:
                self.all = joined(self.own, labelled)
        self.train = self.all
        self.test: Examples | None = None
        #: Which test instances count here in the joint test set; None: all.
        self.counts_jointly: NDArray[np.bool_] | None = None
        self._test_fraction: float | None = None
        if test == "auto":
            test = 0.25 if target is None else None
        if isinstance(test, tuple):
            self.test = self._examples(*test, "test data")
            self.same_form(self.test[0], "test data")
            if self.target is not None:
                self._of_target(self.test[1], self.target.labelled[1], "test data")
        elif test is not None and target is not None:
            raise ConfigError(
                f"{where}: test = {test}, but it has a target, which no part of its training data can judge; "
                "leave test out, or give test data of target classes (in a recipe: test_path)"
            )
        elif test is not None:
            self._test_fraction = _fraction(where, "test", test)
        self.validation_fraction = _fraction(where, "validation", validation)
        self._check_training()

    def _examples(self, X: Any, y: Any, what: str) -> Examples:
        where = f"{self._where}, {what}"
        names = class_names(y, where)
        instances = as_instances(X, where)
        if len(instances) != len(names):
            raise DataError(f"{where}: {len(instances)} instances but {len(names)} labels; wants one each")
        return instances, self._task.encode(names, where)

    def _checked(self, target: Target) -> TargetData:
        labelled = self._examples(target.X, target.y, "target")
        unlabelled = as_instances(target.unlabelled, f"{self._where}, unlabelled target")
        for X, what in ((labelled[0], "its target"), (unlabelled, "its unlabelled target")):
            self.same_form(X, what)
            if is_bytes(X) != is_bytes(self.own[0]):
                one, other = ("bytes", "other numbers")[:: 1 if is_bytes(X) else -1]
                raise DataError(
                    f"{self._where}: {what} is {one}, its data {other}; bring both to the same scale and type"
                )
        truth = None
        if target.truth is not None:
            truth = self._examples(unlabelled, target.truth, "truth of the target")[1]
            self._of_target(truth, labelled[1], "truth of the target")
        return TargetData(labelled, unlabelled, truth if len(unlabelled) else None, target.hidden)

    def _of_target(self, y: Codes, labelled: Codes, what: str) -> None:
        """Raise if labels that judge a silo with a target are not of target classes."""
        wanted = np.unique(labelled)
        strangers = y[~np.isin(y, wanted)]
        if len(strangers):
            raise DataError(
                f"{self._where}, {what}: label {self._task.classes[strangers[0]]!r} is outside the target "
                f"classes {{{listing(self._task.decode(wanted))}}} ({len(strangers)} such instances); "
                "drop them or label target points of that class"
            )

    def same_form(self, X: Instances, what: str) -> None:
        """Raise unless X can be learnt from together with the data."""
        if (other := columns.difference(X, what, self.own[0])) is not None:
            raise DataError(f"{self._where}: {other}")
        if form(X) != form(self.own[0]):
            raise DataError(
                f"{self._where}: {what} is {form(X)}; its data is {form(self.own[0])}; wants the same in both"
            )

    def _check_training(self) -> None:
        present = np.unique((self.train if self.target is None else self.own)[1])
        if len(present) < self._least_classes:
            only = self._task.classes[present[0]]
            raise DataError(
                f"{self._where}: only class {only!r} is in the training data; wants at least two classes"
            )

    def fingerprints(self) -> dict[str, Any]:
        """Hashes of all data and how it is split, for the silo's own use: what its results depend on."""
        found: dict[str, Any] = {"training data": _fingerprint(self.own)}
        if self._test_fraction is not None:
            found["test"] = self._test_fraction
        elif self.test is not None:
            found["test data"] = _fingerprint(self.test)
        if self.counts_jointly is not None:
            found["joint test data"] = fingerprint(self.counts_jointly[:, np.newaxis])
        if self.target is not None:
            found["target"] = _fingerprint(self.target.labelled)
            kind = "hidden" if self.target.hidden else "seen"
            found["unlabelled target"] = f"{kind}-{fingerprint(self.target.unlabelled, self.target.truth)}"
        return {**found, "validation": self.validation_fraction}

    @property
    def joint_test(self) -> Examples | None:
        """What it brings to the joint test set, where each instance counts once; None if that is nothing."""
        if self.test is None or self.counts_jointly is None:
            return self.test
        return _part(self.test, np.flatnonzero(self.counts_jointly)) if self.counts_jointly.any() else None

    @property
    def has_test(self) -> bool:
        """Whether there is, or will be, test data."""
        return self.test is not None or self._test_fraction is not None

    def split(self, seed: int) -> None:
        """Hold out the test set, if it is a fraction of the data; the same seed splits the same way."""
        if self._test_fraction is not None:
            held, kept = self._held_out_for_test(self._test_fraction, seed)
            self.train = _part(self.all, kept)
            self.test = _part(self.all, held) if len(held) else None
            self._check_training()

    def counts(self) -> tuple[int, int]:
        """How many instances a run trains on and how many it tests by, before or after it has split them."""
        if self._test_fraction is None:
            return len(self.train[1]), 0 if self.test is None else len(self.test[1])
        held, kept = self._held_out_for_test(self._test_fraction, 0)
        return len(kept), len(held)

    def _held_out_for_test(self, fraction: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not self._one_by_one:
            return hold_out(self.all[1], fraction, seed)
        chosen = digests(*self.all, b"test") < np.uint64(fraction * 2**64)
        return np.flatnonzero(chosen), np.flatnonzero(~chosen)

    def grow(self, X: Any, y: Any) -> None:
        """Add examples to the training data; the test data stays what it was."""
        more = self._examples(X, y, "new data")
        self.same_form(more[0], "its new data")
        self.own, self.train = joined(self.own, more), joined(self.train, more)

    def part(self, part: Part) -> Examples:
        """One part of the data."""
        match part:
            case Part.TRAINING:
                return self.train
            case Part.OWN:
                return self.own
            case Part.VALIDATION:
                return self.validation()[0]
            case Part.REST:
                return self.validation()[1]
            case Part.TARGET:
                return self.need_target().labelled

    def need_target(self) -> TargetData:
        """The target, or an error."""
        if self.target is None:
            raise DataError(
                f"{self._where}: has no target; give it one: target = {{ path = … }} in a recipe, "
                "target=Target(…) in Python"
            )
        return self.target

    def validation(self) -> tuple[Examples, Examples]:
        """Validation data and the rest of the training data: the same parts every time."""
        places, others = self.held_out(self.train[1])
        held, kept = _part(self.train, places), _part(self.train, others)
        if len(held[1]) == 0:
            raise DataError(
                f"{self._where}: {len(self.train[1])} training instances are too few to hold out "
                f"{self.validation_fraction:.0%} for validation; give it more data or a larger fraction"
            )
        return held, kept

    def folds(self, count: int) -> Iterator[tuple[Examples, Examples]]:
        """The training data cut into that many parts, every class in each: a part, and the rest.

        An instance that is the only one of its class is in no part: the rest would not know the class.
        """
        y = self.train[1]
        rng = np.random.default_rng(0)
        number = np.full(len(y), -1)
        for code in np.unique(y):
            members = rng.permutation(np.flatnonzero(y == code))
            if len(members) > 1:
                number[members] = np.arange(len(members)) % count
        for fold in range(count):
            held = np.flatnonzero(number == fold)
            if len(held):
                yield _part(self.train, held), _part(self.train, np.flatnonzero(number != fold))

    def held_out(self, y: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of some instances are held out of training, as large a part as validation data; the rest."""
        return hold_out(y, self.validation_fraction, seed=0)


def joined(one: Examples, other: Examples) -> Examples:
    """The examples of both."""
    return join(one[0], other[0]), np.concatenate([one[1], other[1]])


def _part(examples: Examples, index: NDArray[np.int64]) -> Examples:
    return take(examples[0], index), examples[1][index]


def _fingerprint(examples: Examples) -> str:
    return f"{fingerprint(examples[0])}-{fingerprint(examples[1][:, np.newaxis])}"


def _fraction(where: str, name: str, value: float) -> float:
    if not 0 < value < 1:
        raise ConfigError(f"{where}: {name} = {value}; wants a fraction between 0 and 1")
    return value
