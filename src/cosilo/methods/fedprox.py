"""FedProx: FedAvg whose silos are held near the global weights by a proximal term.

T. Li et al., "Federated Optimization in Heterogeneous Networks" (2020).

Deviations from the paper: every silo does the same number of epochs; the inexactness γ is not measured.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from cosilo.methods.fedavg import FedAvg


class FedProx(FedAvg):
    """FedAvg with (μ/2)‖w − w_t‖² added to every silo's loss; the gradient of that is μ(w − w_t).

    >>> FedProx(mu=0.1).pull
    0.1
    """

    name: ClassVar[str] = "fedprox"

    mu: Annotated[float, Field(ge=0)] = 0.01

    @property
    def pull(self) -> float:
        """μ."""
        return self.mu
