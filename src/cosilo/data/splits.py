"""Ways to split a dataset between silos. All are seeded: the same seed gives the same split."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosilo.data.overlap import superclasses
from cosilo.data.split import Split, as_codes, as_count, tasks_of
from cosilo.errors import DataError

__all__ = ["Split", "balanced", "by_value", "dirichlet", "iid", "own_split", "shards", "superclasses"]

ATTEMPTS = 100


def balanced(y: ArrayLike, per_class: int, *, seed: int = 0) -> NDArray[np.int64]:
    """The places of `per_class` instances of each class, drawn at random: a smaller set to split.

    >>> balanced([0, 0, 1, 1, 0], per_class=2, seed=0)
    array([1, 2, 3, 4])
    """
    codes, per_class = as_codes(y, "y"), as_count(per_class, "per_class")
    rng = np.random.default_rng(seed)
    chosen = []
    for code in np.unique(codes):
        there = np.flatnonzero(codes == code)
        if len(there) < per_class:
            raise DataError(f"per_class = {per_class}; class {code} has {len(there)} instances")
        chosen.append(rng.choice(there, per_class, replace=False))
    return np.sort(np.concatenate(chosen))


def iid(y: ArrayLike, silos: int, size: int | None = None, *, seed: int = 0) -> Split:
    """Split at random into equal parts; with `size`, each silo gets this many and the rest stays out.

    >>> [len(part) for part in iid([0, 1, 0, 1, 0], silos=2).parts]
    [3, 2]
    """
    codes, silos = as_codes(y, "y"), as_count(silos, "silos")
    wanted = silos * (1 if size is None else as_count(size, "size"))
    if wanted > len(codes):
        what = f"{silos} silos" if size is None else f"{silos} silos of {size} instances"
        raise DataError(f"{what} want {wanted} instances; the data has {len(codes)}")
    order = np.random.default_rng(seed).permutation(len(codes))
    return _split(np.array_split(order if size is None else order[:wanted], silos), codes)


def shards(y: ArrayLike, silos: int, per_silo: int, *, seed: int = 0) -> Split:
    """Sort by label, cut into silos × per_silo shards, deal each silo `per_silo` of them (FML, FedAvg).

    Fewer shards per silo mean fewer classes per silo.

    >>> shards([1, 0, 1, 0, 1, 0], silos=2, per_silo=1).tasks in [((0,), (1,)), ((1,), (0,))]
    True
    """
    codes, silos, per_silo = as_codes(y, "y"), as_count(silos, "silos"), as_count(per_silo, "per_silo")
    number = silos * per_silo
    if number > len(codes):
        raise DataError(
            f"{silos} silos × {per_silo} shards want {number} instances; the data has {len(codes)}; "
            f"lower silos or per_silo"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(codes))  # shuffled within a class: the order in the file shall not matter
    order = order[np.argsort(codes[order], kind="stable")]
    pieces = np.array_split(order, number)
    hands = rng.permutation(number).reshape(silos, per_silo)
    return _split([np.concatenate([pieces[piece] for piece in hand]) for hand in hands], codes)


def dirichlet(
    y: ArrayLike,
    silos: int,
    concentration: float,
    min_size: int = 10,
    size: int | None = None,
    *,
    seed: int = 0,
) -> Split:
    """Split each class in proportions drawn from a symmetric Dirichlet distribution.

    A small `concentration` gives a class to few silos, a large one spreads it evenly. A draw that leaves a
    silo with fewer than `min_size` instances is repeated, at most 100 times.

    With `size` it is the silo that draws, one after the other: the proportions of its classes, and that many
    instances by these (Tempo). Where a class is used up, the others are drawn instead.

    >>> from cosilo.data import load
    >>> split = dirichlet(load("digits").y, silos=5, concentration=0.5)
    >>> sum(len(part) for part in split.parts)
    1297
    """
    codes, silos, min_size = as_codes(y, "y"), as_count(silos, "silos"), as_count(min_size, "min_size")
    if not (np.isfinite(concentration) and concentration > 0):
        raise DataError(f"concentration: got {concentration!r}; wants a number above 0")
    least, key = (min_size, "min_size") if size is None else (as_count(size, "size"), "size")
    if silos * least > len(codes):
        raise DataError(
            f"{silos} silos of {'at least ' if size is None else ''}{least} instances want {silos * least}; "
            f"the data has {len(codes)}; lower silos or {key}"
        )
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    if size is not None:
        shuffled = [rng.permutation(own) for own in members]
        return _split(_mixes(shuffled, silos, concentration, size, rng), codes)
    best = 0
    for _ in range(ATTEMPTS):
        parts: list[list[NDArray[np.int64]]] = [[] for _ in range(silos)]
        for own in members:
            shares = rng.dirichlet(np.full(silos, concentration))
            cuts = np.rint(np.cumsum(shares)[:-1] * len(own)).astype(np.int64)
            for part, piece in zip(parts, np.split(rng.permutation(own), cuts), strict=True):
                part.append(piece)
        smallest = min(sum(map(len, part)) for part in parts)
        if smallest >= min_size:
            return _split([np.concatenate(part) for part in parts], codes)
        best = max(best, smallest)
    raise DataError(
        f"no split in {ATTEMPTS} draws: the smallest of {silos} silos had {best} instances at best, min_size "
        f"is {min_size}; raise concentration ({concentration}), or lower min_size or silos"
    )


def _mixes(
    members: list[NDArray[np.int64]],
    silos: int,
    concentration: float,
    size: int,
    rng: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """`size` instances for each silo, from the front of each class's."""
    sizes, used = np.array([len(own) for own in members]), np.zeros(len(members), dtype=np.int64)
    parts = []
    for _ in range(silos):
        mix, before = rng.dirichlet(np.full(len(members), concentration)), used.copy()
        while missing := size - int((used - before).sum()):
            there = sizes > used
            # A mix of used-up classes alone says nothing about the others.
            chances = mix * there if (mix * there).sum() > 0 else there.astype(np.float64)
            used = np.minimum(used + rng.multinomial(missing, chances / chances.sum()), sizes)
        parts.append(np.concatenate([own[a:b] for own, a, b in zip(members, before, used, strict=True)]))
    return parts


