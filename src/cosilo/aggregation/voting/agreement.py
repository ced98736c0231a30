"""Agreement: how often two silos say the same, and whether labels contradict a silo's votes."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes, side_by_side

# Packed bits of "silo i's vote lies in task t" that are held at once.
BITS = 1 << 25

#: Instances that have to be compared before anything is said, and the most that are counted: instances of a
#: pool are like each other, so that a thousand votes are no thousand opinions.
FEW, MANY = 20, 300
#: How many standard errors a share of equal labels has to be below what is expected of it.
DECIDED = 2.5


def agreement(votes: Sequence[Votes], tasks: Sequence[Sequence[int]], n_classes: int) -> NDArray[np.float64]:
    """How often two silos say the same: an N × N array with 1 on the diagonal.

    Of the instances to which both silos gave a class that both have (neither abstained), the share to which
    they gave the same one; NaN where there is no such instance.

    >>> import numpy as np
    >>> votes = [np.array([0, 1, 0, -1]), np.array([0, 0, 2, 1]), np.array([2, 2, 2, 2])]
    >>> agreement(votes, [[0, 1], [0, 1, 2], [2]], 3)
    array([[1. , 0.5, nan],
           [0.5, 1. , 1. ],
           [nan, 1. , 1. ]])
    """
    length = check_ballots(votes, tasks, n_classes)
    n_silos = len(votes)
    # Silos with equal tasks share a row of the lookup table.
    distinct: dict[frozenset[int], int] = {}
    task_of = np.array([distinct.setdefault(frozenset(task), len(distinct)) for task in tasks])
    has = np.zeros((len(distinct), n_classes + 1), dtype=bool)  # the last place stands for −1
    for task, t in distinct.items():
        has[t, class_codes(sorted(task), n_classes, f"tasks[{int(np.argmax(task_of == t))}]")] = True

    # Eight tasks to a byte, so that one lookup answers for eight.
    packed = np.packbits(has, axis=0)

    both = np.zeros((n_silos, n_silos), dtype=np.int64)
    same = np.zeros((n_silos, n_silos), dtype=np.int64)
    step = max(1, min(length, 1 << 16, max(64, BITS // (n_silos * len(distinct)))))
    store = np.empty(n_silos * step, dtype=np.result_type(*votes))
    for start in range(0, length, step):
        block = side_by_side(votes, start, store, n_classes)
        # inside[i, t]: for which instances silo i's vote is a class of task t, one bit each.
        inside = np.stack(
            [
                np.packbits(np.unpackbits(packed.take(row, axis=1), axis=0, count=len(has)), axis=1)
                for row in block
            ]
        )
        for i in range(n_silos - 1):
            shared = inside[i, task_of[i + 1 :]] & inside[i + 1 :, task_of[i]]
            equal = np.packbits(block[i + 1 :] == block[i], axis=1)
            both[i, i + 1 :] += np.bitwise_count(shared).sum(axis=1, dtype=np.int64)
            same[i, i + 1 :] += np.bitwise_count(shared & equal).sum(axis=1, dtype=np.int64)
    both += both.T
    same += same.T
    share = np.full((n_silos, n_silos), np.nan)
    np.divide(same, both, out=share, where=both > 0)
    np.fill_diagonal(share, 1.0)
    return share


def contradicts(votes: Votes, index: NDArray[np.integer], label: Votes, n_classes: int, least: float) -> bool:
    """Return whether labels of some pool instances are decidedly not those of an election with these votes.

    Votes that were independent of the labels would be equal to them on a share e of the instances, given
    how often the silo votes for each class in the whole pool, and how often it is a label; at best they
    could be on a share a. Expected is at least e + `least` · (a − e). The labels contradict the votes if
    the share of equal ones is below that by `DECIDED` standard errors (Agresti and Coull). So a silo that
    gives most of the pool one class, as weak models do, contradicts nothing: its votes say nothing.

    Labels are compared where the silo voted; if it did on fewer than `FEW` of them, they contradict nothing.

    >>> votes = np.arange(40) % 4
    >>> everywhere = np.arange(40)
    >>> contradicts(votes, everywhere, (votes + 1) % 4, 4, 0.1)
    True
    >>> contradicts(votes, everywhere, votes, 4, 0.1)
    False
    >>> contradicts(np.zeros(40, int), everywhere, votes, 4, 0.1)
    False
    """
    voted = votes[index] >= 0
    compared = int(voted.sum())
    if compared < FEW:
        return False
    given = label[voted]
    of_votes = np.bincount(votes[votes >= 0], minlength=n_classes) / np.sum(votes >= 0)
    of_labels = np.bincount(given, minlength=n_classes) / compared
    by_chance, at_best = float(of_votes @ of_labels), float(np.minimum(of_votes, of_labels).sum())
    expected = by_chance + least * (at_best - by_chance)
    equal = float(np.mean(votes[index][voted] == given))
    counted, more = min(compared, MANY), DECIDED**2
    share = (counted * equal + more / 2) / (counted + more)
    error = math.sqrt(share * (1 - share) / (counted + more))
    return share + DECIDED * error < expected
