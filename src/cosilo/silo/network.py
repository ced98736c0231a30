"""A silo's learner as a network that is trained together with others."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, blocks, take
from cosilo.errors import DataError
from cosilo.protocol.task import Task

if TYPE_CHECKING:
    from cosilo.learners.network import Network
    from cosilo.learners.training import Training
    from cosilo.silo.data import Examples
    from cosilo.silo.silo import Silo

#: Public instances that are looked at together: bounds what a pool costs in memory beside itself.
_AT_ONCE = 4096


class SharedNetwork:
    """What methods that share networks do with a silo's own: read and set its weights, train it.

    It has an output for every class of the vocabulary; the silo's task stays what it is. What has to last
    between steps is in the silo's notes.
    """

    def __init__(self, silo: "Silo") -> None:
        self._silo = silo

    # ------------------------------------------------------------------ its outputs

    def widen(self, vocabulary: list[str]) -> None:
        """Give the network an output for every class of the vocabulary, and new weights."""
        silo = self._silo
        silo.notes["codes"] = np.array(silo.task.codes_in(Task(tuple(vocabulary))), dtype=np.int64)
        silo.notes["outputs"] = len(vocabulary)
        silo.trained = False
        silo.changed = True

    def restart(self) -> None:
        """New weights, with an output for each class of the silo's own task."""
        self.narrow()
        self._silo.trained = False
        self._silo.changed = True

    def narrow(self) -> None:
        """The network has the silo's own classes again."""
        self._silo.notes.pop("outputs", None)

    @property
    def is_wide(self) -> bool:
        """Whether it has an output for every class of the vocabulary."""
        return "outputs" in self._silo.notes

    @property
    def codes(self) -> NDArray[np.int64]:
        """The place of each of the silo's classes among the outputs."""
        if not self.is_wide:
            return np.arange(len(self._silo.task))
        codes = self._silo.notes["codes"]
        assert isinstance(codes, np.ndarray)
        return codes

    @property
    def outputs(self) -> int:
        """How many outputs it has."""
        wide: Any = self._silo.notes.get("outputs")
        return len(self._silo.task) if wide is None else int(wide)

    # ------------------------------------------------------------------ its weights

    @property
    def _learner(self) -> "Network":
        """The learner, which a method that needs a network has made sure is one; built if it is not yet."""
        silo = self._silo
        network: Network = silo.learner  # type: ignore[assignment]
        if not silo.trained:
            network.begin(take(silo.data.train[0], slice(0, 2)), n_classes=self.outputs, seed=silo.seed)
            silo.trained = True
        return network

    @property
    def training(self) -> "Training":
        """How the silo's owner wants it to be trained."""
        training: Training = self._learner.training
        return training

    def weights(self) -> dict[str, NDArray[Any]]:
        """As they are now."""
        return self._learner.weights()

    def set_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Go on from these."""
        self._learner.set_weights(weights)

    # ------------------------------------------------------------------ its training

    def train(self, *, epochs: int, rate: float = 1.0, pull: float = 0.0) -> None:
        """Train from the present weights, by the learner's training.

        The model is not saved with the step: the next one gets its weights from the coordinator.
        """
        silo, network = self._silo, self._learner
        X, y = silo.data.train
        change = {"epochs": epochs, "lr": network.training.lr * rate, "patience": None}
        training = network.training.model_copy(update=change)
        options: Any = {"training": training, "pull": pull}
        network.fit(X, self.codes[y], n_classes=self.outputs, seed=silo.seed, warm=True, **options)

    def another(self, architecture: str | None) -> "Network":
        """A second network with the same outputs and training: from the zoo, or built like the own."""
        from cosilo.learners.network import Network
        from cosilo.learners.zoo import find

        own: Any = self._silo.learner
        module = own.module if architecture is None else find(architecture)
        other = Network(module, own.training, tokens=own.tokens)
        other.begin(take(self._silo.data.train[0], slice(0, 2)), n_classes=self.outputs, seed=self._silo.seed)
        return other

    def learn_with(
        self, peer: "Network", *, epochs: int, rate: float, alpha: float, beta: float, temperature: float
    ) -> None:
        """Train this network and a peer on the same batches, each also towards what the other says (FML).

        This one and its optimiser are the silo's and last; the peer's optimiser begins anew.
        """
        silo, network = self._silo, self._learner
        X, y = silo.data.train
        change = {"epochs": epochs, "lr": network.training.lr * rate, "patience": None}
        before: Any = silo.notes.get("optimiser")
        silo.notes["optimiser"] = network.learn_with(
            peer,
            X,
            self.codes[y],
            seed=silo.seed,
            training=network.training.model_copy(update=change),
            alpha=alpha,
            beta=beta,
            temperature=temperature,
            state=before,
        )
        silo.changed = True

    # ------------------------------------------------------------------ its training where it stays (FedMD)

    def train_on(self, examples: "Examples", held: "Examples | None" = None, **change: Any) -> None:
        """Train from the present weights on examples in the codes of the outputs, and keep the result.

        `change` is what differs from the learner's own settings; `held` is for early stopping, if wanted.
        """
        silo, network = self._silo, self._learner
        options: Any = {"training": network.training.model_copy(update=change), "validation": held}
        network.fit(*examples, n_classes=self.outputs, seed=silo.seed, warm=True, **options)
        silo.changed = True

    def train_on_own(self, *, patience: int | None = None, **change: Any) -> None:
        """The same on the silo's own data; with patience, its validation part is held out."""
        if patience is None:
            (X, y), held = self._silo.data.train, None
        else:
            (held_X, held_y), (X, y) = self._silo.data.validation()
            held = held_X, self.codes[held_y]
        self.train_on((X, self.codes[y]), held, patience=patience, **change)

    def logits(self, X: Instances) -> NDArray[np.float32]:
        """What the network's outputs are for public instances, before any softmax."""
        return np.concatenate([self._learner.logits(take(X, part)) for part in blocks(len(X), _AT_ONCE)])

    def imitate(self, X: Instances, targets: NDArray[Any], **change: Any) -> None:
        """Train towards these outputs for public instances, by the mean absolute error; keep the result."""
        from cosilo.learners.losses import mean_absolute_error

        silo, network = self._silo, self._learner
        if targets.shape != (len(X), self.outputs):
            raise DataError(
                f"silo {silo.name!r}: got targets of shape {targets.shape}; "
                f"wants {(len(X), self.outputs)}: a row for each instance, a column for each output"
            )
        if not np.isfinite(targets).all():
            raise DataError(f"silo {silo.name!r}: got targets that are not finite numbers")
        # Targets are no classes, which could be balanced, and there is nothing to validate them with.
        training = network.training.model_copy(update={"balanced": False, "patience": None, **change})
        network.imitate(X, targets, seed=silo.seed, training=training, loss=mean_absolute_error)
        silo.changed = True
