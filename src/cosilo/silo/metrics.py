"""What scikit-learn says about a model's answers on test data; nothing here leaves the silo by itself."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.learners.base import Codes
from cosilo.protocol.metrics import BINS, METRICS

#: The kinds that take probabilities.
UNSURE = frozenset({"auc", "log_loss", "calibration"})


def metrics_of(
    kinds: Collection[str],
    right: Codes,
    said: Codes,
    chances: NDArray[np.float64] | None,
    among: list[int],
    classes: int,
) -> dict[str, Any]:
    """The metrics of these kinds, by name; those that are not defined here are left out.

    `right` and `said` are codes of a task with that many classes; `chances` has a column for each of `among`,
    the classes that the model chooses from.

    >>> right, said = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> found = metrics_of({"macro_f1", "confusion"}, right, said, None, [0, 1], 2)
    >>> round(found["macro_f1"], 3), found["confusion"].tolist()
    (0.667, [[1, 1], [0, 1]])
    """
    from sklearn import metrics

    found: dict[str, Any] = {}
    if "balanced_accuracy" in kinds:
        there = np.unique(right)
        found["balanced_accuracy"] = metrics.recall_score(right, said, labels=there, average="macro")
    if "macro_f1" in kinds:
        here = np.union1d(right, said)
        found["macro_f1"] = metrics.f1_score(right, said, labels=here, average="macro", zero_division=0)
    if "per_class" in kinds:
        for name, score in (("precision", metrics.precision_score), ("recall", metrics.recall_score)):
            found[name] = score(right, said, labels=range(classes), average=None, zero_division=np.nan)
    if "confusion" in kinds:
        table = metrics.confusion_matrix(right, said, labels=range(classes))
        found["confusion"] = table.astype(np.int64)
    if chances is not None and len(right):
        found |= _of_chances(kinds, right, chances, among)
    order = [name for name in METRICS if name in found]
    return {name: float(found[name]) if METRICS[name].sign else found[name] for name in order}


def _of_chances(
    kinds: Collection[str], right: Codes, chances: NDArray[np.float64], among: list[int]
) -> dict[str, Any]:
    from sklearn import metrics

    found: dict[str, Any] = {}
    codes = np.array(among)
    is_it = right[:, np.newaxis] == codes
    if "auc" in kinds:
        both = [place for place in range(len(codes)) if 0 < is_it[:, place].sum() < len(right)]
        if both:
            each = [metrics.roc_auc_score(is_it[:, place], chances[:, place]) for place in both]
            found["auc"] = float(np.mean(each))
    if "log_loss" in kinds and len(codes) > 1:
        found["log_loss"] = metrics.log_loss(right, chances, labels=codes)
    if "calibration" in kinds:
        best = chances.argmax(axis=1)
        hit, sure = codes[best] == right, chances.max(axis=1)
        found["calibration"] = bars = _bars(hit, sure)
        found["calibration_error"] = float((bars[:, 0] * abs(bars[:, 1] - bars[:, 2])).sum() / len(right))
    return found


def _bars(hit: NDArray[np.bool_], sure: NDArray[np.float64]) -> NDArray[np.float64]:
    """By confidence: how many instances, their mean confidence, and the share that is right."""
    from sklearn.calibration import calibration_curve

    edges = np.linspace(0, 1, BINS + 1)
    place = np.searchsorted(edges[1:-1], sure)
    bars = np.zeros((BINS, 3))
    bars[:, 0] = np.bincount(place, minlength=BINS)
    is_right, confidence = calibration_curve(hit, np.minimum(sure, 1.0), n_bins=BINS, strategy="uniform")
    bars[bars[:, 0] > 0, 1:] = np.column_stack([confidence, is_right])
    return bars
