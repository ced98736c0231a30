"""The models of others that labelled a silo's target, kept so that they can label new points."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.similarity import label_by_opinions
from cosilo.data.instances import Instances
from cosilo.errors import DataError
from cosilo.learners.base import Codes
from cosilo.protocol.task import Task
from cosilo.silo.holdings import Holdings
from cosilo.silo.network import NetworkView
from cosilo.silo.predicting import Answering, output_codes

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


def label_new(one: Answering, wanted: Task, X: Instances) -> tuple[Codes, NDArray[np.float64], list[str]]:
    """Codes of the task, among the classes that are wanted, how sure they are, and whose models spoke."""
    notes = one.notes
    if _NAMES not in notes:
        raise DataError(
            f"silo {one.name!r}: has no labeller: DoFed-SPP leaves one beside the federated model, if "
            "another silo's model helped; predict asks the silo's own model"
        )
    names, ratios = notes.names(_NAMES), notes.array(_RATIOS).tolist()
    places, codes = np.array(wanted.codes_in(one.task)), output_codes(one)

    def opinions() -> Iterator[tuple[float, NDArray[Any]]]:
        network: Any = deepcopy(one.learner)
        for name, ratio in zip(names, ratios, strict=True):
            network.set_weights(notes.group(_MODEL + name))
            yield ratio, network.predict_proba(X)[:, places if codes is None else codes[places]]

    found, confidence = label_by_opinions(opinions())
    return places[found], confidence, names


def label_with(
    silo: Holdings, models: Mapping[str, Weights], ratios: Mapping[str, float]
) -> tuple[Codes, NDArray[np.float64]]:
    """Codes of the silo's task for its unlabelled target points, and how sure they are.

    They are among the classes it wants (eq. 20 of DoFed-SPP).
    """

    def opinions() -> Iterator[tuple[float, NDArray[Any]]]:
        trial = NetworkView(silo).another()
        for name, ratio in ratios.items():
            trial.set_weights(models[name])
            yield ratio, trial.wanted_probabilities()

    places, confidence = label_by_opinions(opinions())
    return np.array(silo.wanted.codes_in(silo.task))[places], confidence
