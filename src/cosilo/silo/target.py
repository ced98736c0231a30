"""A target: what a silo wants to classify and to have labelled, of which only a handful is labelled yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosilo.data.instances import Instances
from cosilo.data.labels import class_names, in_order
from cosilo.errors import ConfigError, DataError
from cosilo.learners.base import Codes


@dataclass(frozen=True, eq=False)
class Target:
    """Points of the classes that a silo wants: some labelled, the others to be labelled.

    The target classes are those of `y`; most of them are not in the silo's training data.

    Parameters
    ----------
    X : array, DataFrame or list of str
        The labelled points, of the same form as the silo's data.
    y : array of labels
        Their classes, at least two.
    unlabelled : array, DataFrame or list of str
        The points to be labelled.
    truth : array of labels, default None
        What the unlabelled points really are, where that is known: nothing learns from it, it only says how
        good the labels are.
    hidden : bool, default False
        Whether methods that know nothing of targets neither train on the labelled points nor choose among
        their classes: so the baselines of DoFed-SPP's paper seem to have been run.

    Examples
    --------
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
