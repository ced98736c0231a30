"""What liars among the silos do to the honest ones, by CoFED's election and the paper's (needs COSILO_DATA).

Text of DBpedia, ten silos, of which some lie about the pool: `random` draws any of its classes, `one class`
says its first class all the time, `permutation` swaps its classes among each other, `pairwise` says its
second class wherever it sees its first, `colluding` liars shift all classes by one in the same order,
`copies` send the votes of one colluding liar under several names. The honest mean is held against the same
silos when nobody lies, and when the liars are left out. The guard is off: this is the election alone.
"""

import statistics
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import CoFED
from cosilo.methods.cofed.elections import Ballots
from tools.elections import Polled, polled, relative

SEEDS = range(200, 203)
SHARES = (0.2, 0.4)
KINDS = ("random", "one class", "permutation", "pairwise", "colluding", "copies")
RULES = {
    "ours": CoFED(accept="always", control=False),
    "ours_alpha_05": CoFED(accept="always", alpha=0.5, control=False),
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


def main() -> None:
    truthful: dict[tuple[str, int], list[float]] = {}
    found: dict[tuple[str, str, float], list[float]] = {}
    honestly: dict[tuple[str, str, float], list[float]] = {}
    alone: dict[float, list[float]] = {}
    for seed in SEEDS:
        one = polled("dbpedia", seed)
        for rule, method in RULES.items():
            truthful[rule, seed] = [relative(silo) for silo in one.learn(method)]
        for share in SHARES:
            for kind in KINDS:
                lied, honest = lie(one, kind, share, seed)
                if kind == KINDS[0]:
                    absent = without(one, honest)
                    alone.setdefault(share, []).extend(relative(s) for s in absent.learn(RULES["ours"]))
                for rule, method in RULES.items():
                    if share < max(SHARES) and rule != "ours":
                        continue
                    key = rule, kind, share
                    found.setdefault(key, []).extend(relative(s) for s in lied.learn(method, honest))
                    honestly.setdefault(key, []).extend(truthful[rule, seed][place] for place in honest)
        print(f"seed {seed} done", flush=True)
    for share, values in alone.items():
        print(f"ours, {share:.0%} left out: honest {statistics.fmean(values):.3f}")
        print(f"figure liars_ours_left_out_{share * 100:.0f} {statistics.fmean(values):.4f}")
    for (rule, kind, share), values in found.items():
        mean, was = statistics.fmean(values), statistics.fmean(honestly[rule, kind, share])
        lose = sum(value < 1 for value in values) / len(values)
        name = f"{rule}_{kind.replace(' ', '_')}_{share * 100:.0f}"
        print(f"{rule}, {share:.0%} {kind}: honest {mean:.3f} ({lose:.0%} lose); {was:.3f} if nobody lies")
        print(f"figure liars_{name} {mean:.4f}")
        print(f"figure liars_{name}_less_than_without {was - mean:.4f}")


if __name__ == "__main__":
    main()
