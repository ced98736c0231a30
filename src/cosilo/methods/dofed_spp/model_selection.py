"""Which models travel within a time budget: how many, whose, and how many each silo uses (DoFed-SPP, 4.4).

K silos upload their models over one link, every silo uses the B best of them for itself. Ratios are a
matrix: row n holds silo n's similarity ratios (eq. 19), column i is the model of silo i.

    T_r = t_training + t_ratios + B · t_labelling + K · t_upload ≤ T / G,  1 ≤ B ≤ K ≤ N          (23–26)
    ρ(S) = Σ_n Σ of the B largest ρ_n^i with i ∈ S                                                (27–31)

For every pair (K, B) that fits, Algorithm 1 adds the model that adds most until there are K. The sum ρ is
monotone and submodular, so that no set of K models has more than 1 / (1 − 1/e) times the sum (Theorem 2).

>>> costs = Costs(training=4.0, similarity=1.0, labelling=0.5, upload=1.0)
>>> pairs = feasible(costs, budget=8.0, silos=3)
>>> pairs
[(1, 1), (2, 2)]
>>> best(np.array([[0.0, 0.5, 0.5], [0.9, 0.0, 0.1], [1.0, 0.0, 0.0]]), pairs)
Choice(K=2, B=2, chosen=(0, 2), total=2.5)
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosilo.errors import ConfigError, DataError

Floats = NDArray[np.float64]

# Sums of the same numbers in another order differ in their last bits; more than that is a difference.
ROUNDING = 1e-12
# So much of a budget may be missing: 0.1 + 0.2 fits into 0.3.
SLACK = 1e-9


@dataclass(frozen=True)
class Costs:
    """The seconds of one round, term by term (eqs. 23 and 24).

    >>> Costs(training=4.0, similarity=1.0, labelling=0.5, upload=1.0).seconds(K=3, B=2)
    9.0
    """

    #: I · C_tra · D / f: local training.
    training: float
    #: C_SR / f: the similarity ratios.
    similarity: float
    #: C_pse / f: labelling with one model; B times.
    labelling: float
    #: m / (b · log2(1 + g·p / (N0·b))): one model over the uplink that all share; K times.
    upload: float
    #: What uploading takes however many do: a latency, or a link of each silo's own.
    once: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < math.inf:
                raise ConfigError(f"{field.name} takes {value} s; wants a finite number of at least 0")

    def seconds(self, K: int, B: int) -> float:
        """T_r of eq. 25: one round with K uploads and B labellers."""
        return self.training + self.similarity + self.once + B * self.labelling + K * self.upload


def feasible(costs: Costs, budget: float, silos: int, rounds: int | None = None) -> list[tuple[int, int]]:
    """All K that fit into a round of `budget` = T / G seconds (eq. 26), each with the largest B that fits.

    A smaller B with the same K is never better, for ρ grows with B. `rounds` = G is for the error's text: if
    not even K = B = 1 fits, it says what takes the time and what budget would do.

    >>> feasible(Costs(training=1.0, similarity=0.0, labelling=1.0, upload=1.0), budget=6.0, silos=9)
    [(1, 1), (2, 2), (3, 2), (4, 1)]
    """
    if silos < 1:
        raise ConfigError(f"silos is {silos}; wants at least 1")
    if not budget > 0:
        raise ConfigError(f"the budget is {budget} s a round; wants more than 0")
    if rounds is not None and rounds < 1:
        raise ConfigError(f"rounds is {rounds}; wants at least 1")
    left = budget * (1 + SLACK) - costs.training - costs.similarity - costs.once  # C1 of the paper
    pairs = []
    for K in range(1, silos + 1):
        rest = left - K * costs.upload
        if rest < costs.labelling:
            break
        pairs.append((K, K if rest >= K * costs.labelling else math.floor(rest / costs.labelling)))
    if not pairs:
        raise ConfigError(_too_little(costs, budget, rounds))
    return pairs


def _too_little(costs: Costs, budget: float, rounds: int | None) -> str:
    terms = {
        "training": costs.training,
        "the similarity ratios": costs.similarity,
        "labelling with one model": costs.labelling,
        "one upload": costs.upload + costs.once,
    }
    parts = ", ".join(f"{name} {seconds:.4g}" for name, seconds in terms.items())
    most = max(terms, key=lambda name: terms[name])
    least = costs.seconds(1, 1)
    in_all = "" if rounds is None else f", {_rounded_up(least * rounds)} s for {rounds} rounds"
    return (
        f"the budget is {budget:.4g} s a round; wants at least {_rounded_up(least)} s{in_all}: "
        f"{parts}; most is {most}: make that cheaper, or raise the budget"
    )


def _rounded_up(seconds: float) -> str:
    """Four digits, never less than the number: what an error asks for has to do.

    >>> _rounded_up(12.50001), _rounded_up(12.5), _rounded_up(98765.4)
    ('12.51', '12.5', '98770')
    """
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 3)
    return f"{math.ceil(seconds / unit - SLACK) * unit:.12g}"


def total(ratios: ArrayLike, chosen: Sequence[int] | NDArray[np.intp], B: int) -> float:
    """ρ(S): for every silo the sum of its B largest ratios among the chosen models, summed (eq. 27).

    >>> total([[0.5, 0.3, 0.2], [0.0, 0.1, 0.9]], [0, 1], B=1)  # 0.5 + 0.1
    0.6
    """
    matrix = _matrix(ratios)
    indices = np.asarray(chosen, dtype=np.intp)
    if B < 1:
        raise ConfigError(f"B is {B}; wants at least 1 model for every silo to label with")
    if len(set(indices.tolist())) != len(indices):
        raise DataError(f"chosen: a model stands in {indices.tolist()} twice; wants each once")
    for index in indices:
        if not 0 <= index < matrix.shape[1]:
            raise DataError(f"chosen: got model {index}; wants 0 to {matrix.shape[1] - 1}")
    inside = matrix[:, indices]
    if len(indices) > B:
        inside = np.partition(inside, -B, axis=1)[:, -B:]
    return float(inside.sum())


def greedy(ratios: ArrayLike, K: int, B: int) -> NDArray[np.intp]:
    """Algorithm 1: K models in the order they are chosen, each the one that adds most to ρ.

    Of models that add the same the one with the lowest index is chosen. For one B the choice for a smaller
    K ≥ B is the beginning of the choice for a larger K.

    All columns add up to 1; besides model 0, model 1 adds 0.25 and model 2 adds 0.75 (for silo 1):

    >>> greedy([[0.5, 0.25, 0.25], [0.0, 0.25, 0.75], [0.5, 0.5, 0.0]], K=2, B=1)
    array([0, 2])
    """
    matrix = _matrix(ratios)
    _check_pair(K, B, matrix.shape[1])
    return _one_pass(np.ascontiguousarray(matrix.T), B, K)[0]


@dataclass(frozen=True)
class Choice:
    """Which models travel: K uploads, the B best of them for each silo, in the order they were chosen."""

    K: int
    B: int
    chosen: tuple[int, ...]
    total: float


def best(ratios: ArrayLike, pairs: Iterable[tuple[int, int]]) -> Choice:
    """The pair (K, B) and the models with the largest ρ (line 15 of Algorithm 2).

    Equal sums, up to rounding: fewer uploads, then fewer labellers. One pass for each B serves all its K,
    and a pair is left out if even its upper bound is below what another pair reached.

    >>> best([[0.5, 0.5], [0.5, 0.5]], [(1, 1), (2, 1)])
    Choice(K=1, B=1, chosen=(0,), total=1.0)
    """
    matrix = _matrix(ratios)
    models = np.ascontiguousarray(matrix.T)
    # ρ is at most the sum of the K largest columns, and at most that of the B largest ratios of every row.
    by_uploads = np.cumsum(np.sort(models.sum(axis=1))[::-1])
    by_labellers = np.cumsum(np.sort(matrix, axis=1)[:, ::-1].sum(axis=0))
    bounds: dict[int, dict[int, float]] = {}
    for K, B in pairs:
        _check_pair(K, B, len(models))
        bounds.setdefault(B, {})[K] = min(float(by_uploads[K - 1]), float(by_labellers[B - 1]))
    if not bounds:
        raise ConfigError("there is no pair (K, B) to choose from; wants at least one")
    found: dict[tuple[int, int], tuple[float, NDArray[np.intp]]] = {}
    enough = 0.0
    for B in sorted(bounds, key=lambda B: -max(bounds[B].values())):
        wanted = [K for K, bound in bounds[B].items() if bound >= enough * (1 - ROUNDING)]
        if not wanted:
            continue
        order, sums = _one_pass(models, B, max(wanted))
        for K in wanted:
            found[K, B] = (sums[K - 1], order[:K])
            enough = max(enough, sums[K - 1] * (1 - ROUNDING))
    K, B = min(pair for pair, (reached, _) in found.items() if reached >= enough)
    chosen = found[K, B][1]
    return Choice(K, B, tuple(chosen.tolist()), total(matrix, chosen, B))


def _one_pass(models: Floats, B: int, last: int) -> tuple[NDArray[np.intp], list[float]]:
    """Algorithm 1 up to K = `last` for one B: the order of choice, and ρ after each; models × silos.

    A model adds Σ_n max(ρ_n^i − bar_n, 0), where bar_n is the smallest of the B ratios that silo n uses so
    far, 0 while it uses fewer. So the first B are those with the largest sums. After that bars only rise:
    what a model added when it was last looked at is the most that it can add, and few need another look.
    """
    gains = models.sum(axis=1)
    first = np.argsort(-gains, kind="stable")[: min(B, last)]
    order, sums = first.tolist(), np.cumsum(gains[first]).tolist()
    used = models[first].T.copy()  # silos × B, in any order
    lowest = used.argmin(axis=1)
    bar = used[np.arange(len(used)), lowest]
    gains[first] = -1.0  # never again
    while len(order) < last:
        likely = gains.argmax()
        gains[likely] = np.maximum(models[likely] - bar, 0.0).sum()
        near = np.flatnonzero(gains >= gains[likely])
        gains[near] = np.maximum(models[near] - bar, 0.0).sum(axis=1)
        at = int(near[gains[near].argmax()])  # the first of equals, and `near` ascends
        if not gains[at] > 0:  # nobody adds anything any more: by index, as equals are
            order += np.flatnonzero(gains >= 0)[: last - len(order)].tolist()
            sums += [sums[-1]] * (last - len(sums))
            break
        order.append(at)
        sums.append(sums[-1] + float(gains[at]))
        gains[at] = -1.0
        rows = np.flatnonzero(models[at] > bar)
        used[rows, lowest[rows]] = models[at, rows]
        lowest[rows] = used[rows].argmin(axis=1)
        bar[rows] = used[rows, lowest[rows]]
    return np.array(order, dtype=np.intp), sums


def _matrix(ratios: ArrayLike) -> Floats:
    matrix = np.asarray(ratios, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise DataError(f"ratios: got shape {matrix.shape}; wants silos × models")
    if not ((matrix >= 0) & (matrix < math.inf)).all():
        silo, model = np.argwhere(~((matrix >= 0) & (matrix < math.inf)))[0].tolist()
        got = matrix[silo, model]
        raise DataError(f"ratios: silo {silo} gives model {model} {got}; wants a finite number of at least 0")
    return matrix


def _check_pair(K: int, B: int, silos: int) -> None:
    if not 1 <= K <= silos:
        raise ConfigError(f"K is {K} uploads; wants 1 to {silos}, the number of silos")
    if not 1 <= B <= K:
        raise ConfigError(f"B is {B} models to label with; wants 1 to K = {K}, the number of uploads")
