"""What a silo with a target does with the models of others (DoFed-SPP): compare, label, learn."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.similarity import FLOOR, distance, elect, ratios
from cosilo.data.instances import Instances, join
from cosilo.errors import DataError
from cosilo.silo.silo import Silo
from cosilo.silo.target import TargetData

if TYPE_CHECKING:
    from cosilo.learners.network import Network


class Reciprocal:
    """A silo's reciprocal model and what it knows of those of others; all of it is in the silo's notes.

    The silo's own network is the target model. `silos` are the names of all silos, in one order for all.
    """

    def __init__(self, silo: Silo) -> None:
        self._silo = silo
        self._network = silo.network

    @property
    def _target(self) -> TargetData:
        target = self._silo.data.target
        if target is None:
            raise DataError(f"silo {self._silo.name!r}: has no target set; give it one: target = …")
        return target

    # ------------------------------------------------------------------ the reciprocal model

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """Of the reciprocal model, as it is now."""
        return self._silo.notes.group("reciprocal")

    def train(self, start: Weights, epochs: int) -> None:
        """Eq. 15: on the training set, from these weights, which are remembered for distances."""
        silo = self._silo
        network = self._with(start)
        X, y = silo.data.own
        training = network.training.model_copy(update={"epochs": epochs, "patience": None})
        network.train(X, self._network.codes[y], seed=silo.seed, training=training)
        silo.notes["before"], silo.notes["reciprocal"] = dict(start), network.weights()

    def _with(self, weights: Weights) -> "Network":
        network = self._network.another(None)
        network.set_weights(weights)
        return network

    # ------------------------------------------------------------------ similarity ratios

    def loss(self) -> float:
        """ℓ_n of the target model: on the labelled target points."""
        X, y = self._target.labelled
        learner: Any = self._silo.learner
        return float(learner.loss(X, self._network.codes[y]))

    def look_at(self, models: Mapping[str, Weights], silos: list[str]) -> None:
        """Take each model's loss on the labelled target points, and its distance; both are remembered."""
        silo = self._silo
        X, y = self._target.labelled
        codes, before = self._network.codes[y], silo.notes.group("before")
        trial = self._network.another(None)
        nothing = np.full(len(silos), np.nan)
        losses, distances = (np.array(silo.notes.get(key, nothing)) for key in ("losses", "distances"))
        for name, weights in models.items():
            trial.set_weights(weights)
            place = silos.index(name)
            losses[place], distances[place] = trial.loss(X, codes), distance(weights, before)
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
        found = ratios(
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
        outputs, points = self._network.codes[wanted], self._target.unlabelled
        weights = silo.notes.array("ratios")

        def opinions() -> Iterator[tuple[float, NDArray[Any]]]:
            trial = self._network.another(None)
            for name, model in models.items():
                trial.set_weights(model)
                yield float(weights[silos.index(name)]), trial.predict_proba(points)[:, outputs]

        places, confidence = elect(opinions())
        codes = wanted[places]
        before = silo.notes.array("pseudo") if "pseudo" in silo.notes else None
        silo.notes["pseudo"] = codes
        silo.keep_labels(codes, confidence, list(models))
        return 1.0 if before is None else float(np.mean(before != codes))

    def train_target(self, epochs: int) -> None:
        """Eq. 22: on the pseudo-labelled and the truly labelled target points."""
        X: Instances
        X, y = self._target.labelled
        notes = self._silo.notes
        if "pseudo" in notes:
            X, y = join(X, self._target.unlabelled), np.concatenate([y, notes.array("pseudo")])
        self._network.train((X, self._network.codes[y]), epochs=epochs)
