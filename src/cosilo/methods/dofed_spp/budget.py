"""How much time DoFed-SPP has, and what takes how much of it."""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from cosilo.errors import ConfigError
from cosilo.methods.dofed_spp.model_selection import SLACK, Costs
from cosilo.simulated_time.clock import Link

Seconds = Annotated[float, Field(ge=0)]


class Budget(BaseModel):
    """How much time there is, and what takes how much of it: the terms of eqs. 23 to 26, in seconds.

    K and B are chosen by what a round takes on average. What is spent are the seconds below and those of the
    uploads that there were, at the rates that were drawn, from the warm-up on. What computing takes is what
    is said here, so that a run does not depend on the machine; `[clock] budget` ends a run by measured time.

    >>> Budget(total=10, uplink={"rate": 1e6, "latency": 0.1}, labelling=0.2).costs(500_000).seconds(K=3, B=2)
    2.0
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: T: for all rounds together, and what comes before them.
    total: Annotated[float, Field(gt=0)]
    #: What the models are uploaded over; it is shared by the K uploaders, unless each has its own.
    uplink: Link
    #: The warm-up and the first ratios.
    warm_up: Seconds = 0.0
    #: I·C_tra·D/f and C_SR/f in a round, C_pse/f for each model that labels.
    training: Seconds = 0.0
    ratios: Seconds = 0.0
    labelling: Seconds = 0.0

    def costs(self, model: int) -> Costs:
        """What a round takes with models of this many bytes."""
        link, each = self.uplink, self.uplink.expected(model)
        if not link.shared and isinstance(link.rate, tuple):
            each = model / link.rate[0]  # all wait for the slowest
        return Costs(
            training=self.training,
            similarity=self.ratios,
            labelling=self.labelling,
            upload=each if link.shared else 0.0,
            once=link.latency + (0.0 if link.shared else each),
        )

    def fits(self, model: int, spent: float) -> bool:
        """Whether there is time for one more round, with one upload and one labeller at least."""
        return spent + self.costs(model).seconds(1, 1) <= self.total * (1 + SLACK)

    def cold_start(self, model: int, silos: int, rng: np.random.Generator) -> float:
        """The seconds of phase 0, in which all silos upload; an error if they leave no time for a round."""
        spent = self.warm_up + self.uplink.seconds([float(model)] * silos, rng)
        if not self.fits(model, spent):
            least = spent + self.costs(model).seconds(1, 1)
            raise ConfigError(
                f"method.budget.total: got {self.total:.4g} s; the warm-up and {silos} uploads before the "
                f"first round take {spent:.4g} s; wants at least {least:.4g} s, for one round"
            )
        return spent

    def round_seconds(self, labellers: int, uploads: list[int], rng: np.random.Generator) -> float:
        """What a round took in which models of these sizes were uploaded."""
        computing = self.training + self.ratios + labellers * self.labelling
        return computing + self.uplink.seconds([float(size) for size in uploads], rng)
