"""The alarm: what the votes say against the pool, or against some of the voters, before anybody trains.

Silos that know their classes agree about a pool of such instances. The median of their κ was 0.57 to 0.85 on
pools like the silos' data, 0.29 to 0.34 on census rows with columns drawn independently of each other, from
which silos still learn, and 0.04 to 0.24 on nonsense: shuffled pixels and shuffled columns (development seeds
of digits, DBpedia, Adult, wine and breast cancer).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from cosilo.silo.guard import LOW
from cosilo.text import listing


def is_doubtful(kappas: Sequence[float]) -> bool:
    """Whether silos hardly agree on the pool.

    >>> is_doubtful([0.1, 0.2, 0.7]), is_doubtful([0.1, 0.6, 0.7])
    (True, False)
    """
    return bool(kappas) and median(kappas) < LOW


def alarms(kappas: Mapping[str, float]) -> list[str]:
    """What is to be said of the pool and of the voters, a line each.

    >>> for line in alarms({"a": 0.8, "b": 0.1, "c": 0.7}):
    ...     print(line)
    these silos disagree with all others (κ below 0.25): b; look at their classes and data
    """
    if is_doubtful(list(kappas.values())):
        return [
            f"silos hardly agree on this pool (median κ {median(kappas.values()):.2f}, below {LOW}): it is "
            "unlike their data, or they mean different things by their classes"
        ]
    lonely = [name for name, kappa in kappas.items() if kappa < LOW]
    if not lonely:
        return []
    return [
        f"these silos disagree with all others (κ below {LOW}): {listing(lonely)}; "
        "look at their classes and data"
    ]


def single_votes(alpha: float, holders: Mapping[str, int]) -> list[str]:
    """By the paper's rule: that in some classes one vote decides, if it does.

    >>> single_votes(0.3, {"cat": 3, "dog": 5})
    ['at α = 0.3 one vote decides in 1 of 2 classes (cat): fewer than 4 silos have them']
    """
    single = [name for name, count in holders.items() if count > 0 and alpha * count < 1]
    if not single:
        return []
    fewer = f": fewer than {math.ceil(1 / alpha)} silos have them" if alpha else ""
    return [
        f"at α = {alpha:g} one vote decides in {len(single)} of {len(holders)} classes "
        f"({listing(single)}){fewer}"
    ]
