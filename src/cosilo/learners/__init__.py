"""Learners: the black boxes of the silos. Each adapter is imported when it is first used."""

from typing import TYPE_CHECKING

from cosilo.learners.adapt import as_learner
from cosilo.learners.base import Learner

if TYPE_CHECKING:
    from cosilo.learners.estimator import Estimator
    from cosilo.learners.network import Network
    from cosilo.learners.training import Training

__all__ = ["Estimator", "Learner", "Network", "Training", "as_learner"]

if not TYPE_CHECKING:
    from cosilo.lazy import names_from

    __getattr__ = names_from(
        __name__, {"Estimator": "estimator", "Network": "network", "Training": "training"}
    )
