"""cosilo: organisations improve each other's classifiers; data, models and training stay where they are.

All that users and authors of methods need is here. Each name is imported when it is first used: a command
that needs none of them does not wait for them.
"""

from typing import TYPE_CHECKING

from cosilo.version import __version__ as __version__

if TYPE_CHECKING:
    from cosilo.comparison.function import compare
    from cosilo.coordination.coordinator import Silos
    from cosilo.coordination.institution import Institution
    from cosilo.engines.local.engine import LocalEngine
    from cosilo.errors import (
        BadMessage,
        ConfigError,
        CosiloError,
        DataError,
        LearnerError,
        MembersError,
        Refused,
        RunError,
    )
    from cosilo.federation.federation import Federation
    from cosilo.federation.run import Run
    from cosilo.learners.base import Learner
    from cosilo.learners.estimator import Estimator
    from cosilo.learners.network import Network
    from cosilo.learners.training import Training
    from cosilo.methods import (
        FML,
        METHODS,
        SCAFFOLD,
        CoFED,
        DoFedSPP,
        FedAdp,
        FedAvg,
        FedBE,
        FedFomo,
        FedMD,
        FedNova,
        FedProx,
        Local,
        PersonalisedFedAvg,
        Tempo,
    )
    from cosilo.methods.base import Method
    from cosilo.privacy.settings import Privacy
    from cosilo.protocol.events import Event, Observer
    from cosilo.protocol.findings import Findings
    from cosilo.protocol.message import Fields, Message, Shared, State
    from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
    from cosilo.protocol.step import step
    from cosilo.protocol.task import Task
    from cosilo.runs.journal import Replies
    from cosilo.silo.model import Model
    from cosilo.silo.silo import Silo
    from cosilo.silo.target import Target
    from cosilo.simulated_time.clock import Clock, Link

__all__ = [
    "FEDERATED",
    "FML",
    "LOCAL",
    "METHODS",
    "SCAFFOLD",
    "BadMessage",
    "Clock",
    "CoFED",
    "ConfigError",
    "CosiloError",
    "DataError",
    "DoFedSPP",
    "Estimator",
    "Event",
    "FedAdp",
    "FedAvg",
    "FedBE",
    "FedFomo",
    "FedMD",
    "FedNova",
    "FedProx",
    "Federation",
    "Fields",
    "Findings",
    "Institution",
    "Learner",
    "LearnerError",
    "Link",
    "Local",
    "LocalEngine",
    "MembersError",
    "Message",
    "Method",
    "Model",
    "Network",
    "Observer",
    "PersonalisedFedAvg",
    "Privacy",
    "Refused",
    "Replies",
    "Run",
    "RunError",
    "Shared",
    "Silo",
    "Silos",
    "Stage",
    "State",
    "Target",
    "Task",
    "Tempo",
    "Training",
    "compare",
    "step",
]

if not TYPE_CHECKING:
    from cosilo.lazy import names_from

    __getattr__ = names_from(
        __name__,
        {
            **dict.fromkeys(__all__, "methods"),
            "compare": "comparison.function",
            "Silos": "coordination.coordinator",
            "Institution": "coordination.institution",
            "LocalEngine": "engines.local.engine",
            "BadMessage": "errors",
            "ConfigError": "errors",
            "CosiloError": "errors",
            "DataError": "errors",
            "LearnerError": "errors",
            "MembersError": "errors",
            "Refused": "errors",
            "RunError": "errors",
            "Federation": "federation.federation",
            "Learner": "learners.base",
            "Estimator": "learners.estimator",
            "Network": "learners.network",
            "Training": "learners.training",
            "Method": "methods.base",
            "Privacy": "privacy.settings",
            "Event": "protocol.events",
            "Observer": "protocol.events",
            "Findings": "protocol.findings",
            "Fields": "protocol.message",
            "Message": "protocol.message",
            "Shared": "protocol.message",
            "State": "protocol.message",
            "FEDERATED": "protocol.stage",
            "LOCAL": "protocol.stage",
            "Stage": "protocol.stage",
            "step": "protocol.step",
            "Task": "protocol.task",
            "Replies": "runs.journal",
            "Run": "federation.run",
            "Model": "silo.model",
            "Silo": "silo.silo",
            "Target": "silo.target",
            "Clock": "simulated_time.clock",
            "Link": "simulated_time.clock",
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
