"""FedProx: FedAvg whose silos are held near the global weights by a proximal term.

T. Li et al., "Federated Optimization in Heterogeneous Networks" (2020).

Deviations from the paper: every silo does the same number of epochs; the inexactness γ is not measured.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from cosilo.methods.fedavg import FedAvg

if TYPE_CHECKING:
    from torch import Tensor

    from cosilo.learners.trainee import Correction


class FedProx(FedAvg):
    """FedAvg with (μ/2)‖w − w_t‖² added to every silo's loss, so that no silo goes far from the others.

    Parameters
    ----------
    mu : float, default 0.01
        μ: how much the distance from the global weights costs; 0 is FedAvg.

    Examples
    --------
    >>> FedProx().mu
    0.01
    """

    name: ClassVar[str] = "fedprox"

    mu: Annotated[float, Field(ge=0)] = 0.01

    def correction(self) -> "Correction | None":
        """The proximal term; with μ = 0 there is none."""
        return proximal(self.mu) if self.mu else None


def proximal(mu: float) -> "Correction":
    """Adds the gradient of (μ/2)‖w − w_t‖², which is μ(w − w_t); w_t is where the training starts."""
    start: dict[str, Tensor] = {}

    def correction(gradients: "Mapping[str, Tensor]", parameters: "Mapping[str, Tensor]") -> None:
        if not start:
            start.update({name: parameter.clone() for name, parameter in parameters.items()})
        for name, gradient in gradients.items():
            gradient.add_(parameters[name] - start[name], alpha=mu)

    return correction
