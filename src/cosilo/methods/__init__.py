"""The methods, by name."""

from cosilo.methods.base import Method, step
from cosilo.methods.cofed import CoFED
from cosilo.methods.fedavg import FedAvg
from cosilo.methods.fedmd import FedMD
from cosilo.methods.fedprox import FedProx
from cosilo.methods.fml import FML
from cosilo.methods.local import Local
from cosilo.methods.personalised_fedavg import PersonalisedFedAvg

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (CoFED, FML, FedAvg, FedMD, FedProx, Local, PersonalisedFedAvg)
}

__all__ = [
    "FML",
    "METHODS",
    "CoFED",
    "FedAvg",
    "FedMD",
    "FedProx",
    "Local",
    "Method",
    "PersonalisedFedAvg",
    "step",
]
