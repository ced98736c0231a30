"""Metrics beside accuracy, of the silos that share them: before, after, and relative gains."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cosilo.protocol.metrics import NUMBERS
from cosilo.protocol.stage import FEDERATED, LOCAL
from cosilo.runs.run import RunDirectory

#: What a metric is called on a page.
NAMES: Mapping[str, str] = {
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "auc": "AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
}


@dataclass(frozen=True)
class Change:
    """A metric of a silo, or its mean over silos: after local training, at the end, and the relative gain."""

    local: float | None
    federated: float | None
    relative: float | None


@dataclass(frozen=True)
class Details:
    """What a silo shares by class and by confidence, at the end."""

    classes: tuple[str, ...]
    precision: Sequence[float | None]
    recall: Sequence[float | None]
    confusion: Sequence[Sequence[int]]
    calibration: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Metrics:
    """All of a run's metrics beside accuracy."""

    #: Those that any silo shares, in order.
    names: tuple[str, ...]
    silos: Mapping[str, Mapping[str, Change]]
    #: By metric: mean over the silos that have it, and of relative gains over those that have one.
    means: Mapping[str, Change]
    details: Mapping[str, Details]

    @property
    def there(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.names or self.details)


def metrics(run: RunDirectory) -> Metrics:
    """Read what silos share beside accuracies."""
    found: Mapping[str, Mapping[str, Mapping[str, Any]]] = run.result.get("metrics", {})
    last = run.metrics(list(found)[-1]) if found else {}
    names = tuple(
        name for name in NUMBERS if any(name in one for by_silo in found.values() for one in by_silo.values())
    )
    gains = {name: run.relative(name) for name in names}
    local = run.metrics(LOCAL)
    federated = run.metrics(FEDERATED)
    there = [silo for silo in run.about["silos"] if silo in local or silo in federated]
    silos = {
        silo: {
            name: Change(
                local.get(silo, {}).get(name), federated.get(silo, {}).get(name), gains[name].get(silo)
            )
            for name in names
        }
        for silo in there
    }
    means = {
        name: Change(
            *(
                _mean([getattr(silos[silo][name], part) for silo in there])
                for part in ("local", "federated", "relative")
            )
        )
        for name in names
    }
    tasks = run.result["tasks"]
    details = {
        silo: Details(
            tuple(map(str, tasks.get(silo, ()))),
            one.get("precision", ()),
            one.get("recall", ()),
            one.get("confusion", ()),
            one.get("calibration", ()),
        )
        for silo, one in last.items()
        if one.keys() & {"precision", "confusion", "calibration"}
    }
    return Metrics(names, silos, means, details)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
