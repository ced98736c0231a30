"""How useful other silos' models are to one silo, and what follows: whose labels count, and how much.

Arithmetic of DoFed-SPP (similarity ratios, eq. 19; labelling, eq. 20) and of FedFomo (weights of a personal
average), on losses, distances and named arrays; numpy in, numpy out.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.errors import ConfigError, DataError

Floats = NDArray[np.float64]

#: The least distance of two models: eq. 19 divides by it.
FLOOR = 1e-6


def similarity_ratios(
    own_loss: float,
    losses: ArrayLike,
    distances: ArrayLike,
    *,
    rate: float,
    g1: float = 0.0,
    g2: float = 0.0,
    floor: float = FLOOR,
) -> Floats:
    """The similarity ratios of one silo n, one for each model i (eq. 19 of DoFed-SPP); they add up to 1.

    ρ_i ∝ max{ (γ·[ℓ_n(θ_tar,n) − ℓ_n(θ_rec,i)] + G1 + γ·G2) / ‖θ_rec,i − θ_rec,n‖, 0 }, with `own_loss` =
    ℓ_n(θ_tar,n), `losses[i]` = ℓ_n(θ_rec,i), both on the labelled target points of the silo, and γ = `rate`.
    With G1 = 0 the rate cancels. Where the equation leaves a question:

    - A distance below `floor` (the silo's own model, untouched) becomes the floor.
    - A loss of NaN is a missing model: its ratio is 0.
    - If no ratio is positive, all are 0.

    The gains are 1 − 0.5, 1 − 0 and less than 0; divided by the distances 0.5, 0.5:

    >>> similarity_ratios(1.0, [0.5, 0.0, 2.0], [1.0, 2.0, 1.0], rate=0.1)
    array([0.5, 0.5, 0. ])
    """
    loss, distance = _row("losses", losses), _row("distances", distances)
    _same_length("distances", distance, loss)
    there = ~np.isnan(loss)
    if not there.any():
        raise DataError("losses: none of the models is there (all NaN); wants the loss of at least one")
    if not math.isfinite(own_loss):
        raise DataError(
            f"own_loss is {own_loss}; wants a finite loss: the target model diverged, train slower"
        )
    if np.isneginf(loss).any():
        raise DataError("losses: one is -inf; wants losses above that, or NaN for a missing model")
    _check_distances(distance, there)
    _check_constants(rate, g1, g2, floor)
    gain = np.where(there, rate * (own_loss - loss) + g1 + rate * g2, 0.0)
    return _normalised(np.where(gain > 0, gain, 0.0) / np.where(there, np.maximum(distance, floor), 1.0))


def fomo_weights(base_loss: float, losses: ArrayLike, distances: ArrayLike) -> Floats:
    """FedFomo's weights: w_n ∝ max{ (L(θ_base) − L(θ_n)) / ‖θ_n − θ_base‖, 0 }, normalised.

    All are 0 if none is positive: the silo then keeps its model. A model at distance 0 is the base and gets
    0, as does a missing model (a loss of NaN).

    >>> fomo_weights(1.0, [0.5, 0.0, 2.0], [1.0, 2.0, 1.0])
    array([0.5, 0.5, 0. ])
    >>> fomo_weights(1.0, [1.5, 1.0], [1.0, 0.0])
    array([0., 0.])
    """
    loss, distance = _row("losses", losses), _row("distances", distances)
    _same_length("distances", distance, loss)
    if not math.isfinite(base_loss):
        raise DataError(
            f"base_loss is {base_loss}; wants a finite loss: the base model diverged, train slower"
        )
    if np.isneginf(loss).any():
        raise DataError("losses: one is -inf; wants losses above that, or NaN for a missing model")
    there = ~np.isnan(loss)
    _check_distances(distance, there)
    counts = there & (loss < base_loss) & (distance > 0)
    return _normalised(np.where(counts, base_loss - loss, 0.0) / np.where(counts, distance, 1.0))


def label_by_opinions(opinions: Iterable[tuple[float, NDArray[Any]]]) -> tuple[NDArray[np.intp], Floats]:
    """One class per instance: argmax_c Σ_i ρ_i · p_i(c | x) (eq. 20 of DoFed-SPP), and how sure that is.

    `opinions` are pairs of a ratio and the (instances × classes) probabilities of one model; they are read
    one at a time, so that one model's probabilities are in memory. The confidence is the winning class's
    share of the total weight Σ_i ρ_i: 1 if all models are certain of it. Equal classes: the lowest code.

    >>> first, second = np.array([[0.6, 0.4]]), np.array([[0.0, 1.0]])
    >>> codes, confidence = label_by_opinions([(0.75, first), (0.25, second)])
    >>> codes, confidence  # 0.75 · 0.6 = 0.45 against 0.75 · 0.4 + 0.25 · 1 = 0.55
    (array([1]), array([0.55]))
    """
    weight = 0.0
    sums: Floats | None = None
    for i, (ratio, probabilities) in enumerate(opinions):
        if not 0 <= ratio < math.inf:
            raise DataError(f"opinion {i}: its ratio is {ratio}; wants a finite number of at least 0")
        shape = probabilities.shape
        if len(shape) != 2 or shape[1] < 1 or (sums is not None and shape != sums.shape):
            wants = "instances × classes" if sums is None else f"{sums.shape}, as the ones before"
            raise DataError(f"opinion {i}: probabilities of shape {shape}; wants {wants}")
        if not np.isfinite(probabilities).all():
            raise DataError(f"opinion {i}: its probabilities hold NaN or infinity; leave that model out")
        if sums is None:
            sums = np.zeros(shape)
        sums += ratio * probabilities
        weight += ratio
    if sums is None or not weight > 0:
        raise DataError(f"the opinions weigh {weight:g} in all; wants a model with a ratio above 0")
    codes = sums.argmax(axis=1)
    return codes, np.take_along_axis(sums, codes[:, np.newaxis], axis=1)[:, 0] / weight


def distance(one: Weights, other: Weights) -> float:
    """‖θ − θ'‖, the l2 norm in eq. 19, array by array; counters (integers) are left out.

    >>> distance({"w": np.array([3.0]), "b": np.array([0.0])}, {"w": np.array([0.0]), "b": np.array([4.0])})
    5.0
    """
    names = _floating(one)
    for name in sorted(set(names) ^ set(_floating(other))):
        raise DataError(f"weights: {name!r} is in one of the two models only; wants the same names in both")
    squares = 0.0
    for name in names:
        if one[name].shape != other[name].shape:
            shapes = f"{one[name].shape} and {other[name].shape}"
            raise DataError(f"weights: {name!r} has the shapes {shapes}; wants the same in both models")
        apart = one[name].astype(np.float64) - other[name]
        squares += float(np.square(apart, out=apart).sum())
    return math.sqrt(squares)


def _floating(weights: Weights) -> list[str]:
    return sorted(name for name, array in weights.items() if array.dtype.kind == "f")


def _normalised(raw: Floats) -> Floats:
    total = raw.sum()
    return raw / total if total > 0 else raw


def _row(name: str, values: ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"{name}: got an array of shape {array.shape}; wants one number per model")
    return array


def _same_length(name: str, array: Floats, losses: Floats) -> None:
    if len(array) != len(losses):
        raise DataError(f"{name}: got {len(array)}; wants {len(losses)}, one per loss")


def _check_distances(distances: Floats, there: NDArray[np.bool_]) -> None:
    bad = np.flatnonzero(there & ~(distances >= 0))
    if len(bad):
        raise DataError(f"distances[{bad[0]}] is {distances[bad[0]]}; wants a number of at least 0")


def _check_constants(rate: float, g1: float, g2: float, floor: float) -> None:
    for name, value in (("rate", rate), ("floor", floor)):
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} is {value}; wants a finite number above 0")
    for name, value in (("g1", g1), ("g2", g2)):
        if not 0 <= value < math.inf:
            raise ConfigError(f"{name} is {value}; wants a finite number of at least 0")
