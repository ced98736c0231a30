"""cosilo: organisations improve each other's classifiers; data, models and training stay where they are.

Each name is imported when it is first used: a command that needs none of them does not wait for them.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
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

if not TYPE_CHECKING:
    from cosilo.lazy import names_from

    __getattr__ = names_from(
        __name__,
        {
            **dict.fromkeys(__all__, "methods"),
            "Federation": "federation.federation",
            "Institution": "coordination.institution",
            "Run": "runs.run",
            "Silo": "silo.silo",
            "Target": "silo.target",
            "Task": "protocol.task",
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
