"""What methods see of a silo's network."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, blocks, take
from cosilo.protocol.task import Task
from cosilo.silo.data import Examples
from cosilo.silo.holdings import Holdings

if TYPE_CHECKING:
    from cosilo.learners.network import Network
    from cosilo.learners.trainee import AfterStep, Correction, Loss, State
    from cosilo.learners.training import Training

#: Public instances that are looked at together: bounds what a pool costs in memory beside itself.
_AT_ONCE = 4096


class NetworkView:
    """What methods that share networks do with a silo's own: read and set its weights, train it.

    It may have an output for every class of the vocabulary; the silo's task stays what it is. What changes it
    is saved with the step, unless a method that sets the weights anew next time says `keep=False`.
    """

    def __init__(self, silo: Holdings) -> None:
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
        return self._silo.notes.array("codes")

    @property
    def outputs(self) -> int:
        """How many outputs it has."""
        notes = self._silo.notes
        return notes.integer("outputs") if "outputs" in notes else len(self._silo.task)

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

    def set_weights(self, weights: Mapping[str, NDArray[Any]], *, keep: bool = True) -> None:
        """Go on from these."""
        self._learner.set_weights(weights)
        self._silo.changed |= keep

    def another(self, architecture: str | None) -> "Network":
        """A second network with the same outputs and training: from the zoo, or built like the own."""
        from cosilo.learners.network import Network
        from cosilo.learners.zoo import find

        own: Any = self._silo.learner
        module = own.module if architecture is None else find(architecture)
        other = Network(module, own.training, tokens=own.tokens)
        other.begin(take(self._silo.data.train[0], slice(0, 2)), n_classes=self.outputs, seed=self._silo.seed)
        return other

    def logits(self, X: Instances) -> NDArray[np.float32]:
        """What the network's outputs are for public instances, before any softmax."""
        return np.concatenate([self._learner.logits(take(X, part)) for part in blocks(len(X), _AT_ONCE)])

    # ------------------------------------------------------------------ its training

    def train(
        self,
        examples: "Examples | None" = None,
        held: "Examples | None" = None,
        *,
        keep: bool = True,
        loss: "Loss | None" = None,
        correction: "Correction | None" = None,
        after_step: "AfterStep | None" = None,
        peers: "Sequence[tuple[Network, Loss]]" = (),
        state: "State | None" = None,
        patience: int | None = None,
        **change: object,
    ) -> dict[str, NDArray[Any]]:
        """Train from the present weights on the silo's own data, or on examples in the codes of the outputs.

        `change` is what differs from the owner's training settings; the rest is as in `Network.train`. It
        stops early only with a patience, on `held`; of its own data the validation part is held out then.
        """
        from cosilo.learners.losses import cross_entropy

        silo, network = self._silo, self._learner
        if examples is None:
            X, y = silo.data.train
            if patience is not None:
                (held_X, held_y), (X, y) = silo.data.validation()
                held = held_X, self.codes[held_y]
            examples = X, self.codes[y]
        after = network.train(
            *examples,
            seed=silo.seed,
            training=network.training.model_copy(update={"patience": patience, **change}),
            validation=held,
            loss=loss or cross_entropy,
            correction=correction,
            after_step=after_step,
            peers=peers,
            state=state,
        )
        silo.changed |= keep
        return after
