"""The methods, by name."""

from cosilo.methods.base import Method
from cosilo.methods.cofed import CoFED
from cosilo.methods.dofed_spp.dofed_spp import DoFedSPP
from cosilo.methods.fedadp import FedAdp
from cosilo.methods.fedavg import FedAvg
from cosilo.methods.fedbe import FedBE
from cosilo.methods.fedfomo import FedFomo
from cosilo.methods.fedmd import FedMD
from cosilo.methods.fedprox import FedProx
from cosilo.methods.fml import FML
from cosilo.methods.local import Local
from cosilo.methods.personalised_fedavg import PersonalisedFedAvg
from cosilo.methods.tempo import Tempo
from cosilo.protocol.step import step

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        CoFED,
        DoFedSPP,
        FML,
        FedAdp,
        FedAvg,
        FedBE,
        FedFomo,
        FedMD,
        FedProx,
        Local,
        PersonalisedFedAvg,
        Tempo,
    )
}

__all__ = [
    "FML",
    "METHODS",
    "CoFED",
    "DoFedSPP",
    "FedAdp",
    "FedAvg",
    "FedBE",
    "FedFomo",
    "FedMD",
    "FedProx",
    "Local",
    "Method",
    "PersonalisedFedAvg",
    "Tempo",
    "step",
]
