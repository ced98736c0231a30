"""Credibility: how far each silo's votes go with those of the others, from the votes alone.

For silo i, b_i(x) is the class of its task that the *others* give the largest weighted share, taken only
where that class also leads over all classes: elsewhere the instance is none of the silo's business. Its
agreement is Cohen's κ of its votes against b_i, which takes away what two silos would agree on by chance: a
silo that says one class all the time has κ = 0. Weights begin equal and follow the agreement, so that those
who agree with nobody soon have no say in what the others are held against.

    κ_i = (p − e) / (1 − e),   w_i = min(1, 5 · max(0, κ_i) / max_j κ_j) / n_i

Whoever is a fifth as credible as the best counts fully: honest silos with weak models make other mistakes
than those with strong ones, and elections are worse if they count for less; whoever lies is far below. n_i is
how many silos vote as silo i does on practically all instances, itself included: copies of one voter have one
vote between them, however many names they go by.

One number does not do justice to a silo that takes its classes for each other, by mistake or on purpose: it
agrees with nobody, and knows as much as anybody. If a silo that is less than a fifth as credible as the best
would be half as credible with its classes in another order, its votes are read in that order. Fifty instances
have to say so: of fewer, some order fits anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.aggregation.voting.ballots import Votes, check_ballots, class_codes, vote_dtype
from cosilo.aggregation.voting.election import totals
from cosilo.aggregation.voting.shares import counts

#: Instances that silos are compared on; a larger pool is sampled evenly. κ is then known to about 0.01.
SAMPLE = 10_000
ITERATIONS = 3
#: Silos that give the same label to more than this share of the instances are copies of one voter.
COPY = 0.995
#: Who is so many times less credible than the best still counts fully.
FULLY = 5
#: Instances that have to be there before a silo's classes are read in another order.
ENOUGH = 50
#: Counts of instances × classes that are looked at in one go.
CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class Credibility:
    """What the votes say of the voters."""

    #: Cohen's κ of every silo against what leads among the others.
    kappa: NDArray[np.float64]
    #: What a vote weighs: at most 1, and 0 for who agrees with nobody.
    weight: NDArray[np.float64]
    #: By silo that takes its classes for each other, what each class code stands for when it says so.
    readings: Mapping[int, NDArray[np.intp]]

    def read(self, votes: Sequence[Votes]) -> list[Votes]:
        """The votes as they are meant; those that are read anew are on disk if they are many."""
        found = list(votes)
        if self.readings:
            kind = np.result_type(*(votes[place] for place in self.readings))
            anew = mapped.empty((len(self.readings), len(votes[0])), kind)
            for row, (place, order) in zip(anew, self.readings.items(), strict=True):
                row[:] = np.append(order, -1).astype(kind)[votes[place]]
                found[place] = row
        return found


def kappa(votes: Votes, reference: Votes, n_classes: int) -> float:
    """Cohen's κ on the instances on which both say something; 0 where there is nothing to compare.

    >>> kappa(np.array([0, 0, 1, 1, -1]), np.array([0, 1, 1, 1, 0]), 2)
    0.5
    >>> kappa(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 1]), 2)
    0.0
    """
    both = (votes >= 0) & (reference >= 0)
    said, should = votes[both].astype(np.intp), reference[both].astype(np.intp)
    if len(said) == 0:
        return 0.0
    same = float(np.mean(said == should))
    one, other = (np.bincount(codes, minlength=n_classes) / len(said) for codes in (said, should))
    by_chance = float(one @ other)
    return 0.0 if by_chance >= 1 else (same - by_chance) / (1 - by_chance)


def credibility(
    votes: Sequence[Votes],
    tasks: Sequence[Sequence[int]],
    n_classes: int,
    iterations: int = ITERATIONS,
) -> Credibility:
    """κ and weight of every silo, after the last iteration.

    >>> truth = np.arange(12) % 3
    >>> near = [np.where(np.arange(12) == i, (truth + 1) % 3, truth) for i in range(3)]
    >>> liar = np.zeros(12, int)
    >>> credibility([*near, liar], [[0, 1, 2]] * 4, 3).weight.round(2)
    array([1., 1., 1., 0.])

    Two that say the same have one vote between them:

    >>> credibility([*near, near[2]], [[0, 1, 2]] * 4, 3).weight.round(2)
    array([1. , 1. , 0.5, 0.5])

    One that says 1 for 0, 2 for 1 and 0 for 2 is read that way:

    >>> votes = [np.tile(row, 9) for row in [*near, (truth + 1) % 3]]
    >>> found = credibility(votes, [[0, 1, 2]] * 4, 3)
    >>> found.weight, found.readings
    (array([1., 1., 1., 1.]), {3: array([2, 0, 1])})
    """
    length = check_ballots(votes, tasks, n_classes)
    places = np.linspace(0, length - 1, min(length, SAMPLE)).round().astype(np.intp)
    sample = [np.asarray(row)[places] for row in votes]
    known = [class_codes(task, n_classes, f"tasks[{i}]") for i, task in enumerate(tasks)]
    alike = copies(sample)
    weights, found = 1 / alike, np.zeros(len(votes))
    for _ in range(iterations):
        best = _others_best(sample, known, n_classes, weights)
        found = np.array([kappa(row, other, n_classes) for row, other in zip(sample, best, strict=True)])
        weights = _credible(found) / alike
    as_voted, readings = found, {}
    best = _others_best(sample, known, n_classes, weights)
    for place in np.flatnonzero(FULLY * found < found.max(initial=0.0)).tolist():
        if np.sum((sample[place] >= 0) & (best[place] >= 0)) < ENOUGH:
            continue
        meant = _likeliest_order(sample[place], best[place], known[place], n_classes)
        read = np.append(meant, -1)[sample[place]]
        if kappa(read, best[place], n_classes) >= found.max() / 2:
            readings[place], sample[place] = meant, read
    if readings:
        best = _others_best(sample, known, n_classes, weights)
        found = np.array([kappa(row, other, n_classes) for row, other in zip(sample, best, strict=True)])
        weights = _credible(found) / alike
    return Credibility(as_voted, weights, readings)


def _likeliest_order(
    votes: Votes, reference: Votes, task: NDArray[np.intp], n_classes: int
) -> NDArray[np.intp]:
    """By class code, what it stands for if the silo's classes are put in the order that fits best."""
    from scipy.optimize import linear_sum_assignment

    both = (votes >= 0) & (reference >= 0)
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, (votes[both], reference[both]), 1)
    meant = np.arange(n_classes)
    said, stands_for = linear_sum_assignment(table[np.ix_(task, task)], maximize=True)
    meant[task[said]] = task[stands_for]
    return meant


