"""Averages of models: named arrays in, named arrays out, one model in memory at a time."""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import BadMessage, ConfigError

#: The parameters and buffers of a model by name, batch-norm statistics included.
Weights: TypeAlias = Mapping[str, NDArray[Any]]


def mean(models: Iterable[tuple[Weights, float]]) -> dict[str, NDArray[Any]]:
    """The weighted mean of models, Σ n_k w_k / Σ n_k (eq. 2 of FML, with equal n_k its equal-weight merge).

    Sums are taken in float64, whatever the arrays are, of products in the arrays' own type; counters
    (integers) become the nearest whole number.

    >>> mean([({"w": np.array([1.0])}, 1.0), ({"w": np.array([4.0])}, 2.0)])
    {'w': array([3.])}
    """
    running = RunningMean()
    for weights, share in models:
        running.add(weights, share)
    return running.mean()


class RunningMean:
    """The weighted mean of models that come one after the other.

    >>> running = RunningMean()
    >>> running.add({"w": np.array([1.0])}, 1.0)
    >>> running.add({"w": np.array([4.0])}, 2.0)
    >>> running.mean()
    {'w': array([3.])}
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._products: dict[str, NDArray[np.float64]] = {}  # kept: new memory for each would cost more
        self._dtypes: dict[str, np.dtype[Any]] = {}

    def add(self, weights: Weights, share: float) -> None:
        """Take in another model, that weighs `share`."""
        if not share >= 0:
            raise ConfigError(f"a model weighs {share}; wants a number of at least 0")
        self._total += share
        for name, array in weights.items():
            if name not in self._sums:
                self._sums[name], self._dtypes[name] = np.zeros(array.shape), array.dtype
                self._products[name] = np.empty(array.shape)
            np.multiply(array, share, out=self._products[name])
            self._sums[name] += self._products[name]

    def mean(self) -> dict[str, NDArray[Any]]:
        """Of those so far."""
        if not self._total > 0:
            raise ConfigError(f"the models weigh {self._total} in all; wants more than 0")
        return {name: _as(summed / self._total, self._dtypes[name]) for name, summed in self._sums.items()}


def _as(array: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    # A product of a number and an array without dimensions is a number: make it an array again.
    return np.asarray(np.rint(array) if dtype.kind in "biu" else array).astype(dtype)


def same_structure(reference: Weights) -> Callable[[str, Mapping[str, object]], None]:
    """A check for replies with a field `weights`: the same names, shapes and types as `reference`."""
    wanted = {name: (array.dtype, array.shape) for name, array in reference.items()}

    def check(silo: str, reply: Mapping[str, object]) -> None:
        weights = reply["weights"]
        if not isinstance(weights, Mapping):
            raise BadMessage("field 'weights' is not a group of named arrays")
        for name in sorted(wanted.keys() ^ weights.keys()):
            raise BadMessage(f"weights: {name!r} is {'missing' if name in wanted else 'not in the model'}")
        for name, array in weights.items():
            if (array.dtype, array.shape) != wanted[name]:
                theirs, ours = _form(array), _form(reference[name])
                raise BadMessage(f"weights: {name!r} is {theirs}; the model's is {ours}")

    return check


def structure(weights: Weights) -> str:
    """A hash of the names, shapes and types of a model's arrays: equal for models that can be averaged.

    >>> structure({"w": np.zeros(2)}) == structure({"w": np.ones(2)}) != structure({"w": np.zeros(3)})
    True
    """
    forms = sorted((name, _form(array)) for name, array in weights.items())
    return sha256(repr(forms).encode()).hexdigest()[:32]


def _form(array: NDArray[Any]) -> str:
    return f"{array.dtype}{list(array.shape)}"
