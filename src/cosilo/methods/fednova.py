"""FedNova: FedAvg that does not favour the silos that take more steps.

J. Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization" (2020).

A silo with more data takes more steps in its epochs, and its model goes further: the mean of models is drawn
to it by more than its weight p_i. FedNova divides each update by how far the silo's steps reach, and goes the
mean reach in the mean of these directions:

    w ← w_t − τ_eff Σ p_i d_i,   d_i = (w_t − w_i) / ‖a_i‖₁,   τ_eff = Σ p_i ‖a_i‖₁.

With τ steps of SGD with momentum ρ, ‖a_i‖₁ = [τ − ρ(1 − ρ^τ)/(1 − ρ)]/(1 − ρ); without momentum it is τ.
Where all silos take the same number of steps, this is FedAvg.

Deviations from the paper:

- Learning rates are part of the reach: it is Σ_k η_k (1 − ρ^k)/(1 − ρ), or η‖a_i‖₁ where they are constant.
  So schedules, and silos with other learning rates, are made up for too.
- Every silo does the same number of epochs: what differs is their steps.
- Batch-norm statistics are no sum of gradients, and are averaged as in FedAvg.
- Adam and AdamW, whose steps are no sum of gradients either, are refused. There is no proximal term and no
  momentum at the server. Optimisers start afresh every round; local training is that of FedAvg.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights, same_structure
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage, LearnerError
from cosilo.methods.fedavg import FedAvg
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.step import step
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    from torch import Tensor

    from cosilo.learners.training import Training


class FedNova(FedAvg):
    """FedAvg with normalised updates: a silo that makes more steps than others does not weigh more for it.

    Parameters
    ----------
    average : {"mean"}, default "mean"
        It has a mean of its own.

    Examples
    --------
    >>> sorted(FedNova().needs())
    ['size', 'weights']
    """

    name: ClassVar[str] = "fednova"
    average: Literal["mean"] = "mean"

    def train_all(self, silos: Silos, state: State) -> Replies:
        """As FedAvg; replies also say how far a silo's steps reach."""
        weights = state.group("weights")
        fits = same_structure(weights)

        def valid(silo: str, reply: Fields) -> None:
            fits(silo, reply)
            reach = reply.group("reach")
            if not reach.keys() <= weights.keys():
                raise BadMessage("field 'reach' wants one number for each parameter of the model")
            if any(array.shape != () or not array > 0 for array in reach.values()):
                raise BadMessage("field 'reach' wants numbers above 0")

        message: Message = {"weights": weights, "round": state["round"]}
        chosen = self.chosen(silos, state)
        return silos.ask("train", message, to=chosen, valid=valid, gather=self.gathering())

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """The replies are read twice, one in memory at a time: for the mean of models, and for directions."""
        average, start = super().merged(silos, replies, state), state.group("weights")
        total, shares = 0.0, self.shares(replies)
        reach: dict[str, float] = {}
        directions: dict[str, NDArray[np.float64]] = {}
        for name, reply in replies.items():
            share = shares[name]
            weights, total = reply.group("weights"), total + share
            for key, far in reply.group("reach").items():
                reach[key] = reach.get(key, 0.0) + share * float(far)
                direction = (weights[key].astype(np.float64) - start[key]) / float(far)
                directions[key] = directions.get(key, np.zeros(direction.shape)) + share * direction
        for name, direction in directions.items():
            moved = start[name] + reach[name] / total * direction / total
            average[name] = np.asarray(moved).astype(start[name].dtype)
        return average

    # ------------------------------------------------------------------ at the silo

    def prepare(self, silo: Silo) -> None:
        """The steps have to be sums of gradients."""
        super().prepare(silo)
        needs_sgd(silo, self.name)

    # Institutions are kept out: their clients' steps together have no one reach.
    @step(
        weights=Shared("weights", "the silo's network after its epochs of this round"),
        size=Shared("size", "training instances: what the network weighs in the mean"),
        reach=Shared("weights", "how far its steps would carry a constant gradient: rates × steps"),
    )
    def train(self, silo: Silo, weights: Weights, round: int, epochs: int | None = None) -> Message:
        """ClientUpdate, and how far its steps reach, for each parameter: the same for all."""
        travelled = Travelled()
        silo.network.set_weights(weights, keep=False)
        lr = silo.network.training.lr * self.rate(round)
        training = silo.network.training.but(epochs=self.epochs_of(silo, epochs), lr=lr)
        silo.network.train(epochs=training.epochs, lr=lr, after_step=travelled, keep=False)
        reach = dict.fromkeys(travelled.parameters, np.array(travelled.reach(training)))
        return {"weights": silo.network.weights(), "size": silo.size, "reach": reach}


class Travelled:
    """Counts the steps of a training, and remembers which arrays are parameters."""

    def __init__(self) -> None:
        self.steps = 0
        self.parameters: list[str] = []

    def __call__(self, step: int, parameters: "Mapping[str, Tensor]") -> None:
        """After a step."""
        self.steps, self.parameters = step, list(parameters)

    def reach(self, training: "Training") -> float:
        """How far a gradient of 1 in every step would have moved a parameter: Σ_k η_k (1 − ρ^k)/(1 − ρ)."""
        pace = total = 0.0
        for k in range(self.steps):
            pace = training.momentum * pace + 1
            total += training.rate(k * training.epochs // self.steps) * pace
        return total


def needs_sgd(silo: Silo, method: str) -> None:
    """Raise unless a silo trains with SGD."""
    optimiser = silo.network.training.optimiser
    if optimiser != "sgd":
        raise LearnerError(
            f"silo {silo.name!r}: trains with {optimiser!r}, whose steps are no sum of gradients, which "
            f'{method} needs; set optimiser = "sgd" in its training'
        )
