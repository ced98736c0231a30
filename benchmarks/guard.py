"""Whether the guard keeps silos from harm, and what that costs in the mean (needs COSILO_DATA).

Every silo is updated by CoFED() as it comes; what it was offered is what it would use without the guard. A
silo loses for certain if it is behind by more than two standard errors of the difference on its test set.

Of images whose test set is another collection, the same decisions are also judged on images of the collection
that silos train on, which neither they nor the pool have. `python benchmarks/guard.py NAME …`: some cases.

`python benchmarks/guard.py error_rates`: what other error rates would have come to, on development seeds.
"""

import math
import statistics
import sys

import numpy as np

from cosilo import CoFED, Silo
from cosilo.data import load
from cosilo.protocol.stage import Measure
from cosilo.silo.data import Examples
from cosilo.silo.guard import Decision
from tools.elections import Polled, polled, relative

#: The guard was chosen on seeds below 100 of digits and DBpedia; "few images" played no part in that.
CASES = {
    "digits": ("quick digits", False, range(100, 108)),
    "dbpedia": ("dbpedia", False, range(100, 104)),
    "few_images": ("few images", False, range(4)),
    # Its test images, Dig-MNIST, are of another collection than what silos train on.
    "shifted_images": ("shifted images", False, range(8)),
    "nonsense_digits": ("quick digits", True, range(100, 108)),
    "nonsense_images": ("shifted images", True, range(4)),
    "nonsense_dbpedia": ("dbpedia", True, range(100, 103)),
}
#: Cases that are judged on another collection than silos train on, and the dataset of both.
SHIFTED = {"shifted_images": "kannada_mnist"}
METHOD = CoFED(control=False)
#: Development seeds for the error rates of the guard, and how many standard errors behind it may tolerate.
DEVELOPMENT = {
    "digits": ("quick digits", False, range(8)),
    "dbpedia": ("dbpedia", False, range(2)),
    "few_images": ("few images", False, range(50, 56)),
    "shifted_images": ("shifted images", False, range(50, 56)),
    "nonsense_digits": ("quick digits", True, range(4)),
}
BEHIND = (0.0, 0.5, 1.0, 1.282, 1.645, 2.0, math.inf)


def difference(before: Silo, after: Silo, examples: Examples) -> tuple[bool, float]:
    """Whether the model in use is behind by more than two standard errors, and its relative accuracy."""
    X, y = examples
    one, other = before.learner.predict(X) == y, after.learner.predict(X) == y
    gained, lost = int(np.sum(other & ~one)), int(np.sum(one & ~other))
    return gained - lost < -2 * math.sqrt(gained + lost), float(np.mean(other) / np.mean(one))


def alike(one: Polled, dataset: str, most: int = 2000) -> list[Examples]:
    """For each silo, instances of its classes from the collection that silos train on, which nobody has."""
    whole = load(dataset)
    seen = {row.tobytes() for silo in one.silos for row in (*silo.data.train[0], *silo.need_pool())}
    free = np.array([place for place, row in enumerate(whole.X) if row.tobytes() not in seen])
    free = np.random.default_rng(0).permutation(free)
    found = []
    for silo in one.silos:
        names = np.array(whole.classes)[whole.y[free]]
        mine = free[np.isin(names, silo.task.classes)][:most]
        codes = {name: code for code, name in enumerate(silo.task.classes)}
        found.append((whole.X[mine], np.array([codes[whole.classes[y]] for y in whole.y[mine]])))
    return found


def _behind(found: Decision) -> float:
    """By how many standard errors the offer is behind on the silo's own data; below 0 it is ahead."""
    return (found.lost - found.gained) / max(math.sqrt(found.gained + found.lost), 1e-9)


def error_rates(names: list[str]) -> None:
    """For each number of standard errors that an offer may be behind: what is used, refused and lost.

    Silos to which the pool is doubtful ask for proof of a gain, whatever that number is.
    """
    for name in names or DEVELOPMENT:
        recipe, nonsense, seeds = DEVELOPMENT[name]
        outcomes: dict[float, list[tuple[float, bool, bool]]] = {behind: [] for behind in BEHIND}
        for seed in seeds:
            one = polled(recipe, seed, nonsense)
            held = alike(one, SHIFTED[name]) if name in SHIFTED else None
            offers = one.learn(METHOD.model_copy(update={"accept": "always"}))
            for place, (before, after) in enumerate(zip(one.silos, one.learn(METHOD), strict=True)):
                examples, found = before.data.test if held is None else held[place], after.decision
                assert examples is not None
                harmful, ratio = difference(before, offers[place], examples)
                for behind in BEHIND:
                    refused = found is not None and (
                        not found.accepted if found.doubtful else _behind(found) > behind
                    )
                    outcomes[behind].append((1.0 if refused else ratio, refused, harmful and not refused))
        for behind, rows in outcomes.items():
            mean, turned_down, hurt = (statistics.fmean(column) for column in zip(*rows, strict=True))
            print(
                f"{name}, {behind:g} standard errors: {mean:.4f}, {turned_down:.0%} refused, {hurt:.1%} lose"
            )
            figure = f"guard_{name}_behind_{behind:g}"
            print(f"figure {figure} {mean:.4f}\nfigure {figure}_lose_for_certain {hurt:.4f}", flush=True)


def main(names: list[str]) -> None:
    certain = silos = 0
    for name in names or CASES:
        recipe, nonsense, seeds = CASES[name]
        bare, guarded, beside, taken = [], [], [], 0
        hurt = hurt_beside = 0
        for seed in seeds:
            one = polled(recipe, seed, nonsense)
            held = alike(one, SHIFTED[name]) if name in SHIFTED else None
            for place, (before, after) in enumerate(zip(one.silos, one.learn(METHOD), strict=True)):
                assert before.data.test is not None
                bare.append(relative(after, Measure.OFFERED))
                guarded.append(relative(after))
                taken += after.decision is not None and after.decision.accepted
                hurt += difference(before, after, before.data.test)[0]
                if held is not None:
                    loses, ratio = difference(before, after, held[place])
                    hurt_beside += loses
                    beside.append(ratio)
        certain, silos = certain + hurt, silos + len(bare)
        print(
            f"{name}: {len(bare)} silos, without the guard {statistics.fmean(bare):.4f} "
            f"(worst {min(bare):.3f}), with it {statistics.fmean(guarded):.4f} (worst {min(guarded):.3f}); "
            f"{taken} offers taken, {hurt} silos lose for certain"
        )
        print(f"figure guard_{name}_without {statistics.fmean(bare):.4f}")
        print(f"figure guard_{name}_with {statistics.fmean(guarded):.4f}")
        print(f"figure guard_{name}_worst_without {min(bare):.3f}")
        print(f"figure guard_{name}_worst_with {min(guarded):.3f}")
        print(f"figure guard_{name}_lose_for_certain {hurt / len(bare):.3f}", flush=True)
        if beside:
            print(
                f"{name}, judged on the collection that silos train on: {statistics.fmean(beside):.4f} "
                f"(worst {min(beside):.3f}), {hurt_beside} of {len(beside)} silos lose for certain"
            )
            print(f"figure guard_{name}_alike_with {statistics.fmean(beside):.4f}")
            print(f"figure guard_{name}_alike_worst_with {min(beside):.3f}")
            print(f"figure guard_{name}_alike_lose_for_certain {hurt_beside / len(beside):.3f}", flush=True)
    print(f"figure guard_lose_for_certain {certain / silos:.4f}")


if __name__ == "__main__":
    error_rates(sys.argv[2:]) if sys.argv[1:2] == ["error_rates"] else main(sys.argv[1:])
