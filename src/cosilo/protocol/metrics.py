"""Measures of a model beside its accuracy: what each is, what it tells about a silo, and when it is better.

Each is a kind of its own in a silo's policy: a silo takes and shares those that it names there, and no other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from cosilo.protocol.forms import LARGEST, SHARE, Expected, Form, Number

#: Bars of a calibration: how many parts the confidences from 0 to 1 are cut into.
BINS = 10


class Rates:
    """One share for each class of the task; NaN where there is nothing to take it of."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants as many numbers as the task has classes, each from 0 to 1."""
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind != "f":
            return "wants one share for each class"
        if expected is not None and len(value) != expected.classes:
            return f"got {len(value)} shares; its task has {expected.classes} classes"
        inside = np.isnan(value) | ((value >= 0) & (value <= 1))
        return None if inside.all() else "holds other numbers than shares from 0 to 1"


class Counts:
    """How often each class (row) was taken for each class (column)."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants a square of whole numbers, as wide as the task."""
        square = isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[0] == value.shape[1]
        if not square or value.dtype.kind != "i" or (value.size and value.min() < 0):  # type: ignore[attr-defined]
            return "wants a square of counts"
        if expected is not None and len(value) != expected.classes:  # type: ignore[arg-type]
            return f"got {len(value)} rows; its task has {expected.classes} classes"  # type: ignore[arg-type]
        return None


class Bars:
    """By confidence: how many instances, how sure the model was, and how often it was right."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants three numbers for each bar."""
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.shape != (BINS, 3):
            return f"wants {BINS} rows of 3 numbers"
        good = np.isfinite(value).all() and (value >= 0).all() and (value[:, 1:] <= 1 + 1e-9).all()
        return None if good else "holds other numbers than counts and shares"


@dataclass(frozen=True)
class Metric:
    """A measure of a model on a silo's test data.

    Attributes
    ----------
    kind
        What it is called in a silo's policy.
    about
        What audit logs and reports say about it.
    form
        What it looks like in a message.
    sign
        1 if more is better, −1 if less is, 0 if it is not one number.
    """

    kind: str
    about: str
    form: Form
    sign: int = 0


#: By name, which is also that of the field in a reply.
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "balanced_accuracy": Metric(
            "balanced_accuracy", "mean over its classes of the share that its model gets right", SHARE, 1
        ),
        "macro_f1": Metric("macro_f1", "mean over its classes of F1 on its test instances", SHARE, 1),
        "auc": Metric(
            "auc", "mean over its classes of the area under the ROC curve, each against the rest", SHARE, 1
        ),
        "log_loss": Metric(
            "log_loss",
            "mean of −log of the probability that its model gives the right class",
            Number(0, LARGEST),
            -1,
        ),
        "precision": Metric("per_class", "by class: the share of what was taken for it that is it", Rates()),
        "recall": Metric(
            "per_class", "by class: the share of its test instances that is recognised", Rates()
        ),
        "confusion": Metric(
            "confusion", "how many of its test instances of each class were taken for each class", Counts()
        ),
        "calibration": Metric(
            "calibration",
            "by how sure its model was: test instances, confidence, share it gets right",
            Bars(),
        ),
        "calibration_error": Metric(
            "calibration",
            "mean difference between how sure its model was and how often it was right",
            SHARE,
            -1,
        ),
    }
)
#: What policies may name, each with what it tells.
METRIC_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "balanced_accuracy": "balanced accuracy, one number",
        "macro_f1": "macro F1, one number",
        "auc": "area under the ROC curve, one number",
        "log_loss": "log loss, one number",
        "per_class": "precision and recall of each class: which classes it knows well",
        "confusion": "the confusion matrix: its test instances of each class, and what they are taken for",
        "calibration": "how sure its model is, and how often it is right then, in ten bars",
    }
)
#: Those that are one number, and can be relative to what there was before.
NUMBERS = tuple(name for name, metric in METRICS.items() if metric.sign)


def gain(name: str, before: float, after: float) -> float | None:
    """How much better a metric is afterwards, relative to before: above 1 is a gain, also of a loss.

    >>> gain("macro_f1", 0.5, 0.6), gain("log_loss", 0.5, 0.25), gain("auc", 0.0, 0.5)
    (1.2, 2.0, None)
    """
    above, below = (after, before) if METRICS[name].sign > 0 else (before, after)
    return above / below if below else None


def as_json(value: Any) -> Any:
    """A metric as result.json has it: numbers and lists; what is not defined is None."""
    if isinstance(value, np.ndarray):
        return [as_json(one) for one in value]
    if isinstance(value, np.generic):
        return as_json(value.item())
    return None if isinstance(value, float) and value != value else value
