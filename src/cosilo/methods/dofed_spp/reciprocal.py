"""What a silo with a target does with the models of others (DoFed-SPP): compare, label, learn."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.similarity import FLOOR, distance, label_by_opinions, similarity_ratios
from cosilo.silo.parts import Part
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    pass


class Reciprocal:
    """A silo's reciprocal model and what it knows of those of others; all of it is in the silo's notes.

    The silo's own network is the target model. `silos` are the names of all silos, in one order for all.
    """

    def __init__(self, silo: Silo) -> None:
        self._silo = silo
        self._network = silo.network

    # ------------------------------------------------------------------ the reciprocal model

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """Of the reciprocal model, as it is now."""
        return self._silo.notes.group("reciprocal")

    def train(self, start: Weights, epochs: int) -> None:
        """Eq. 15: on the training set, from these weights, which are remembered for distances."""
        notes, network = self._silo.notes, self._network.another()
        network.set_weights(start)
        network.train(Part.OWN, epochs=epochs)
        notes["before"], notes["reciprocal"] = dict(start), network.weights()

    # ------------------------------------------------------------------ similarity ratios

    def loss(self) -> float:
        """ℓ_n of the target model: on the labelled target points."""
        return self._network.loss(Part.TARGET)

    def look_at(self, models: Mapping[str, Weights], silos: list[str]) -> None:
        """Take each model's loss on the labelled target points, and its distance; both are remembered."""
        silo = self._silo
        before, trial = silo.notes.group("before"), self._network.another()
        nothing = np.full(len(silos), np.nan)
        losses, distances = (np.array(silo.notes.get(key, nothing)) for key in ("losses", "distances"))
        for name, weights in models.items():
            trial.set_weights(weights)
            place = silos.index(name)
            losses[place], distances[place] = trial.loss(Part.TARGET), distance(weights, before)
        silo.notes["losses"], silo.notes["distances"] = losses, distances

    def ratios(self, own_loss: float, silos: list[str], g1: float, g2: float) -> NDArray[np.float64]:
        """Eq. 19 for all models that were ever looked at.

        The silo's own model is near because it has hardly moved since the last round, which tells nothing of
        its use: the floor of a distance is that of the nearest model of another silo.
        """
        silo = self._silo
        distances = silo.notes.array("distances")
        others = np.delete(distances, silos.index(silo.name))
        nearest = np.min(others[~np.isnan(others)], initial=np.inf)
        found = similarity_ratios(
            own_loss,
            silo.notes.array("losses"),
            distances,
            rate=self._network.training.lr,
            g1=g1,
            g2=g2,
            floor=max(float(nearest), FLOOR) if np.isfinite(nearest) else FLOOR,
            before=silo.notes.array("ratios") if "ratios" in silo.notes else None,
        )
        silo.notes["ratios"] = found
        return found

    # ------------------------------------------------------------------ labels and the target model

    def label(self, models: Mapping[str, Weights], silos: list[str]) -> float:
        """Eq. 20 on the unlabelled target points; returns the share of labels that changed."""
        silo = self._silo
        wanted = np.array(silo.wanted.codes_in(silo.task))
        weights = silo.notes.array("ratios")

        def opinions() -> Iterator[tuple[float, NDArray[Any]]]:
            trial = self._network.another()
            for name, model in models.items():
                trial.set_weights(model)
                yield float(weights[silos.index(name)]), trial.target_probabilities()

        places, confidence = label_by_opinions(opinions())
        codes = wanted[places]
        before = silo.notes.array("pseudo") if "pseudo" in silo.notes else None
        silo.notes["pseudo"] = codes
        silo.keep_labels(codes, confidence, list(models))
        return 1.0 if before is None else float(np.mean(before != codes))

    def train_target(self, epochs: int) -> None:
        """Eq. 22: on the pseudo-labelled and the truly labelled target points."""
        notes = self._silo.notes
        labels = notes.array("pseudo") if "pseudo" in notes else None
        self._network.train(Part.TARGET, target_labels=labels, epochs=epochs)