def by_value(values: ArrayLike, y: ArrayLike | None = None) -> Split:
    """One silo for each distinct value, in sorted order: a hospital, a writer, a country.

    The silos' names are the values. The tasks are the classes in `y`; without it they are empty.

    >>> split = by_value(["north", "south", "north"], y=[0, 1, 1])
    >>> split.names, split.tasks
    (('north', 'south'), ((0, 1), (1,)))
    """
    import pandas as pd

    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise DataError(f"values: got shape {array.shape}; wants one value per instance")
    missing = np.flatnonzero(pd.isna(array))
    if len(missing):
        raise DataError(
            f"values: {len(missing)} are missing, the first at index {missing[0]}; fill or drop them"
        )
    try:
        distinct, inverse, sizes = np.unique(array, return_inverse=True, return_counts=True)
    except TypeError:
        raise DataError("values: of different types, which have no order; wants one type for all") from None
    parts = np.split(np.argsort(inverse, kind="stable"), np.cumsum(sizes)[:-1])
    names = tuple(str(value) for value in distinct.tolist())
    if y is None:
        return Split(tuple(parts), ((),) * len(parts), names)
    codes = as_codes(y, "y")
    if len(codes) != len(array):
        raise DataError(f"values has {len(array)} entries, y {len(codes)}; wants one each per instance")
    return _split(parts, codes, names)


def own_split(
    parts: Mapping[str, ArrayLike] | Sequence[ArrayLike], y: ArrayLike, where: str = "split"
) -> Split:
    """A split of one's own: the indices of each silo's instances, perhaps by the silo's name.

    No index may occur twice. The tasks are the classes in `y` of each silo's instances.

    >>> own_split({"north": [0, 2], "south": [1]}, y=[0, 1, 1]).tasks
    ((0, 1), (1,))
    """
    codes = as_codes(y, "y")
    names = tuple(map(str, parts)) if isinstance(parts, Mapping) else None
    arrays = []
    for place, part in enumerate(parts.values() if isinstance(parts, Mapping) else parts):
        which = repr(names[place]) if names else f"number {place}"
        index = np.asarray(part)
        if index.ndim != 1 or index.dtype.kind not in "iu" or not len(index):
            raise DataError(
                f"{where}: the part of silo {which} is {index.dtype} of shape {index.shape}; wants indices"
            )
        if index.min() < 0 or index.max() >= len(codes):
            raise DataError(
                f"{where}: the part of silo {which} holds index {index.max()}; wants 0 to {len(codes) - 1}"
            )
        arrays.append(index.astype(np.int64))
    if not arrays:
        raise DataError(f"{where}: has no parts; wants the indices of each silo's instances")
    all_of_them, times = np.unique(np.concatenate(arrays), return_counts=True)
    if (times > 1).any():
        twice = int(all_of_them[times > 1][0])
        raise DataError(f"{where}: index {twice} is in more than one part; wants each at most once")
    return _split(arrays, codes, names)


def _split(
    parts: list[NDArray[np.int64]], y: NDArray[np.int64], names: tuple[str, ...] | None = None
) -> Split:
    ordered = tuple(np.sort(part).astype(np.int64) for part in parts)
    return Split(ordered, tasks_of(ordered, y), names)
