"""SCAFFOLD: FedAvg whose silos correct each step by where all silos together would go.

S. P. Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning" (2020).

The server and every silo have a control variate: a guess of the gradient of all data (c), and of the silo's
own (c_i). A silo's steps follow g_i − c_i + c, so that they do not drift to what is best for the silo alone;
then c_i⁺ = c_i − c + (w_t − w_i)/(Kη_l), option II of Algorithm 1. Both begin at 0: round 1 is FedAvg.

Deviations from the paper:

- Models and control variates weigh by size, as in FedAvg; `weighting = "equal"` is the paper.
- With momentum ρ, or learning rates η_k that change, Kη_l is Σ_k η_k (1 − ρ^k)/(1 − ρ), as in FedNova: c_i⁺
  is still a mean of the gradients that the silo saw. Adam and AdamW, of which that is not true, are refused.
- The server's learning rate is for parameters; batch-norm statistics are averaged as in FedAvg.
- A silo whose reply is lost has its new c_i all the same, of which c knows nothing.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import Weights, same_structure
from cosilo.aggregation.robust import average
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage
from cosilo.methods.fedavg import FedAvg
from cosilo.methods.fednova import Travelled, needs_sgd
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.step import step
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    from torch import Tensor

    from cosilo.learners.trainee import Correction


class SCAFFOLD(FedAvg):
    """FedAvg with control variates: what a silo's gradients differ by from all silos' is taken off them.

    Parameters
    ----------
    server_lr : float, default 1.0
        η_g: how far the global model goes towards the mean of the silos' models.

    Examples
    --------
    >>> SCAFFOLD(server_lr=0.5).weighting
    'size'
    """

    name: ClassVar[str] = "scaffold"

    server_lr: Annotated[float, Field(gt=0)] = 1.0

    def train_all(self, silos: Silos, state: State) -> Replies:
        """Everyone gets x and c; at first c is 0, and not sent."""
        weights = state.group("weights")
        fits = same_structure(weights)

        def valid(silo: str, reply: Fields) -> None:
            fits(silo, reply)
            check(reply.group("control"), weights)

        message = {key: state[key] for key in ("weights", "round", "control") if key in state}
        chosen = self.chosen(silos, state)
        return silos.ask("train", message, to=chosen, valid=valid, gather=self.gathering())

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """x ← x + η_g Σ p_i (y_i − x),  c ← c + |S|/N Σ p_i (c_i⁺ − c_i)."""

        shares = self.shares(replies)

        def changes() -> Iterable[tuple[Weights, float]]:
            for name, reply in replies.items():  # from disk, one at a time
                yield reply.group("control"), shares[name]

        merged, start = super().merged(silos, replies, state), state.group("weights")
        still = {name: np.zeros(array.shape) for name, array in start.items()}
        change, there = average(self.average, changes, still), len(replies) / len(silos.names)
        control = state.group("control") if "control" in state else {}
        state["control"] = {name: added(control, name, there * array) for name, array in change.items()}
        for name in change if self.server_lr != 1 else ():
            moved = start[name] + self.server_lr * (merged[name].astype(np.float64) - start[name])
            merged[name] = np.asarray(moved).astype(start[name].dtype)
        return merged

    # ------------------------------------------------------------------ at the silo

    def prepare(self, silo: Silo) -> None:
        """The steps have to be sums of gradients."""
        super().prepare(silo)
        needs_sgd(silo, self.name)

    # Institutions are kept out: each of their clients has a c_i, and they have none.
    @step(
        weights=Shared("weights", "the silo's network after its epochs of this round"),
        size=Shared("size", "training instances: what the network weighs in the mean"),
        control=Shared("weights", "how its guess of the gradient of its own data changed in this round"),
    )
    def train(
        self,
        silo: Silo,
        weights: Weights,
        round: int,
        epochs: int | None = None,
        control: Weights | None = None,
    ) -> Message:
        """ClientUpdate: corrected steps, then a new control variate, which stays; its change leaves."""
        check(control := control or {}, weights)
        own = silo.notes.group("control") if "control" in silo.notes else {}
        shift = {name: np.subtract(control.get(name, 0), own.get(name, 0)) for name in {**control, **own}}
        travelled = Travelled()
        silo.network.set_weights(weights, keep=False)
        lr = silo.network.training.lr * self.rate(round)
        training = silo.network.training.but(epochs=self.epochs_of(silo, epochs), lr=lr)
        correction = shifted(shift) if shift else None
        silo.network.train(
            epochs=training.epochs, lr=lr, correction=correction, after_step=travelled, keep=False
        )
        after, reach = silo.network.weights(), travelled.reach(training)
        changed = {
            name: np.asarray((weights[name] - after[name]) / reach - control.get(name, 0))
            for name in travelled.parameters
        }
        silo.notes["control"] = {name: added(own, name, array) for name, array in changed.items()}
        return {"weights": after, "size": silo.size, "control": changed}


def shifted(by: Mapping[str, NDArray[Any]]) -> "Correction":
    """Adds c − c_i to the gradients."""
    import torch

    def correction(gradients: "Mapping[str, Tensor]", parameters: "Mapping[str, Tensor]") -> None:
        for name, array in by.items():
            gradients[name].add_(torch.from_numpy(array))

    return correction


def added(group: Weights, name: str, change: NDArray[Any]) -> NDArray[Any]:
    """The sum; what a group does not have is 0."""
    return np.asarray(group[name] + change if name in group else change).astype(change.dtype)


def check(control: Weights, weights: Weights) -> None:
    """Raise unless a control variate has the shapes of parameters of the model."""
    for name, array in control.items():
        if name not in weights or array.shape != weights[name].shape:
            raise BadMessage(f"control: {name!r} is {list(array.shape)}; wants the shape of a parameter")
