"""What methods see of a silo's network."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, blocks, take
from cosilo.protocol.stage import Score
from cosilo.protocol.task import Task
from cosilo.silo.data import Examples, joined
from cosilo.silo.holdings import Holdings
from cosilo.silo.parts import Part

if TYPE_CHECKING:
    from cosilo.learners.network import Network
    from cosilo.learners.trainee import AfterStep, Correction, Loss, OptimiserState
    from cosilo.learners.training import Training

#: Public instances that are looked at together: bounds what a pool costs in memory beside itself.
_AT_ONCE = 4096
#: The note of what the untrained network was built with.
_SEED = "network seed"


class NetworkView:
    """What methods that share networks do with a silo's own: read and set its weights, train it.

    It may have an output for every class of the vocabulary; the silo's task stays what it is. What changes it
    is saved with the step, unless a method that sets the weights anew next time says `keep=False`.

    Methods name parts of the silo's data and never see them. `beside` is another network at the silo, in
    place of its own: it lasts as long as the step.
    """

    def __init__(self, silo: Holdings, beside: "Network | None" = None) -> None:
        self._silo = silo
        self._beside = beside

    # ------------------------------------------------------------------ its outputs

    def widen(self, vocabulary: list[str]) -> None:
        """Give the network an output for every class of the vocabulary, and new weights."""
        silo = self._silo
        silo.notes["codes"] = np.array(silo.task.codes_in(Task(tuple(vocabulary))), dtype=np.int64)
        silo.notes["outputs"] = len(vocabulary)
        self._begin_anew()

    def restart(self) -> None:
        """New weights, with an output for each class of the silo's own task."""
        self.narrow()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._silo.notes.pop(_SEED, None)
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
        return self._built(keep=True)

    def _built(self, keep: bool) -> "Network":
        if self._beside is not None:
            return self._beside
        silo = self._silo
        network: Network = silo.learner  # type: ignore[assignment]
        if not silo.trained:
            seed = silo.notes.integer(_SEED) if _SEED in silo.notes else silo.seed
            network.begin(take(silo.data.train[0], slice(0, 2)), n_classes=self.outputs, seed=seed)
            silo.trained = True
            if keep:
                silo.changed = True
            else:
                silo.notes[_SEED] = seed  # it is built again after a restart, and is then the same network
        return network

    @property
    def training(self) -> "Training":
        """How the silo's owner wants it to be trained."""
        learner: Any = self._silo.learner
        training: Training = learner.training
        return training

    def weights(self) -> dict[str, NDArray[Any]]:
        """As they are now."""
        return self._learner.weights()

    def set_weights(self, weights: Mapping[str, NDArray[Any]], *, keep: bool = True) -> None:
        """Go on from these."""
        self._built(keep).set_weights(weights)
        self._changed(keep)

    def _changed(self, keep: bool) -> None:
        self._silo.changed |= keep and self._beside is None

    def another(self, architecture: str | None = None) -> "NetworkView":
        """A second network with the same outputs and training: from the zoo, or built like the own."""
        from cosilo.learners.network import Network
        from cosilo.learners.zoo import find

        own: Any = self._silo.learner
        module = own.module if architecture is None else find(architecture)
        other = Network(module, own.training, tokens=own.tokens)
        other.begin(take(self._silo.data.train[0], slice(0, 2)), n_classes=self.outputs, seed=self._silo.seed)
        return NetworkView(self._silo, other)

    # ------------------------------------------------------------------ what it says

    def logits(self, X: Instances) -> NDArray[np.float32]:
        """What the network's outputs are for public instances, before any softmax."""
        return np.concatenate([self._learner.logits(take(X, part)) for part in blocks(len(X), _AT_ONCE)])

    def probabilities(self, X: Instances) -> NDArray[np.float64]:
        """How likely each class of the outputs is, for public instances."""
        return self._learner.predict_proba(X)

    def wanted_probabilities(self) -> NDArray[np.float64]:
        """How likely each wanted class of the silo is, for its unlabelled target points."""
        silo = self._silo
        outputs = self.codes[np.array(silo.wanted.codes_in(silo.task))]
        return self._learner.predict_proba(silo.data.need_target().unlabelled)[:, outputs]

    def loss(self, on: Part) -> float:
        """The mean cross-entropy on a part of the silo's data."""
        X, y = self._silo.data.part(on)
        return self._learner.loss(X, self.codes[y])

    def joint_accuracy(self) -> Score | None:
        """Its accuracy among all classes of the outputs, on what the silo brings to the joint test set."""
        if self._silo.data.joint_test is None:
            return None
        X, y = self._silo.data.joint_test
        return Score(float(np.mean(self._learner.predict(X) == self.codes[y])), len(y))

    # ------------------------------------------------------------------ its training

    def train(
        self,
        on: Part | Examples = Part.TRAINING,
        held: Examples | None = None,
        *,
        target_labels: NDArray[np.int64] | None = None,
        keep: bool = True,
        loss: "Loss | None" = None,
        correction: "Correction | None" = None,
        after_step: "AfterStep | None" = None,
        peers: "Sequence[tuple[NetworkView, Loss]]" = (),
        state: "OptimiserState | None" = None,
        patience: int | None = None,
        **change: object,
    ) -> dict[str, NDArray[Any]]:
        """Train from the present weights; returns the optimiser's state.

        Parameters
        ----------
        on
            A part of the silo's data, or public examples in the codes of the outputs.
        held
            Public examples for early stopping, beside public examples.
        target_labels
            Codes, in the silo's task, for its unlabelled target points, which are then trained on too.
        keep
            Whether the network is saved with the step.
        loss, correction, after_step, state
            As in `Network.train`.
        peers
            Other networks that train on the same batches, each with its loss.
        patience
            Stop early, after this many epochs without a better loss on `held`; of the silo's training data
            the validation part is held out for that.
        **change
            What differs from the owner's training settings.
        """
        from cosilo.learners.losses import cross_entropy

        network = self._built(keep)
        if isinstance(on, Part):
            on, held = self._examples(on, target_labels, validate=patience is not None)
        after = network.train(
            *on,
            seed=self._silo.seed,
            training=network.training.but(patience=patience, **change),
            validation=held,
            loss=loss or cross_entropy,
            correction=correction,
            after_step=after_step,
            peers=[(peer._learner, its) for peer, its in peers],
            state=state,
        )
        self._changed(keep)
        return after

    def _examples(
        self, part: Part, target_labels: NDArray[np.int64] | None, validate: bool
    ) -> tuple[Examples, Examples | None]:
        """A part of the silo's data in the codes of the outputs, and what is held out of it, if wanted."""
        data, held = self._silo.data, None
        if validate:
            part = Part.REST
            held_X, held_y = data.part(Part.VALIDATION)
            held = held_X, self.codes[held_y]
        X, y = data.part(part)
        if target_labels is not None:
            X, y = joined((X, y), (data.need_target().unlabelled, target_labels))
        return (X, self.codes[y]), held
