"""CoFED's split: different but overlapping tasks, and a few instances of each class for each silo.

A draw can run into a corner (classes or subclasses that are used up although enough is left elsewhere), so it
is repeated; the later attempts prefer what most is left of, which keeps away from corners.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosilo.data.split import Split, as_codes, as_count, as_range
from cosilo.errors import DataError

ATTEMPTS = 100


def superclasses(
    fine: ArrayLike,
    coarse: ArrayLike,
    silos: int = 100,
    classes: tuple[int, int] = (6, 8),
    per_class: int = 50,
    subclasses: tuple[int, int] | None = None,
    *,
    holders: int = 2,
    seed: int = 0,
) -> Split:
    """Give each silo a random number (`classes`: least, most) of coarse classes, `per_class` instances each.

    With `subclasses=None` the instances come evenly from all fine classes of the coarse one (IID); with
    `subclasses=(1, 2)` from one or two of them, drawn per silo and class (non-IID). No instance goes to two
    silos. Every class that is used is in the task of at least `holders` silos, so that tasks overlap; 1 asks
    for nothing. The defaults are CoFED's for CIFAR-100.

    Without superclasses, pass the same codes twice:

    >>> from cosilo.data import load
    >>> y = load("digits").y
    >>> split = superclasses(y, y, silos=6, classes=(3, 5), per_class=20)
    >>> len(split), len(split.parts[0]) == 20 * len(split.tasks[0])
    (6, True)
    """
    fine_codes, codes = as_codes(fine, "fine"), as_codes(coarse, "coarse")
    if len(fine_codes) != len(codes):
        raise DataError(f"fine has {len(fine_codes)} codes, coarse {len(codes)}; wants one each per instance")
    per_class, silos = as_count(per_class, "per_class"), as_count(silos, "silos")
    wanted = as_range(classes, "classes")
    chosen = None if subclasses is None else as_range(subclasses, "subclasses")
    stocks = [_Stock.of(code, fine_codes, codes, per_class, chosen) for code in np.unique(codes).tolist()]
    capacity = np.minimum([stock.capacity() for stock in stocks], silos)
    shared = min(as_count(holders, "holders"), silos)
    advice = less = f"lower silos ({silos}), classes {wanted} or per_class ({per_class})"
    if wanted[1] > len(stocks):
        raise DataError(f"classes: got {wanted}, but the data has {len(stocks)} classes; lower it")
    if silos * wanted[0] > capacity.sum():
        raise DataError(
            f"{silos} silos with at least {wanted[0]} classes each want {silos * wanted[0]} times "
            f"{per_class} instances of a class; the data has {capacity.sum()} times; {less}"
        )
    rng = np.random.default_rng(seed)
    short = ""
    for attempt in range(ATTEMPTS):
        careful = attempt >= ATTEMPTS // 2
        tasks, short = _draw_tasks(rng, silos, wanted, capacity, careful)
        advice = less
        if tasks is None:
            continue
        if not _share(rng, tasks, capacity, shared):
            short = f"not every class that is used could be given to {shared} silos"
            advice = f"lower holders ({holders}), or raise silos ({silos}) or classes {wanted}"
            continue
        parts: list[list[NDArray[np.int64]]] = [[] for _ in range(silos)]
        for column, stock in enumerate(stocks):
            receivers = rng.permutation(np.flatnonzero(tasks[:, column]))
            dealt, short = stock.deal(rng, len(receivers), careful)
            if dealt is None:
                break
            for silo, index in zip(receivers, dealt, strict=True):
                parts[silo].append(index)
        else:
            return Split(
                tuple(np.sort(np.concatenate(part)) for part in parts),
                tuple(tuple(stocks[column].code for column in np.flatnonzero(row)) for row in tasks),
            )
    raise DataError(f"no split in {ATTEMPTS} draws: {short}; {advice}")


@dataclass(frozen=True)
class _Stock:
    """The instances of one coarse class, by fine class, and how a silo's share is to be taken from them."""

    code: int
    members: list[NDArray[np.int64]]
    per_class: int
    subclasses: tuple[int, int] | None

    @classmethod
    def of(
        cls,
        code: int,
        fine: NDArray[np.int64],
        coarse: NDArray[np.int64],
        per_class: int,
        subclasses: tuple[int, int] | None,
    ) -> "_Stock":
        own = np.flatnonzero(coarse == code)
        members = [own[fine[own] == sub] for sub in np.unique(fine[own])]
        if subclasses is not None and subclasses[0] > min(len(members), per_class):
            raise DataError(
                f"subclasses: got {subclasses}, but class {code} has {len(members)} subclasses "
                f"and per_class is {per_class}; lower it"
            )
        stock = cls(code, members, per_class, subclasses)
        if not stock.capacity():
            sizes = [len(member) for member in members]
            raise DataError(
                f"class {code} has {len(own)} instances in {len(members)} subclasses (smallest: {min(sizes)}"
                f"), too few for one silo; lower per_class ({per_class})"
            )
        return stock

    def capacity(self) -> int:
        """How many silos can have the class, at most."""
        sizes = np.array([len(member) for member in self.members])
        if self.subclasses == (1, 1):
            return int((sizes // self.per_class).sum())
        most = int(sizes.sum()) // self.per_class
        if self.subclasses is not None:
            return most
        # Every silo takes `each` from every subclass and one more from `extra` different ones.
        each, extra = divmod(self.per_class, len(sizes))
        for silos in range(most, 0, -1):
            left = sizes - each * silos
            if left.min() >= 0 and np.minimum(left, silos).sum() >= extra * silos:
                return silos
        return 0

    def deal(
        self, rng: np.random.Generator, silos: int, careful: bool
    ) -> tuple[list[NDArray[np.int64]] | None, str]:
        """Disjoint shares for this many silos, or None and what there is too little of."""
        shuffled = [rng.permutation(member) for member in self.members]
        used = np.zeros(len(shuffled), dtype=np.int64)
        left = np.array([len(member) for member in shuffled])
        shares = []
        for done in range(silos):
            quota = self._quota(rng, left - used, careful)
            if quota is None:
                return None, (
                    f"class {self.code} has enough left for {done} of {silos} silos "
                    f"({(left - used).tolist()} in its subclasses)"
                )
            taken = zip(shuffled, used, used + quota, strict=True)
            shares.append(np.concatenate([member[start:stop] for member, start, stop in taken]))
            used += quota
        return shares, ""

    def _quota(
        self, rng: np.random.Generator, left: NDArray[np.int64], careful: bool
    ) -> NDArray[np.int64] | None:
        """How many instances the next silo takes from each subclass."""
        order = np.lexsort((rng.random(len(left)), -left))  # most left first, ties at random
        if self.subclasses is None:
            chosen = order
        else:
            least, most = self.subclasses
            # A number of subclasses is possible if that many of them still have an even share.
            possible = [
                number
                for number in range(least, min(most, len(left), self.per_class) + 1)
                if (left >= -(-self.per_class // number)).sum() >= number
            ]
            if not possible:
                return None
            number = int(rng.choice(possible))
            enough = order[left[order] >= -(-self.per_class // number)]
            chosen = enough[:number] if careful else rng.choice(enough, number, replace=False)
        each, extra = divmod(self.per_class, len(chosen))
        quota = np.zeros(len(left), dtype=np.int64)
        quota[chosen] = each
        quota[chosen[:extra]] += 1
        return quota if (quota <= left).all() else None


def _draw_tasks(
    rng: np.random.Generator, silos: int, wanted: tuple[int, int], capacity: NDArray[np.int64], careful: bool
) -> tuple[NDArray[np.bool_] | None, str]:
    """A table silos × classes of which silo has which class, or None and what there is too little of."""
    sizes = rng.integers(wanted[0], wanted[1] + 1, silos)
    tasks = np.zeros((silos, len(capacity)), dtype=np.bool_)
    left = capacity.copy()
    for silo, size in enumerate(sizes):
        order = np.lexsort((rng.random(len(left)), -left))
        free = order[left[order] > 0]
        if len(free) < size:
            return None, (
                f"silo {silo} of {silos} wants {size} classes, {len(free)} have enough instances left "
                f"(drawn: {sizes.sum()} places, there are {capacity.sum()})"
            )
        chosen = free[:size] if careful else rng.choice(free, size, replace=False)
        tasks[silo, chosen] = True
        left[chosen] -= 1
    return tasks, ""


def _share(
    rng: np.random.Generator, tasks: NDArray[np.bool_], capacity: NDArray[np.int64], holders: int
) -> bool:
    """Exchange classes, in place, until no class has some but fewer than `holders` silos.

    With many silos nothing is to be done. With few, one silo swaps one class for another until it holds; the
    sizes of the tasks stay.
    """
    for _ in range(10 * tasks.size):
        held = tasks.sum(axis=0)
        lonely = np.flatnonzero((held > 0) & (held < holders))
        if not len(lonely):
            return True
        one = rng.choice(lonely)
        # Either a further silo takes the lonely class for one that can spare a silo, or has too few anyway …
        gives, takes = held != holders, np.zeros(len(held), dtype=np.bool_)
        takes[one] = capacity[one] > held[one]
        gain = _swaps(tasks, gives, takes)
        # … or a silo that has it swaps it for one that others have.
        gives, takes = np.zeros(len(held), dtype=np.bool_), (held >= holders - 1) & (capacity > held)
        gives[one] = True
        swaps = np.concatenate([gain, _swaps(tasks, gives, takes)])
        if not len(swaps):
            return False
        silo, drop, gain_class = swaps[rng.integers(len(swaps))]
        tasks[silo, drop], tasks[silo, gain_class] = False, True
    return False


def _swaps(tasks: NDArray[np.bool_], gives: NDArray[np.bool_], takes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """All (silo, class it has and may give, class it has not and may take)."""
    return np.argwhere((tasks & gives)[:, :, None] & (~tasks & takes)[:, None, :])
