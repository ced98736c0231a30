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

#: Where the names live that are no methods.
_HOMES = {
    "Federation": "cosilo.federation.federation",
    "Institution": "cosilo.coordination.institution",
    "Run": "cosilo.runs.run",
    "Silo": "cosilo.silo.silo",
    "Target": "cosilo.silo.target",
    "Task": "cosilo.protocol.task",
}

if not TYPE_CHECKING:  # type checkers read the imports above, and know which names there are not

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_HOMES.get(name, "cosilo.methods")), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
