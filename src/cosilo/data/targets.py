"""DoFed-SPP's splits: every silo has training data of some classes, and a target of (mostly) other ones.

Of each class, the points of targets and those of training sets come from different parts of the data: nobody
trains on what another silo wants labelled. Only a class with fewer than per_class + labelled + unlabelled
instances is too small for that. No instance goes to two silos as long as a class has enough of them; where it
has not, its instances are dealt round and round, so that all are used about equally often.

With `overlap` every silo draws from all instances of a class, whatever others drew, as the paper's set-up has
it: 500 of CIFAR-100's 500 images of a class to train on, and 200 of them as a target elsewhere. Then silos
share training instances, and a model that labels may have been trained on the very points. Either way no silo
gets an instance twice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosilo.data.split import as_codes, as_count, as_range
from cosilo.errors import DataError

Index = NDArray[np.int64]
Classes = tuple[int, ...]

#: How often NORMAL draws again because nobody trains on a class that a silo wants.
TRIES = 100


@dataclass(frozen=True, eq=False)
class TargetSplit:
    """The sorted indices of each silo's training, labelled and unlabelled target instances.

    `tasks` are the class codes of the training data, `targets` those of the target.
    """

    parts: tuple[Index, ...]
    labelled: tuple[Index, ...]
    unlabelled: tuple[Index, ...]
    tasks: tuple[Classes, ...]
    targets: tuple[Classes, ...]

    def __len__(self) -> int:
        return len(self.parts)


def subset(
    y: ArrayLike,
    silos: int,
    clusters: int,
    per_class: int = 500,
    labelled: int = 10,
    unlabelled: int = 190,
    *,
    overlap: bool = False,
    seed: int = 0,
) -> TargetSplit:
    """Cut the classes at random into clusters; a silo's training and target classes are two of these.

    Classes that are left over go to random clusters. Clusters are dealt so that each is trained on, and
    wanted, by about as many silos. Numbers are instances of each class. With the defaults, CIFAR-10 is enough
    for 25 silos and 5 clusters (3,500 of its 5,000 a class); in CIFAR-100 silos share instances.
    With `overlap` every silo draws from all instances.

    >>> from cosilo.data import load
    >>> split = subset(load("digits").y, silos=4, clusters=4, per_class=30, labelled=5, unlabelled=20)
    >>> [len(part) == 30 * len(task) for part, task in zip(split.parts, split.tasks)]
    [True, True, True, True]
    """
    codes, silos, clusters = as_codes(y, "y"), as_count(silos, "silos"), as_count(clusters, "clusters")
    classes = np.unique(codes)
    if clusters < 2 or len(classes) < 2 * clusters:
        raise DataError(
            f"clusters: got {clusters} for {len(classes)} classes; wants at least 2 clusters with at least "
            "2 classes each"
        )
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(classes)
    even = len(classes) // clusters * clusters
    places = np.concatenate([np.arange(even) % clusters, rng.integers(clusters, size=len(classes) - even)])
    members = [tuple(np.sort(shuffled[places == cluster]).tolist()) for cluster in range(clusters)]
    tasks: list[Classes] = [()] * silos
    targets: list[Classes] = [()] * silos
    for turn, silo in enumerate(rng.permutation(silos)):
        # In each turn of all clusters every one is a target once too, another step away every time.
        away = 1 + turn // clusters % (clusters - 1)
        tasks[silo] = members[turn % clusters]
        targets[silo] = members[(turn + away) % clusters]
    return _dealt(rng, codes, tasks, targets, per_class, labelled, unlabelled, overlap)


def normal(
    y: ArrayLike,
    silos: int,
    classes: tuple[int, int] = (2, 10),
    per_class: int = 500,
    labelled: int = 10,
    unlabelled: int = 190,
    *,
    overlap: bool = False,
    seed: int = 0,
) -> TargetSplit:
    """Draw random numbers (`classes`: least, most) of training classes and of target classes for each silo.

    The two may overlap; if they are the same, both are drawn again. As long as a silo wants a class that no
    other one trains on, all are drawn again, up to 100 times (few silos may have no way out). Numbers are
    instances of each class. A class that a silo both trains on and wants, and that has too few instances for
    both, gives the target its number and the training data the rest. With `overlap` every silo draws from all
    instances.

    >>> from cosilo.data import load
    >>> split = normal(load("digits").y, silos=4, classes=(2, 4), per_class=30, labelled=5, unlabelled=20)
    >>> any(task == target for task, target in zip(split.tasks, split.targets))
    False
    """
    codes, silos = as_codes(y, "y"), as_count(silos, "silos")
    least, most = as_range(classes, "classes")
    there = np.unique(codes)
    if least < 2 or most > len(there):
        raise DataError(f"classes: got {(least, most)}; wants 2 to {len(there)}, the classes of the data")
    if least == len(there):
        raise DataError(
            f"classes: got {(least, most)}; training and target classes would always be the same "
            f"{least}: wants a smaller number first"
        )
    rng = np.random.default_rng(seed)
    for _ in range(TRIES):
        pairs = [_different(rng, there, least, most) for _ in range(silos)]
        tasks, targets = ([pair[kind] for pair in pairs] for kind in range(2))
        if _others_know(tasks, targets):
            break
    return _dealt(rng, codes, tasks, targets, per_class, labelled, unlabelled, overlap)


def _different(
    rng: np.random.Generator, classes: NDArray[np.int64], least: int, most: int
) -> tuple[Classes, Classes]:
    """Training and target classes of one silo, which are not the same."""
    one = other = _drawn(rng, classes, least, most)
    while one == other:
        one, other = (_drawn(rng, classes, least, most) for _ in range(2))
    return one, other


def _others_know(tasks: Sequence[Classes], targets: Sequence[Classes]) -> bool:
    """Whether every target class is trained on by a silo other than the one that wants it."""
    users = Counter(code for task in tasks for code in task)
    return all(
        users[code] > (code in task) for task, target in zip(tasks, targets, strict=True) for code in target
    )


def _drawn(rng: np.random.Generator, classes: NDArray[np.int64], least: int, most: int) -> Classes:
    number = rng.integers(least, most + 1)
    return tuple(np.sort(rng.choice(classes, number, replace=False)).tolist())


def _dealt(
    rng: np.random.Generator,
    y: NDArray[np.int64],
    tasks: Sequence[Classes],
    targets: Sequence[Classes],
    per_class: int,
    labelled: int,
    unlabelled: int,
    overlap: bool,
) -> TargetSplit:
    """Instances for each silo's training and target classes."""
    per_class, labelled = as_count(per_class, "per_class"), as_count(labelled, "labelled")
    wanted = labelled + as_count(unlabelled, "unlabelled")
    hands: list[list[list[Index]]] = [[[], [], []] for _ in tasks]
    for code in np.unique(y).tolist():
        deck = rng.permutation(np.flatnonzero(y == code))
        users = [silo for silo, task in enumerate(tasks) if code in task]
        takers = [silo for silo, target in enumerate(targets) if code in target]
        _check_size(code, len(deck), bool(users) * per_class, bool(takers) * wanted, set(users) & set(takers))
        # Targets get a part of their own, if at least one training set fits into what is left.
        apart = not overlap and (not users or not takers or len(deck) >= per_class + wanted)
        cut = min(wanted * len(takers), len(deck) - per_class) if users else len(deck)
        aims = _Deck(deck[:cut] if apart else deck)
        rest = _Deck(deck[cut:]) if apart else aims
        for silo, hand in enumerate(hands):
            if overlap and (silo in users or silo in takers):
                aims = rest = _Deck(rng.permutation(deck))
            if silo in takers:
                hand[1].append(aims.deal(labelled))
                hand[2].append(aims.deal(unlabelled))
            if silo in users:
                # In a deck that both come from, the cards after the target's differ from these for one round.
                both = silo in takers and not apart
                hand[0].append(rest.deal(min(per_class, len(deck) - wanted) if both else per_class))
    parts, known, open_ = (
        tuple(np.sort(np.concatenate(hand[kind])).astype(np.int64) for hand in hands) for kind in range(3)
    )
    return TargetSplit(parts, known, open_, tuple(tasks), tuple(targets))


class _Deck:
    """Instances of one class, dealt in turn and then from the start again."""

    def __init__(self, instances: Index) -> None:
        self._instances = instances
        self._dealt = 0

    def deal(self, number: int) -> Index:
        """The next instances; all are different as long as there are enough."""
        places = (self._dealt + np.arange(number)) % len(self._instances)
        self._dealt += number
        return self._instances[places]


def _check_size(code: int, size: int, per_class: int, wanted: int, both: set[int]) -> None:
    """Raise unless a class has enough instances for one silo."""
    if size < max(per_class, wanted):
        which = "per_class" if per_class > wanted else "labelled and unlabelled"
        raise DataError(
            f"class {code} has {size} instances, a silo wants {max(per_class, wanted)}; lower {which}"
        )
    if both and size <= wanted:
        raise DataError(
            f"class {code} has {size} instances, of which a target takes {wanted}: none is left to train on; "
            "lower labelled or unlabelled"
        )
