"""Turning what a user passes into a learner."""

from typing import Any

from cosilo.learners.base import Learner


def as_learner(thing: Any) -> Learner:
    """Turn what a user passes into a learner: an adapter, a torch module, or a fit/predict object."""
    if isinstance(thing, Learner):
        return thing
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(thing).__mro__}
    if "torch.nn.modules.module.Module" in kinds:
        from cosilo.learners.network import Network

        return Network(thing)
    from cosilo.learners.estimator import Estimator

    return Estimator(thing)
