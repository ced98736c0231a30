"""What a silo with a target does with the models of others (DoFed-SPP): compare, label, learn."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.similarity import FLOOR, distance, similarity_ratios
from cosilo.silo.labeller import label_with
from cosilo.silo.parts import Part
from cosilo.silo.silo import Silo


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

    def look_at(self, models: Mapping[str, Weights], silos: list[str]) -> None:
        """Take each model's loss on the labelled target points, and its distance; both are remembered."""
        notes, trial = self._silo.notes, self._network.another()
        before, nothing = notes.group("before"), np.full(len(silos), np.nan)
        losses, distances = (np.array(notes.get(key, nothing)) for key in ("losses", "distances"))
        for name, weights in models.items():
            trial.set_weights(weights)
            place = silos.index(name)
            losses[place], distances[place] = trial.loss(Part.TARGET), distance(weights, before)
        notes["losses"], notes["distances"] = losses, distances

    def take_loss(self) -> float:
        """ℓ_n of the target model of the round before (line 32 of Algorithm 2); the present one is noted."""
        notes, now = self._silo.notes, self._network.loss(Part.TARGET)
        if "loss" not in notes:  # nothing was trained before the first round
            notes["loss"] = notes["untrained loss"] = now
        last = notes.number("loss")
        notes["loss"] = now
        return last

    def ratios(
        self, own_loss: float, silos: list[str], g1: float, g2: float | None
    ) -> NDArray[np.float64] | None:
        """Eq. 19 for all models that were ever looked at; None if no model helps.

        G₂ bounds a gradient, and so how much the loss can rise from one model to another. Unless it is given,
        it is measured: the rise from the target model to the best model at hand, and from a model without a
        fault to the untrained one, ℓ_n(θ_tar,0). So a model helps if it does not lose more than the best one
        by as much as knowing nothing costs, whatever the target model itself loses.

        The silo's own model is near because it has hardly moved since the last round, which tells nothing of
        its use: the floor of a distance is that of the nearest model of another silo.
        """
        notes = self._silo.notes
        losses, distances = notes.array("losses"), notes.array("distances")
        if g2 is None:
            least = float(np.nanmin(losses))
            # Where every model's loss is infinite none helps, and there is nothing to measure.
            g2 = max(notes.number("untrained loss") + least - own_loss, 0.0) if np.isfinite(least) else 0.0
        others = np.delete(distances, silos.index(self._silo.name))
        nearest = np.min(others[~np.isnan(others)], initial=np.inf)
        found = similarity_ratios(
            own_loss,
            losses,
            distances,
            rate=self._network.training.lr,
            g1=g1,
            g2=g2,
            floor=max(float(nearest), FLOOR) if np.isfinite(nearest) else FLOOR,
        )
        if not found.any():
            return None
        notes["ratios"] = found
        return found

    def least_loss(self) -> NDArray[np.float64]:
        """Ratios where no model helps yet: the one with the smallest loss tells more than a mean over all."""
        losses = self._silo.notes.array("losses")
        best = (losses == np.nanmin(losses)).astype(np.float64)
        self._silo.notes["ratios"] = best / best.sum()
        return self._silo.notes.array("ratios")

    # ------------------------------------------------------------------ labels and the target model

    def best(self, models: Iterable[str], silos: list[str], count: int) -> dict[str, float]:
        """The models that help most among these, with their ratios; none that does not help."""
        ratios = self._silo.notes.array("ratios")
        helpful = {name: float(ratios[silos.index(name)]) for name in models}
        names = sorted((name for name in helpful if helpful[name] > 0), key=lambda name: -helpful[name])
        return {name: helpful[name] for name in names[:count]}

    def label(self, models: Mapping[str, Weights], ratios: Mapping[str, float]) -> float:
        """Eq. 20 on the unlabelled target points; returns the share of labels that changed."""
        silo = self._silo
        codes, confidence = label_with(silo, models, ratios)
        before = silo.notes.array("pseudo") if "pseudo" in silo.notes else None
        silo.notes["pseudo"] = codes
        silo.keep_labels(codes, confidence, list(ratios))
        silo.notes["speakers"], silo.notes["speaker ratios"] = list(ratios), np.array(list(ratios.values()))
        return 1.0 if before is None else float(np.mean(before != codes))

    def keep_labeller(self, models: Mapping[str, Weights], silos: list[str]) -> None:
        """Keep the models of the last round that labelled the target, for new points.

        If these labelled in an earlier round, it is those that help now; none if no model does.
        """
        notes = self._silo.notes
        names = notes.names("speakers") if "speakers" in notes else []
        if names and all(name in models for name in names):
            ratios = dict(zip(names, notes.array("speaker ratios").tolist(), strict=True))
        else:
            ratios = self.best(models, silos, len(models))
        if ratios:
            self._silo.keep_labeller(models, ratios)

    def train_target(self, epochs: int) -> None:
        """Eq. 22: on the pseudo-labelled and the truly labelled target points."""
        notes = self._silo.notes
        labels = notes.array("pseudo") if "pseudo" in notes else None
        self._network.train(Part.TARGET, target_labels=labels, epochs=epochs)
