"""Gaussians around silos' models, which FedBE draws its teachers from."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights


@dataclass(frozen=True)
class Gaussian:
    """What a parameter is drawn from: origin + length · (mean + deviation · ε)."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    origin: NDArray[Any] | float = 0.0
    length: float = 1.0


#: What batch norm counts is no parameter.
_STATISTICS = ("running_mean", "running_var")


def _parameters(weights: Weights) -> list[str]:
    return [
        name for name, array in weights.items() if array.dtype.kind == "f" and not name.endswith(_STATISTICS)
    ]


def of_directions(models: Iterable[tuple[Weights, float]], start: Weights) -> dict[str, Gaussian]:
    """The Gaussian of the directions in which silos' models moved from where the round began.

    >>> models = [({"w": np.array([3.0, 0.0])}, 1.0), ({"w": np.array([0.0, 1.0])}, 1.0)]
    >>> of_directions(models, {"w": np.zeros(2)})["w"]
    Gaussian(mean=array([0.5, 0.5]), variance=array([0.25, 0.25]), origin=array([0., 0.]), length=2.0)
    """
    names, total = _parameters(start), 0.0
    first = {name: np.zeros(start[name].shape) for name in names}
    second = {name: np.zeros(start[name].shape) for name in names}
    lengths = dict.fromkeys(names, 0.0)
    for weights, share in models:
        total += share
        for name in names:
            update = weights[name].astype(np.float64) - start[name]
            length = float(np.linalg.norm(update))
            unit = update / length if length > 0 else update  # what did not move has no direction
            first[name] += share * unit
            second[name] += share * np.square(unit)
            lengths[name] += share * length
    found = {}
    for name in names:
        centre = np.asarray(first[name] / total)
        variance = np.asarray(second[name] / total - np.square(centre))
        found[name] = Gaussian(centre, variance, start[name], lengths[name] / total)
    return found


def of_weights(models: Iterable[tuple[Weights, float]], average: Weights) -> dict[str, Gaussian]:
    """The Gaussian of the weights themselves.

    >>> models = [({"w": np.array([0.0, 2.0])}, 1.0), ({"w": np.array([2.0, 2.0])}, 1.0)]
    >>> of_weights(models, {"w": np.array([1.0, 2.0])})["w"].variance
    array([1., 0.])
    """
    sums, total = {name: np.zeros(average[name].shape) for name in _parameters(average)}, 0.0
    for weights, share in models:
        total += share
        for name in sums:
            sums[name] += share * np.square(weights[name].astype(np.float64) - average[name])
    return {
        name: Gaussian(average[name].astype(np.float64), np.asarray(summed / total))
        for name, summed in sums.items()
    }
