"""cosilo: organisations improve each other's classifiers; data, models and training stay where they are."""

__version__ = "0.1.0"

from cosilo.federation import Federation
from cosilo.institution import Institution
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
from cosilo.runs.run import Run
from cosilo.silo import Silo
from cosilo.target import Target
from cosilo.task import Task

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
