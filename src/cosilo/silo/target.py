"""A target: what a silo wants to classify and to have labelled, of which only a handful is labelled yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances
from cosilo.errors import ConfigError, DataError
from cosilo.learners.base import Codes
from cosilo.protocol.task import class_names, in_order
from cosilo.silo.predicting import predict_surely

if TYPE_CHECKING:
    import pandas as pd

    from cosilo.silo.silo import Silo

#: The silo's notes about its labels: codes and confidence, and who spoke if a method gave them.
_LABELS, _SPEAKERS = "target labels", "target speakers"


@dataclass(frozen=True, eq=False)
class Target:
    """Points of the classes that a silo wants: some labelled (`X`, `y`), the others to be labelled.

    The target classes are those of `y`; most of them are not in the silo's training data. `truth` is what the
    unlabelled points really are: nothing learns from it, it only says how good the labels are.

    Methods that know nothing of targets train on the labelled points too, and choose among their classes.
    With `hidden` they do neither: so the baselines of DoFed-SPP's paper seem to have been run.

    >>> target = Target(np.eye(2), ["lynx", "wolf"], unlabelled=np.ones((3, 2)))
    >>> wanted_classes(target, "silo 'a'")
    ('lynx', 'wolf')
    """

    X: Any
    y: Any
    unlabelled: Any
    truth: Any = None
    hidden: bool = False


@dataclass(frozen=True, eq=False)
class TargetData:
    """A target that was checked, in the codes of the silo's task."""

    labelled: tuple[Instances, Codes]
    unlabelled: Instances
    truth: Codes | None
    hidden: bool


def wanted_classes(target: Target, where: str) -> tuple[str, ...]:
    """The classes of a target, or an error; `where` names the silo."""
    import pandas as pd

    if not isinstance(target, Target):
        kind = type(target).__name__
        raise ConfigError(f"{where}: target is a {kind}; wants Target(X, y, unlabelled)")
    labels = np.asarray(target.y)
    if labels.ndim != 1:
        raise DataError(f"{where}, target: labels of shape {labels.shape}; wants one class per instance")
    if len(labels) == 0:
        raise DataError(
            f"{where}: no labelled target point; label some points of each class that it wants, "
            "or leave target out"
        )
    holes = np.flatnonzero(pd.isna(labels))
    if len(holes):
        raise DataError(
            f"{where}, target: {len(holes)} of {len(labels)} labels are missing, the first is that of "
            f"instance {holes[0]}; hand such instances over as unlabelled"
        )
    classes = in_order(class_names(labels).tolist())
    if len(classes) < 2:
        raise DataError(
            f"{where}: all {len(labels)} labelled target points are of class {classes[0]!r}; "
            "a classifier needs at least two classes: label points of another one too"
        )
    return classes


def aims(silo: "Silo") -> tuple[list[str], list[str]]:
    """The classes that a silo trains on, and those that it wants: none if it has no target."""
    if silo.data.target is None:
        return list(silo.task.classes), []
    return silo.task.decode(np.unique(silo.data.own[1])).tolist(), list(silo.wanted.classes)


def untaught(
    training: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The target classes of each silo that no other silo trains on; silos without such a class are not in it.

    >>> untaught({"a": ["cat", "dog"], "b": ["lynx", "wolf"]}, {"a": ["lynx", "bear"], "b": ["cat", "dog"]})
    {'a': ['bear']}
    """
    found = {}
    for name, classes in wanted.items():
        taught = {c for other, theirs in training.items() if other != name for c in theirs}
        lonely = [c for c in classes if c not in taught]
        if lonely:
            found[name] = lonely
    return found


class TargetLabels:
    """The labels of a silo's unlabelled target points. They are kept in its notes, and never leave it."""

    def __init__(self, silo: "Silo") -> None:
        self._silo = silo

    def keep(self, codes: Codes, confidence: NDArray[np.floating[Any]], speakers: list[str] | None) -> None:
        """Take over labels that a method has found; from now on the silo's own model gives none."""
        silo, points = self._silo, len(self._target().unlabelled)
        if codes.shape != (points,) or confidence.shape != (points,):
            raise DataError(
                f"silo {silo.name!r}: got labels of shape {codes.shape} with confidence of shape "
                f"{confidence.shape}; wants one each for its {points} unlabelled target points"
            )
        if points and not (codes.min() >= 0 and codes.max() < len(silo.task)):
            raise DataError(f"silo {silo.name!r}: got labels for its target that are outside its task")
        self._write(codes, confidence)
        silo.notes[_SPEAKERS] = list(speakers or [])
        silo.changed = True

    def take(self) -> tuple[float, int] | None:
        """Label with the present model, unless a method gave labels; their accuracy and number, if known."""
        silo, target = self._silo, self._silo.data.target
        if target is None or len(target.unlabelled) == 0:
            return None
        if _SPEAKERS not in silo.notes:
            self._write(*predict_surely(silo, target.unlabelled, silo.among))
        if target.truth is None:
            return None
        codes = self._read()["codes"]
        return float(np.mean(codes == target.truth)), len(codes)

    def frame(self) -> "pd.DataFrame":
        """Label, confidence and whose models spoke, in the order of the unlabelled points."""
        import pandas as pd

        silo = self._silo
        self._target()
        if _LABELS not in silo.notes:
            raise DataError(f"silo {silo.name!r}: has no labels for its target yet; run a method first")
        found, speakers = self._read(), silo.notes.get(_SPEAKERS, [])
        assert isinstance(speakers, list)
        return pd.DataFrame(
            {
                "label": silo.task.decode(found["codes"]),
                "confidence": found["confidence"],
                "speakers": ",".join(speakers),
            }
        )

    def _target(self) -> TargetData:
        target = self._silo.data.target
        if target is None:
            raise DataError(
                f"silo {self._silo.name!r}: has no target; give it one: target = {{ path = … }} in a recipe, "
                "target=Target(…) in Python"
            )
        return target

    def _write(self, codes: Codes, confidence: NDArray[np.floating[Any]]) -> None:
        self._silo.notes[_LABELS] = {
            "codes": np.asarray(codes, np.int64),
            "confidence": np.asarray(confidence, np.float64),
        }

    def _read(self) -> Mapping[str, NDArray[Any]]:
        found = self._silo.notes[_LABELS]
        assert isinstance(found, Mapping)
        return found
