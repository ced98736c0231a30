"""How much an attacker found out: a lower bound on ε, to hold against the one that is claimed.

Somebody trains many voters with one record, the canary, and as many without it, and gives each a score by
which the two can be told apart. Differential privacy bounds how well: the true positives are at most e^ε
times the false positives, and δ. So what an attacker achieved is evidence that ε cannot be smaller than this.
"""

import math

import numpy as np
from numpy.typing import NDArray


def empirical_epsilon(
    present: NDArray[np.float64], absent: NDArray[np.float64], delta: float, confidence: float = 0.95
) -> float:
    """The largest ε that the scores of voters with and without the canary speak against, with confidence.

    The threshold is chosen on one half of the scores and judged on the other: so it may be chosen freely.

    >>> told_apart = empirical_epsilon(np.ones(200), np.zeros(200), 1e-5)
    >>> 3 < told_apart < 4
    True
    >>> empirical_epsilon(np.ones(200), np.ones(200), 1e-5)
    0.0
    """
    best, chosen = -1.0, (0.0, True)
    for threshold in np.unique(np.concatenate([present[::2], absent[::2]])):
        for above in (True, False):
            found = _bound(present[::2], absent[::2], float(threshold), above, delta, confidence)
            if found > best:
                best, chosen = found, (float(threshold), above)
    return max(0.0, _bound(present[1::2], absent[1::2], *chosen, delta, confidence))


def _bound(
    present: NDArray[np.float64],
    absent: NDArray[np.float64],
    threshold: float,
    above: bool,
    delta: float,
    confidence: float,
) -> float:
    """ln((true positives − δ) / false positives), both as bad for the attacker as chance allows.

    An attacker who says "present" at or above the threshold, or "absent" below it.
    """
    one, other = (
        (present >= threshold, absent >= threshold) if above else (absent < threshold, present < threshold)
    )
    right, wrong = (
        _least(int(one.sum()), len(one), confidence),
        _most(int(other.sum()), len(other), confidence),
    )
    return math.log((right - delta) / wrong) if right > delta else 0.0


def _least(count: int, of: int, confidence: float) -> float:
    """Clopper and Pearson's lower bound on a probability; both bounds together hold with the confidence."""
    from scipy.stats import beta

    return 0.0 if count == 0 else float(beta.ppf((1 - confidence) / 2, count, of - count + 1))


def _most(count: int, of: int, confidence: float) -> float:
    return 1 - _least(of - count, of, confidence)