def copies(votes: Sequence[Votes]) -> NDArray[np.int64]:
    """How many silos vote as each one does, itself included.

    Two silos that differ on at most d instances are the same on one of any d + 1 parts of the pool. So only
    silos that are the same on some part are compared, and those that are the same everywhere only once.

    >>> copies([np.array([0, 1]), np.array([0, 0]), np.array([0, 1])])
    array([2, 1, 2])
    """
    block = np.ascontiguousarray(np.stack(votes))
    length = block.shape[1]
    distinct, which = _same_rows(block)
    times = np.bincount(which)
    block = block[distinct]
    found = times.copy()
    # The largest number of differences with which two are still copies.
    most = max((d for d in range(int((1 - COPY) * length) + 2) if (length - d) / length > COPY), default=0)
    compared: set[tuple[int, int]] = set()
    for part in np.array_split(np.arange(length), most + 1) if most else ():
        _, group = _same_rows(np.ascontiguousarray(block[:, part]))
        order = np.argsort(group, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            for place, one in enumerate(members[:-1].tolist()):
                others = [int(two) for two in members[place + 1 :] if (one, int(two)) not in compared]
                if not others:
                    continue
                compared.update((one, two) for two in others)
                alike = np.mean(block[others] == block[one], axis=1) > COPY
                for two in np.array(others)[alike].tolist():
                    found[one] += times[two]
                    found[two] += times[one]
    return found[which].astype(np.int64, copy=False)


def _same_rows(block: Votes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The place of the first of each kind of row, and the kind of every row."""
    kinds: dict[bytes, int] = {}
    which = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in block], np.intp)
    return np.unique(which, return_index=True)[1], which


def _credible(kappas: NDArray[np.float64]) -> NDArray[np.float64]:
    """min(1, 5 · max(0, κ_i) / max_j κ_j); all the same if nobody agrees with anybody."""
    positive = np.maximum(kappas, 0.0)
    most = positive.max(initial=0.0)
    return np.minimum(FULLY * positive / most, 1.0) if most > 0 else np.ones(len(kappas))


def _others_best(
    votes: Sequence[Votes],
    tasks: Sequence[NDArray[np.intp]],
    n_classes: int,
    weights: NDArray[np.float64],
) -> Votes:
    """b_i of every silo: the class that leads among the others, where it is one of the task; −1 elsewhere.

    To silos with the same task and weight the others' shares are the same but for the class that each voted
    for itself, and there it can only be less. So each of them is told from the two best.
    """
    groups: dict[tuple[bytes, float], list[int]] = {}
    for place, (task, weight) in enumerate(zip(tasks, weights.tolist(), strict=True)):
        groups.setdefault((task.tobytes(), weight), []).append(place)
    total = totals(tasks, n_classes, weights)
    found = np.empty((len(votes), len(votes[0])), vote_dtype(n_classes))
    for start, count in _longer(counts(votes, n_classes, weights), CELLS // n_classes):
        part, rows = slice(start, start + len(count)), np.arange(len(count))
        for (_, weight), members in groups.items():
            task = tasks[members[0]]
            rest = total.copy()
            rest[task] -= weight
            # What is left of a sum after its only part was taken away may be a rounding error, and is nobody.
            some = rest > 1e-9 * np.maximum(total, 1e-300)
            inverse = np.divide(1.0, rest, out=np.zeros(n_classes), where=some)
            has = np.zeros(n_classes, bool)
            has[task] = True
            share = count * inverse
            near = share.round(9)  # a tie is one whatever the last bits are
            first = near.argmax(axis=1)
            leading = share[rows, first]
            near[rows, first] = -1.0
            second = near.argmax(axis=1)
            following, near_following = share[rows, second], near[rows, second]
            # What the leading class has without the vote of a silo that gave it one of its own.
            without = (count[rows, first] - weight) * inverse[first]
            near = without.round(9)
            stays = (near > near_following) | ((near == near_following) & (first < second))
            for place in members:
                own = votes[place][part]
                lost = (own == first) & ~stays
                best = np.where(lost, second, first)
                most = np.where(own != first, leading, np.where(lost, following, without))
                found[place, part] = np.where((most > 1e-12) & has[best], best, -1)
    return found


def _longer(
    blocks: Iterable[tuple[int, NDArray[np.float64]]], rows: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Blocks of at least so many rows, but for the last: what is done with one costs the same for few."""
    held: list[NDArray[np.float64]] = []
    begin = 0
    for start, block in blocks:
        begin = begin if held else start
        held.append(block)
        if sum(map(len, held)) >= rows:
            yield begin, np.concatenate(held)
            held = []
    if held:
        yield begin, np.concatenate(held)
