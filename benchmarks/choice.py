"""How fast the models that travel are chosen, and how near to the best: `python benchmarks/choice.py`.

200 silos, every pair (K, B) that fits, for three kinds of similarity ratios and three budgets; the slowest
counts. Time is processor time, the median of five. Small cases, up to 8 silos, are held against brute force.
"""

import itertools
import statistics
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cosilo.methods.dofed_spp.model_selection import Costs, best, feasible, greedy, total

SILOS = 200
REPEATS = 5
CASES = 300


def kinds(rng: np.random.Generator, silos: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Ratios of silos that are all alike, of silos in ten groups, and with few models that matter to each."""
    uniform = rng.random((silos, silos))
    same = rng.integers(10, size=silos)[:, np.newaxis] == rng.integers(10, size=silos)
    few = rng.random((silos, silos)) < 0.2
    for name, matrix in {"alike": uniform, "groups": uniform * (same + 0.01), "few": uniform * few}.items():
        sums = matrix.sum(axis=1, keepdims=True)
        yield name, matrix / np.where(sums > 0, sums, 1.0)


def median_seconds(ratios: NDArray[np.float64], pairs: list[tuple[int, int]]) -> float:
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        best(ratios, pairs)
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def smallest_share(rng: np.random.Generator) -> float:
    """The smallest greedy / optimum over random small cases."""
    lowest = 1.0
    for case in range(CASES):
        silos = int(rng.integers(3, 9))
        _, ratios = list(kinds(rng, silos))[case % 3]
        K = int(rng.integers(1, silos + 1))
        B = int(rng.integers(1, K + 1))
        most = max(total(ratios, chosen, B) for chosen in itertools.combinations(range(silos), K))
        if most > 0:
            lowest = min(lowest, total(ratios, greedy(ratios, K, B), B) / most)
    return lowest


def main() -> None:
    rng = np.random.default_rng(0)
    slowest = 0.0
    for name, ratios in kinds(rng, SILOS):
        for upload in (0.5, 1.0, 2.0):  # seconds, where labelling with a model takes one
            pairs = feasible(Costs(0.0, 0.0, 1.0, upload), float(SILOS), SILOS)
            seconds, found = median_seconds(ratios, pairs), best(ratios, pairs)
            slowest = max(slowest, seconds)
            print(
                f"{name}, {upload} s an upload: {len(pairs)} pairs in {seconds:.3f} s, "
                f"K = {found.K}, B = {found.B}, {found.total / SILOS:.1%} of all similarity"
            )
    print(f"figure choice_200_seconds {slowest:.3f}")
    print(f"figure choice_over_brute_force_min {smallest_share(rng):.4f}")


if __name__ == "__main__":
    main()
