"""What CoFED's defaults were chosen by, on development seeds (needs COSILO_DATA).

`python benchmarks/development.py NAME …`: what a label counts for, paired with the paper's rule at α = 0.5.
Names are those of `benchmarks/tools/elections.py`. `python benchmarks/development.py pools`: how well silos
agree.
"""

import statistics
import sys

import numpy as np

from cosilo import CoFED
from tools.elections import Counts, interval, polled, relative

#: Never those that benchmarks/election.py, liars.py and guard.py report on.
SEEDS = {"adult": range(3), "dbpedia": range(6), "digits": range(8)}
OTHERS = range(10)

PAPER = CoFED(rule="paper", alpha=0.5, control=False)
LOW = CoFED(rule="paper", control=False)
OURS = CoFED(accept="always", control=False)
#: What a label counts for beside one of a silo's own instances.
LABELS: dict[str, Counts] = {
    "votes ahead / 2": lambda share, second, holders: np.minimum((share - second) * holders / 2, 1),
    "lead": lambda share, second, _: share - second,
    "share": lambda share, second, _: share,
    "one": lambda share, second, _: np.ones(len(share)),
}

#: Datasets, and whether their pool is shuffled pixels or columns, or words drawn at random.
POOLS = [
    *((name, False) for name in ("quick digits", "dbpedia", "adult", "wine", "breast cancer")),
    *((name, True) for name in ("quick digits", "dbpedia")),
]


def labels(name: str) -> None:
    """Each way in which labels may count, and the paper's rule at both thresholds."""
    found: dict[str, list[list[float]]] = {}
    for seed in SEEDS.get(name, OTHERS):
        one = polled(name, seed)
        found.setdefault("paper", []).append([relative(silo) for silo in one.learn(PAPER)])
        for way, counts in LABELS.items():
            found.setdefault(way, []).append([relative(silo) for silo in one.learn(OURS, counts=counts)])
        found.setdefault("paper, alpha 0.3", []).append([relative(silo) for silo in one.learn(LOW)])
    paper = [statistics.fmean(values) for values in found["paper"]]
    for way, seeds in found.items():
        means = [statistics.fmean(values) for values in seeds]
        gain, half = interval([b - a for a, b in zip(paper, means, strict=True)])
        lose = statistics.fmean(value < 1 for values in seeds for value in values)
        print(f"{name}, {way}: {statistics.fmean(means):.4f}, gain {gain:+.4f} ± {half:.4f}, {lose:.0%} lose")
        figure = f"labels {name} {way} gain".replace(",", "").replace(" / ", " ").replace(" ", "_")
        print(f"figure {figure} {gain:.4f}", flush=True)


def pools() -> None:
    """How well silos agree on pools like their data, and on nonsense."""
    for name, nonsense in POOLS:
        ballots = [polled(name, seed, nonsense).ballots for seed in range(3)]
        medians = [float(np.median(one.credibility().kappa)) for one in ballots]
        which = f"{name}, nonsense" if nonsense else name
        print(f"{which}: median κ {min(medians):.2f} to {max(medians):.2f}")
        print(f"figure kappa_{which.replace(', ', '_').replace(' ', '_')} {min(medians):.3f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["pools"]:
        pools()
        sys.exit()
    for name in sys.argv[1:] or ["wine", "breast cancer"]:
        labels(name)
