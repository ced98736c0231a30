"""What liars among the silos do to the honest ones, by CoFED's election and the paper's (needs COSILO_DATA).

`python benchmarks/liars.py dbpedia 40`: text of DBpedia, ten silos, of which 40 % lie about the pool; or
`digits`, eight silos, and another percentage. `random` draws any of its classes, `one class` says its first
class all the time, `permutation` swaps its classes among each other, `pairwise` says its
second class wherever it sees its first, `colluding` liars shift all classes by one in the same order,
`copies` send the votes of one colluding liar under several names. The honest mean is held against the same
silos when nobody lies, and when the liars are left out. The guard is off: this is the election alone.
"""

import statistics
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import CoFED
from cosilo.methods.cofed.elections import Ballots
from tools.elections import Polled, polled, relative

SEEDS = range(200, 203)
DATASETS = {"dbpedia": "dbpedia", "digits": "quick digits"}
KINDS = ("random", "one class", "permutation", "pairwise", "colluding", "copies")
RULES = {
    "ours": CoFED(accept="always", control=False),
    "paper_alpha_03": CoFED(rule="paper", control=False),
    "paper_alpha_05": CoFED(rule="paper", alpha=0.5, control=False),
}


def lie(one: Polled, kind: str, share: float, seed: int) -> tuple[Polled, list[int]]:
    """The same federation with liars, and who is honest."""
    rng = np.random.default_rng(seed)
    ballots = one.ballots
    liars = sorted(rng.choice(len(one.silos), round(share * len(one.silos)), replace=False).tolist())
    votes: list[NDArray[Any]] = list(ballots.votes)
    tasks = list(ballots.tasks)
    for place in liars:
        votes[place] = _lie(kind, votes[place], np.array(tasks[place]), ballots.n_classes, rng)
    if kind == "copies":
        for place in liars[1:]:
            votes[place], tasks[place] = votes[liars[0]].copy(), tasks[liars[0]]
    told = Ballots(ballots.names, votes, tasks, ballots.n_classes)
    return Polled(one.silos, told), [place for place in range(len(one.silos)) if place not in liars]


def without(one: Polled, honest: list[int]) -> Polled:
    """The same federation without the others."""
    ballots = one.ballots
    left = Ballots(
        [ballots.names[place] for place in honest],
        [ballots.votes[place] for place in honest],
        [ballots.tasks[place] for place in honest],
        ballots.n_classes,
    )
    return Polled([one.silos[place] for place in honest], left)


def _lie(
    kind: str, votes: NDArray[Any], task: NDArray[Any], n_classes: int, rng: np.random.Generator
) -> NDArray[Any]:
    if kind == "random":
        return rng.choice(task, len(votes)).astype(votes.dtype)
    if kind == "one class":
        return np.full_like(votes, task[0])
    says = np.append(np.arange(n_classes), -1)  # the last place is for abstentions
    if kind == "pairwise":
        says[task[0]] = task[1]
    elif kind == "permutation":
        order = rng.permutation(task)
        says[order] = np.roll(order, 1)
    else:
        says[task] = np.roll(task, -1)
    return np.asarray(says[votes], dtype=votes.dtype)


def main(name: str, percent: int) -> None:
    share = percent / 100
    found: dict[tuple[str, str], list[float]] = {}
    truthful: dict[tuple[str, str], list[float]] = {}
    absent: list[float] = []
    for seed in SEEDS:
        one = polled(DATASETS[name], seed)
        without_lies = {
            rule: [relative(silo) for silo in one.learn(method)] for rule, method in RULES.items()
        }
        _, honest = lie(one, KINDS[0], share, seed)
        absent += [relative(silo) for silo in without(one, honest).learn(RULES["ours"])]
        for kind in KINDS:
            lied, honest = lie(one, kind, share, seed)
            for rule, method in RULES.items():
                found.setdefault((rule, kind), []).extend(relative(s) for s in lied.learn(method, honest))
                truthful.setdefault((rule, kind), []).extend(without_lies[rule][place] for place in honest)
        print(f"seed {seed} done", flush=True)
    print(f"ours, {percent} % left out: honest {statistics.fmean(absent):.3f}")
    print(f"figure liars_{name}_{percent}_left_out {statistics.fmean(absent):.4f}")
    for (rule, kind), values in found.items():
        mean, was = statistics.fmean(values), statistics.fmean(truthful[rule, kind])
        lose = sum(value < 1 for value in values) / len(values)
        print(f"{rule}, {percent} % {kind}: honest {mean:.3f} ({lose:.0%} lose); {was:.3f} if nobody lies")
        figure = f"liars_{name}_{percent}_{rule}_{kind.replace(' ', '_')}"
        print(f"figure {figure} {mean:.4f}")
        print(f"figure {figure}_less_than_without {was - mean:.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "dbpedia", int(sys.argv[2]) if len(sys.argv) > 2 else 40)
