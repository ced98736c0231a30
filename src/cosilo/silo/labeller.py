"""The models of others that labelled a silo's target, kept so that they can label new points."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.similarity import label_by_opinions
from cosilo.data.instances import Instances
from cosilo.errors import DataError
from cosilo.learners.base import Codes
from cosilo.silo.holdings import Holdings
from cosilo.silo.network import NetworkView

if TYPE_CHECKING:
    import pandas as pd

#: The silo's notes about it: whose models, how much each counts, and the models themselves.
_NAMES, _RATIOS, _MODEL = "labeller", "labeller ratios", "labeller model "


class Labeller:
    """An ensemble of networks like the silo's own, each with a ratio; it is kept in the silo's notes."""

    def __init__(self, silo: Holdings) -> None:
        self._silo = silo

    def keep(self, models: Mapping[str, Weights], ratios: Mapping[str, float]) -> None:
        """Take over models, by the names of their silos, in place of those there were."""
        notes = self._silo.notes
        for name in notes.names(_NAMES) if _NAMES in notes else []:
            notes.pop(_MODEL + name)
        notes[_NAMES], notes[_RATIOS] = list(ratios), np.array(list(ratios.values()))
        for name in ratios:
            notes[_MODEL + name] = models[name]

    def frame(self, X: Instances) -> "pd.DataFrame":
        """Label, confidence and whose models spoke, for new points."""
        import pandas as pd

        silo, notes = self._silo, self._silo.notes
        if _NAMES not in notes:
            raise DataError(
                f"silo {silo.name!r}: has no labeller: DoFed-SPP leaves one, if a model of another silo "
                "helped; predict asks the silo's own model"
            )
        names, ratios = notes.names(_NAMES), notes.array(_RATIOS).tolist()
        models = {name: notes.group(_MODEL + name) for name in names}
        codes, confidence = label_with(silo, models, dict(zip(names, ratios, strict=True)), X)
        spoke = ",".join(names)
        return pd.DataFrame({"label": silo.as_given(codes), "confidence": confidence, "speakers": spoke})


def label_with(
    silo: Holdings, models: Mapping[str, Weights], ratios: Mapping[str, float], X: Instances | None = None
) -> tuple[Codes, NDArray[np.float64]]:
    """Codes of the silo's task, among the classes it wants, and how sure they are (eq. 20 of DoFed-SPP).

    For the silo's unlabelled target points, unless new ones are given.
    """

    def opinions() -> Iterator[tuple[float, NDArray[Any]]]:
        trial = NetworkView(silo).another()
        for name, ratio in ratios.items():
            trial.set_weights(models[name])
            yield ratio, trial.wanted_probabilities(X)

    places, confidence = label_by_opinions(opinions())
    return np.array(silo.wanted.codes_in(silo.task))[places], confidence
