"""Models that travel together made smaller: PCA over all of them (section 4.5 of DoFed-SPP).

K models become one mean, r directions and K · r numbers: (r + 1) / K of the bytes. Models are read one after
the other, some of them several times, so that memory does not grow with their number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

# Models that are in memory at a time, beside the mean and the directions.
_AT_ONCE = 10


@dataclass(frozen=True, eq=False)
class Downsized:
    """Models in few directions; model i is mean + Σ_k coefficients[i, k] · directions[k].

    Counters (integers) are no part of it.
    """

    mean: Arrays
    directions: list[Arrays]
    coefficients: Floats
    #: Of each model, what is lost of it: ‖x̂ − x‖ / ‖x‖.
    errors: Floats


def downsize(models: Sequence[str], read: Callable[[str], Weights], components: int) -> Downsized | None:
    """The mean of some models and the directions in which they differ most, or None if nothing is saved.

    K models differ in K − 1 directions at most: with that many components they are what they were, and as
    large. With the centred models X = U·S·Vᵀ, the U and S² are eigenvectors and eigenvalues of the K × K
    matrix X·Xᵀ, and the directions are V = Xᵀ·U / S: a model may have millions of parameters.

    >>> stored = {"a": [0.0, 1.0], "b": [0.0, 3.0], "c": [0.3, 5.0]}
    >>> found = downsize(list(stored), lambda name: {"w": np.array(stored[name])}, components=1)
    >>> found.mean["w"], found.errors.round(3)
    (array([0.1, 3. ]), array([0.05 , 0.033, 0.01 ]))
    """
    if components < 1:
        raise ConfigError(f"components is {components}; wants at least 1")
    if components >= len(models) - 1:
        return None
    gram = _products(models, read)
    # Products of centred models: from rows and columns the mean is taken, and what is taken twice put back.
    rows = gram.mean(axis=0)
    centred = gram - rows - rows[:, np.newaxis] + rows.mean()
    values, vectors = np.linalg.eigh(centred)  # ascending
    sizes = np.sqrt(np.maximum(values[-components:], 0.0))
    # A direction below 1e-8 of the largest is lost in rounding: it is left out, as 0.
    scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 1e-8 * sizes[-1])
    coefficients = vectors[:, -components:] * np.where(scale > 0, sizes, 0.0)
    (mean,) = _sums(models, read, np.full((len(models), 1), 1 / len(models)))
    directions = _sums(models, read, vectors[:, -components:] * scale, mean)
    lost = np.maximum(np.diag(centred) - np.square(coefficients).sum(axis=1), 0.0)
    size = np.diag(gram)
    errors = np.sqrt(lost / np.where(size > 0, size, 1.0))
    return Downsized(mean, directions, coefficients, errors)


def restore(mean: Weights, directions: Sequence[Weights], coefficients: NDArray[Any]) -> Arrays:
    """One model, in the types of the mean.

    >>> restore({"w": np.array([1.0, 0.0])}, [{"w": np.array([0.0, 2.0])}], np.array([0.5]))
    {'w': array([1., 1.])}
    """
    found = {}
    for name, array in mean.items():
        total = array.astype(np.float64)
        for share, direction in zip(coefficients, directions, strict=True):
            total += share * direction[name]
        found[name] = total.astype(array.dtype)
    return found


def counters(weights: Weights) -> Arrays:
    """The arrays of a model that PCA leaves alone: integers, such as batch normalisation's counters."""
    return {name: array for name, array in weights.items() if array.dtype.kind != "f"}


def _products(models: Sequence[str], read: Callable[[str], Weights]) -> Floats:
    """⟨x_i, x_j⟩ of all pairs."""
    found = np.zeros((len(models), len(models)))
    for start in range(0, len(models), _AT_ONCE):
        here = [_floats(name, read) for name in models[start : start + _AT_ONCE]]
        for other in range(start, len(models)):
            near = other - start
            one = here[near] if near < len(here) else _floats(models[other], read)
            for place, mine in enumerate(here):
                value = _product(mine, one)
                found[start + place, other] = found[other, start + place] = value
    return found


def _product(one: Arrays, other: Arrays) -> float:
    return sum(
        float(np.dot(array.reshape(-1).astype(np.float64), other[name].reshape(-1).astype(np.float64)))
        for name, array in one.items()
    )


def _sums(
    models: Sequence[str], read: Callable[[str], Weights], shares: Floats, centre: Weights | None = None
) -> list[Arrays]:
    """Σ_i share_i · (x_i − centre) for each column of shares, in the models' types."""
    totals: list[dict[str, Floats]] = [{} for _ in shares.T]
    kinds: dict[str, np.dtype[Any]] = {}
    for name, row in zip(models, shares, strict=True):
        for key, array in _floats(name, read).items():
            kinds[key] = array.dtype
            apart = array.astype(np.float64) - (0.0 if centre is None else centre[key])
            for total, share in zip(totals, row, strict=True):
                total[key] = total.get(key, 0.0) + share * apart
    return [{key: array.astype(kinds[key]) for key, array in total.items()} for total in totals]


def _floats(name: str, read: Callable[[str], Weights]) -> Arrays:
    found = {key: array for key, array in read(name).items() if array.dtype.kind == "f"}
    for key, array in found.items():
        if not np.isfinite(array).all():
            raise DataError(f"model {name!r}: {key} holds NaN or infinity; leave that model out")
    return found
