"""cosilo: organisations improve each other's classifiers; data, models and training stay where they are."""

__version__ = "0.1.0"

from cosilo.coordination.institution import Institution
from cosilo.federation.federation import Federation
from cosilo.methods import (
    FML,
    METHODS,
    CoFED,
    DoFedSPP,
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
from cosilo.protocol.task import Task
from cosilo.runs.run import Run
from cosilo.silo.silo import Silo
from cosilo.silo.target import Target

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
    "Federation",
    "Institution",
    "Local",
    "PersonalisedFedAvg",
    "Run",
    "Silo",
    "Target",
    "Task",
    "Tempo",
]
