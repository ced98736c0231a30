"""How much each model's update counts in a mean, by its angle to the mean of all updates.

H. Wu and P. Wang, "Fast-Convergent Federated Learning with Adaptive Weighting" (2021): an update that points
where the others point counts more. Named arrays and numbers in, numbers out.
"""

import math
from collections.abc import Mapping

import numpy as np

from cosilo.aggregation.averaging import Weights
from cosilo.errors import ConfigError


def angle(model: Weights, mean: Weights, before: Weights) -> float:
    """θ in radians between a model's update and the mean update, both from `before`; counters are left out.

    An update of length 0 has no direction: a right angle, for it says nothing for or against.

    >>> before = {"w": np.zeros(2)}
    >>> round(angle({"w": np.array([1.0, 1.0])}, {"w": np.array([2.0, 0.0])}, before) / math.pi, 6)
    0.25
    """
    product = own = other = 0.0
    for name, start in before.items():
        if start.dtype.kind != "f":
            continue
        update, towards = (np.asarray(weights[name], dtype=np.float64) - start for weights in (model, mean))
        product += float((update * towards).sum())
        own += float(np.square(update).sum())
        other += float(np.square(towards).sum())
    if own == 0 or other == 0:
        return math.pi / 2
    # Rounding may push the cosine of equal directions over 1.
    return math.acos(max(-1.0, min(1.0, product / math.sqrt(own * other))))


def smoothed(before: float, times: int, now: float) -> float:
    """θ̃: the mean over the rounds in which it took part: `times` before, and this one.

    >>> smoothed(0.5, 3, 1.5)
    0.75
    """
    return (times * before + now) / (times + 1)


def gompertz(theta: float, alpha: float) -> float:
    """f(θ̃) = α (1 − exp(−exp(−α (θ̃ − 1)))): near α for small angles, near 0 for large ones.

    >>> round(gompertz(1.0, alpha=5.0), 6)  # 5 (1 − 1/e)
    3.160603
    """
    # From 700 on the inner power is too large for a number, and the outer one is 0 long before.
    return alpha * (1 - math.exp(-math.exp(min(-alpha * (theta - 1), 700.0))))


def shares(sizes: Mapping[str, float], angles: Mapping[str, float], alpha: float) -> dict[str, float]:
    """What each model weighs: ψ_i = D_i e^f(θ̃_i) / Σ_j D_j e^f(θ̃_j).

    >>> shares({"a": 30.0, "b": 10.0}, {"a": 0.5, "b": 0.5}, alpha=5.0)
    {'a': 0.75, 'b': 0.25}
    """
    if not alpha > 0:
        raise ConfigError(f"alpha is {alpha}; wants a number above 0")
    # The largest power is 1: e^α may be too large for a number.
    powers = {name: gompertz(theta, alpha) for name, theta in angles.items()}
    top = max(powers.values())
    raw = {name: sizes[name] * math.exp(power - top) for name, power in powers.items()}
    total = sum(raw.values())
    return {name: value / total for name, value in raw.items()}
