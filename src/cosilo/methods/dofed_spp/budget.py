"""How much time DoFed-SPP has, and what fits into it."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cosilo.methods.dofed_spp.model_selection import Costs, feasible
from cosilo.simulated_time.clock import Link

Seconds = Annotated[float, Field(ge=0)]


class Budget(BaseModel):
    """How much time there is, and what takes how much of it: the terms of eqs. 23 to 26, in seconds.

    >>> budget = Budget(total=10, uplink={"rate": 1e6}, labelling=0.1)
    >>> budget.pairs(500_000, silos=3, rounds=10)[1]  # a second a round: one upload or two are 0.5 s each
    [(1, 1)]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: T: for all rounds together.
    total: Annotated[float, Field(gt=0)]
    #: What the models are uploaded over, one share for each of the K uploaders.
    uplink: Link
    #: I·C_tra·D/f and C_SR/f in a round, C_pse/f for each model that labels.
    training: Seconds = 0.0
    ratios: Seconds = 0.0
    labelling: Seconds = 0.0

    def pairs(self, model: int, silos: int, rounds: int) -> tuple[Costs, list[tuple[int, int]]]:
        """What a round costs with models of this many bytes, and the K and B that fit into it."""
        costs = Costs(
            training=self.training,
            similarity=self.ratios,
            labelling=self.labelling,
            upload=self.uplink.expected(model),
        )
        return costs, feasible(costs, self.total / rounds, silos, rounds=rounds)
