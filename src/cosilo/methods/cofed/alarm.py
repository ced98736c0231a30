"""The alarm: what the votes say against the pool, or against some of the voters, before anybody trains.

Silos that know their classes agree about a pool of such instances. The median of their κ was 0.45 to 0.86 on
pools like the silos' data, 0.30 to 0.33 on census rows with columns drawn independently of each other, from
which silos still learn, and 0.13 to 0.21 on shuffled pixels (`python benchmarks/development.py pools`).
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
    if len(kappas) == 1:
        return [f"only silo {next(iter(kappas))!r} voted: there is nobody that it could learn from"]
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


def misnamed(readings: Mapping[str, Mapping[str, str]]) -> list[str]:
    """That silos seem to take their classes for each other, by silo what it says and what that stands for.

    >>> misnamed({"b": {"cat": "dog", "dog": "cat", "cow": "cow"}})
    ["silo 'b' seems to take its classes for each other, and is read that way: its cat is the others' dog, \
its dog is the others' cat; look at its labels"]
    """
    return [
        f"silo {silo!r} seems to take its classes for each other, and is read that way: "
        + listing([f"its {said} is the others' {meant}" for said, meant in order.items() if said != meant])
        + "; look at its labels"
        for silo, order in readings.items()
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
