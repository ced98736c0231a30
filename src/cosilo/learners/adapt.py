"""Turning what a user passes into a learner."""

from typing import Any

from cosilo.learners.base import Learner
from cosilo.learners.kinds import kinds


def as_learner(thing: Any) -> Learner:
    """Turn what a user passes into a learner: an adapter, a torch module, or a fit/predict object."""
    if isinstance(thing, Learner):
        return thing
    if "torch.nn.modules.module.Module" in kinds(type(thing)):
        from cosilo.learners.network import Network

        return Network(thing)
    from cosilo.learners.estimator import Estimator

    return Estimator(thing)
