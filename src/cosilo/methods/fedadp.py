"""FedAdp: FedAvg in which a model weighs more, the more its update points where all updates together point.

H. Wu and P. Wang, "Fast-Convergent Federated Learning with Adaptive Weighting" (2021).

A silo's angle is that between its update and the mean update by size, averaged over the rounds in which it
took part; its weight is ∝ D_i·e^f, with f a falling function of the angle (`cosilo.aggregation.angles`). In a
federation with institutions the rule holds at both layers, as Tempo compares with it, or at one (`at`).

Deviations from the paper:

- Angles are taken between differences of weights, which are proportional to its sums of gradients; batch-norm
  statistics are part of them, counters are not.
- Inside an institution every local round counts as one, and it is the institution that remembers the angles.
"""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.angles import angle, shares, smoothed
from cosilo.aggregation.averaging import Weights, mean
from cosilo.coordination.coordinator import Silos
from cosilo.methods.fedavg import FedAvg
from cosilo.protocol.message import State
from cosilo.runs.journal import Replies


class FedAdp(FedAvg):
    """FedAvg in which a network weighs more, the more its update points where all updates together point.

    Parameters
    ----------
    alpha : float, default 5.0
        How steeply the weight falls with the angle.
    at : {"both", "server", "institutions"}, default "both"
        Where the rule holds; elsewhere it is the mean of FedAvg.
    average : {"mean"}, default "mean"
        It has a mean of its own.

    Examples
    --------
    >>> FedAdp(at="server").alpha
    5.0
    """

    name: ClassVar[str] = "fedadp"

    alpha: Annotated[float, Field(gt=0)] = 5.0
    at: Literal["both", "server", "institutions"] = "both"
    average: Literal["mean"] = "mean"

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """The replies are read three times, one in memory at a time: mean update, angles, weighted mean."""
        average = super().merged(silos, replies, state)
        here = "server" if silos.within is None else "institutions"
        if self.at not in ("both", here):
            return average
        angles: dict[str, float] = {}
        sizes = self.shares(replies)
        # By name: θ̃ and the number of rounds it is the mean of.
        known = state.group("angles") if "angles" in state else {}
        start = state.group("weights")
        for name, reply in replies.items():
            before, times = known.get(name, (0.0, 0))
            now = angle(reply.group("weights"), average, start)
            angles[name] = smoothed(float(before), int(times), now)
            known[name] = np.array([angles[name], times + 1])
        state["angles"] = known
        weighed = shares(sizes, angles, self.alpha)

        def models() -> Iterable[tuple[Weights, float]]:
            for name, reply in replies.items():
                yield reply.group("weights"), weighed[name]

        return mean(models())
