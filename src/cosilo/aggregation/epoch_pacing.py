"""How many epochs each institution's clients do next: the further it is from the global model, the fewer.

C. Ying, B. Li and B. Li, "Tempo: Improving Training Performance in Cross-Silo Federated Learning" (2022).
"""

import math
from collections.abc import Mapping

from cosilo.errors import ConfigError


def epochs(differences: Mapping[str, float], first: int, before: Mapping[str, int]) -> dict[str, int]:
    """τ(t+1) of every institution, from the difference ω of its model to the global one (eq. 9).

    `first` is c, the epochs of the first iteration: the most divergent institution gets c/2, the least 2c,
    the others lie between on the scale of ln ω. `before` are the epochs so far: an institution without a
    difference (it did not answer) keeps its own. All equal: c for all. A difference of 0 counts as the
    smallest positive one.

    >>> epochs({"a": 1.0, "b": 10.0, "c": 100.0}, first=6, before={"a": 6, "b": 6, "c": 6})
    {'a': 12, 'b': 8, 'c': 3}
    """
    if first < 1:
        raise ConfigError(f"the epochs of the first iteration are {first}; wants at least 1")
    bad = [name for name, value in differences.items() if not (math.isfinite(value) and value >= 0)]
    if bad:
        raise ConfigError(f"{bad[0]!r} differs by {differences[bad[0]]}; wants a finite number of at least 0")
    positive = [value for value in differences.values() if value > 0]
    found = dict(before)
    if not positive:
        return found | dict.fromkeys(differences, first)
    logs = {name: math.log(value or min(positive)) for name, value in differences.items()}
    low, high = min(logs.values()), max(logs.values())
    for name, log in logs.items():
        if high - low < 1e-12:
            found[name] = first
            continue
        tuned = first / 2 * (3 * log + low - 4 * high) / (low - high)
        found[name] = max(1, math.ceil(tuned - 1e-9))  # rounding must not push an end point over
    return found
