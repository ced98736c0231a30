"""Whether the guard keeps silos from harm, and what that costs in the mean (needs COSILO_DATA).

Every silo is updated by CoFED() as it comes; what it was offered is what it would use without the guard. A
silo loses for certain if it is behind by more than two standard errors of the difference on its test set.
"""

import math
import statistics

import numpy as np

from cosilo import CoFED, Silo
from cosilo.protocol.stage import Measure
from tools.elections import polled, relative

#: The guard was chosen on seeds below 100 of digits and DBpedia; "few images" played no part in that.
CASES = {
    "digits": ("quick digits", False, range(100, 108)),
    "dbpedia": ("dbpedia", False, range(100, 104)),
    "few_images": ("few images", False, range(4)),
    # Its test images are of another collection than what silos train on, which their own data cannot tell.
    "shifted_images": ("shifted images", False, range(8)),
    "nonsense_digits": ("quick digits", True, range(100, 108)),
    "nonsense_images": ("shifted images", True, range(4)),
    "nonsense_dbpedia": ("dbpedia", True, range(100, 103)),
}
METHOD = CoFED(control=False)


def harmed(before: Silo, after: Silo) -> bool:
    """Whether the model in use is behind by more than two standard errors, paired."""
    assert before.data.test is not None
    X, y = before.data.test
    one, other = before.learner.predict(X) == y, after.learner.predict(X) == y
    gained, lost = int(np.sum(other & ~one)), int(np.sum(one & ~other))
    return gained - lost < -2 * math.sqrt(gained + lost)


def main() -> None:
    certain = silos = 0
    for name, (recipe, nonsense, seeds) in CASES.items():
        bare, guarded, taken = [], [], 0
        hurt = 0
        for seed in seeds:
            one = polled(recipe, seed, nonsense)
            for before, after in zip(one.silos, one.learn(METHOD), strict=True):
                bare.append(relative(after, Measure.OFFERED))
                guarded.append(relative(after))
                taken += after.decision is not None and after.decision.accepted
                hurt += harmed(before, after)
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
    print(f"figure guard_lose_for_certain {certain / silos:.4f}")


if __name__ == "__main__":
    main()
