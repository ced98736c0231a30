"""A limit of simulated time, which ends a run of any method between two rounds."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class TimeLimit:
    """How much simulated time a run may take.

    Parameters
    ----------
    seconds
        For the whole run, what comes before the first round included.
    elapsed
        The simulated seconds until an ask was completed, by its number.

    Examples
    --------
    >>> limit = TimeLimit(10.0, elapsed=lambda ask: 2.0 * ask)
    >>> limit.allows_another(began=1, now=3), limit.allows_another(began=2, now=4)
    (True, False)
    """

    seconds: float
    elapsed: Callable[[int], float]

    def allows_another(self, began: int, now: int) -> bool:
        """Whether a round fits in that takes as long as the present one, which began after that ask."""
        spent = self.elapsed(now)
        return spent + (spent - self.elapsed(began)) <= self.seconds
