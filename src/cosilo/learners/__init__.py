"""Learners: the black boxes of the silos. Each adapter is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cosilo.learners.adapt import as_learner
from cosilo.learners.base import Learner

if TYPE_CHECKING:
    from cosilo.learners.estimator import Estimator
    from cosilo.learners.network import Network
    from cosilo.learners.training import Training

__all__ = ["Estimator", "Learner", "Network", "Training", "as_learner"]

#: Where the names live that cost an import of scikit-learn, torch or pydantic.
_LAZY = {"Estimator": "estimator", "Network": "network", "Training": "training"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
