"""How fast the vote is counted: `python benchmarks/voting.py`, under two minutes.

The measure of time is one pass of numpy over the same votes (`np.sum`), taken in turns with the count. Memory
is what the count needs beyond the votes, result included, measured in a run of its own. crowd-kit's
`MajorityVote` does a simpler job (no tasks, no threshold) at a size that it can stand. All of it runs on one
core, so that time is processor time: what a clock on the wall says when nothing else runs.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd
from crowdkit.aggregation import MajorityVote
from numpy.typing import NDArray

from cosilo.aggregation.voting import Elected, agreement, elect

REPEATS = 7
ALPHA = 0.3


def make(instances: int, silos: int, classes: int, seed: int = 0) -> tuple[NDArray[np.int8], list[list[int]]]:
    """Votes of silos that have 30 to 100 % of the classes.

    A silo abstains on 5 % of the pool, is right with probability 0.6 where it has the true class, and else
    gives a random class of its own.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=instances).astype(np.int8)
    votes = np.empty((silos, instances), dtype=np.int8)
    tasks = []
    for row in votes:
        size = int(rng.integers(max(2, classes * 3 // 10), classes + 1))
        task = rng.permutation(classes)[:size].astype(np.int8)
        row[:] = task[rng.integers(size, size=instances)]
        chance = rng.random(instances, dtype=np.float32)
        has = np.zeros(classes, dtype=bool)
        has[task] = True
        np.copyto(row, truth, where=has[truth] & (chance < 0.6))
        row[chance > 0.95] = -1
        tasks.append(sorted(task.tolist()))
    return votes, tasks


def seconds(*functions: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """The median time of each, taken in turns so that a busy machine slows all of them."""
    taken: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, times in zip(functions, taken, strict=True):
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
    return [statistics.median(times) for times in taken]


def peak(function: Callable[[], Elected]) -> tuple[int, Elected]:
    """The most bytes that Python and numpy held at once during the call, beyond what they held before."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most - before, result


def main() -> None:
    instances, silos, classes = 1_000_000, 100, 100
    votes, tasks = make(instances, silos, classes)
    rows = list(votes)
    print(f"{instances:,} instances x {silos} silos x {classes} classes, {votes.dtype}, alpha {ALPHA}")

    one_pass, ours = seconds(votes.sum, lambda: elect(rows, tasks, classes, ALPHA))
    over, per_vote = ours / one_pass, ours / votes.size * 1e9
    print(f"one numpy pass {one_pass:.3f} s, elect {ours:.3f} s: {over:.1f} passes, {per_vote:.2f} ns a vote")

    extra, elected = peak(lambda: elect(rows, tasks, classes, ALPHA))
    share = extra / votes.nbytes
    print(f"extra memory {extra / 1e6:.1f} MB, {share:.1%} of the votes; {len(elected):,} pairs elected")

    weights = np.random.default_rng(1).uniform(0.5, 2, silos).tolist()
    few, many, weighted = seconds(
        lambda: elect(rows, tasks, classes, 0.5),
        lambda: elect(rows, tasks, classes, 0.01),
        lambda: elect(rows, tasks, classes, ALPHA, weights),
        repeats=3,
    )
    for name, taken in (("alpha 0.5", few), ("alpha 0.01", many), ("unequal weights", weighted)):
        print(f"{name}: {taken / one_pass:.1f} passes, {taken / votes.size * 1e9:.2f} ns a vote")

    sizes = (250_000, 500_000, 1_000_000)
    parts = [[row[:size] for row in rows] for size in sizes]
    counts: list[Callable[[], object]] = [
        lambda part=part: elect(part, tasks, classes, ALPHA)  # type: ignore[misc]
        for part in parts
    ]
    each = [
        taken / (size * silos) * 1e9 for taken, size in zip(seconds(*counts, repeats=5), sizes, strict=True)
    ]
    linearity = each[-1] / each[0]
    print("ns a vote at", ", ".join(f"{size:,}: {ns:.2f}" for size, ns in zip(sizes, each, strict=True)))

    (pairwise,) = seconds(lambda: agreement(rows, tasks, classes), repeats=1)
    print(f"agreement of all pairs: {pairwise:.1f} s")

    small, _ = make(20_000, 10, classes)
    everything = [list(range(classes))] * len(small)
    silo, instance = np.nonzero(small >= 0)
    frame = pd.DataFrame({"task": instance, "worker": silo, "label": small[silo, instance]})
    theirs, same = seconds(
        lambda: MajorityVote().fit_predict(frame),
        lambda: elect(list(small), everything, classes, 0.5),
        repeats=5,
    )
    theirs, same = theirs / small.size * 1e9, same / small.size * 1e9
    print(f"20,000 x 10: crowd-kit MajorityVote {theirs:.0f} ns a vote, elect {same:.1f}")

    print(f"figure voting_over_one_pass {over:.2f}")
    print(f"figure voting_ns_per_vote {per_vote:.2f}")
    print(f"figure voting_extra_memory {share:.4f}")
    print(f"figure voting_linearity {linearity:.3f}")
    print(f"figure crowdkit_ns_per_vote {theirs:.0f}")
    print(f"figure crowdkit_over_ours {theirs / same:.0f}")


if __name__ == "__main__":
    main()
