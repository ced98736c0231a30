"""Averages of models that a minority of bad ones cannot move far, and what a model may weigh.

D. Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates" (2018), for the
median and the trimmed mean; Z. Sun et al., "Can You Really Backdoor Federated Learning?" (2019), for norms.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median, median_low
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights, mean
from cosilo.aggregation.similarity import distance

#: How models become one.
Average: TypeAlias = Literal["mean", "median", "trimmed", "clipped"]
#: Gives the models with their weights, each time from the first on.
Models: TypeAlias = Callable[[], Iterable[tuple[Weights, float]]]
#: Nothing weighs more than this many times the median, whatever it says of itself.
MOST_TIMES_MEDIAN = 10.0
#: The share of the values that a trimmed mean leaves out at each end.
TRIMMED = 0.25


def average(rule: Average, models: Models, start: Weights) -> dict[str, NDArray[Any]]:
    """One model of many; `start` is the model that all of them began with.

    mean
        Weighted; one bad model can move it anywhere.
    median
        Of each number by itself, all models equal: bad ones hardly matter if they are fewer than half.
    trimmed
        The mean of each number without the lowest and the highest quarter, all models equal.
    clipped
        The weighted mean, but no model counts as further from `start` than the median of them is.

    A median and a trimmed mean need all models in memory.

    >>> four = [({"w": np.array([value])}, 1.0) for value in (1.0, 2.0, 3.0, 1e9)]
    >>> start = {"w": np.zeros(1)}
    >>> [float(average(rule, lambda: four, start)["w"][0]) for rule in ("median", "trimmed", "clipped")]
    [2.5, 2.5, 2.0]
    """
    if rule == "mean":
        return mean(models())
    if rule == "clipped":
        return mean(_clipped(models, start))
    stacked: dict[str, list[NDArray[Any]]] = {}
    for weights, _ in models():
        for name, array in weights.items():
            stacked.setdefault(name, []).append(array)
    middle = _median if rule == "median" else _trimmed_mean
    return {name: _like(middle(np.stack(arrays)), arrays[0]) for name, arrays in stacked.items()}


def _median(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.median(values.astype(np.float64), axis=0))


def _trimmed_mean(values: NDArray[Any]) -> NDArray[np.float64]:
    """Without a quarter of the values at each end, rounded up, as long as anything is left."""
    cut = min(math.ceil(TRIMMED * len(values)), (len(values) - 1) // 2)
    ordered = np.sort(values.astype(np.float64), axis=0)
    return np.asarray(ordered[cut : len(values) - cut].mean(axis=0))


def _clipped(models: Models, start: Weights) -> Iterator[tuple[Weights, float]]:
    """Each model, drawn back towards the start until it is not further away than the median of them."""
    far = [distance(weights, start) for weights, _ in models()]
    limit = median(far)
    for (weights, share), length in zip(models(), far, strict=True):
        if length <= limit:
            yield weights, share
            continue
        back = limit / length
        drawn = {
            name: _like(start[name] + back * (array.astype(np.float64) - start[name]), array)
            for name, array in weights.items()
        }
        yield drawn, share


def _like(array: NDArray[Any], model: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.rint(array) if model.dtype.kind in "biu" else array).astype(model.dtype)


def bounded(sizes: Mapping[str, float]) -> dict[str, float]:
    """What models weigh by sizes that silos say they have: none more than ten times the median.

    Of an even number it is the lower of the two in the middle, so that of two silos neither rules alone.

    >>> bounded({"a": 100, "b": 120, "liar": 1e18})
    {'a': 100, 'b': 120, 'liar': 1200.0}
    """
    if not sizes:
        return {}
    most = MOST_TIMES_MEDIAN * median_low(sizes.values())
    return {name: min(size, most) for name, size in sizes.items()}
