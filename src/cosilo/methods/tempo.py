"""Tempo: FedAvg in three layers, in which the server sets how many epochs each institution's clients do.

C. Ying, B. Li and B. Li, "Tempo: Improving Training Performance in Cross-Silo Federated Learning" (2022).

An institution does τ_i rounds of averaging with its clients (eqs. 3 to 5) before it replies, and the server
averages the institutions by size (eq. 6). The further an institution's model is from the new global one, the
fewer epochs its clients do in the next round (eq. 9): the most divergent gets c/2, the least divergent 2c.

Deviations from the paper, and what it leaves open:

- Where all differences are equal everyone gets c; a difference of 0 counts as the smallest positive one; an
  institution that did not answer keeps its epochs (`cosilo.aggregation.epoch_pacing`).
- The difference is one 2-norm over all parameters and batch-norm statistics.
- A silo without members takes part like an institution: it trains once in each round.
- A client that was lost is left out of its institution's mean, and of its size in that round.
- Local training, which everything is compared with, gets c epochs for each round.
"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from cosilo.aggregation.averaging import same_structure
from cosilo.aggregation.epoch_pacing import epochs
from cosilo.aggregation.similarity import distance
from cosilo.coordination.coordinator import Silos
from cosilo.methods.fedavg import Averaging
from cosilo.protocol.findings import Findings
from cosilo.protocol.message import Message, State
from cosilo.runs.journal import Replies


class PaceOfRound(BaseModel):
    """Each institution's epochs in a round, and how far its model was from the new global one."""

    round: int
    epochs: dict[str, int]
    differences: dict[str, float]


class Pace(Findings):
    """What Tempo's part of the report reads."""

    pace: list[PaceOfRound] = Field(default_factory=list)


class Tempo(Averaging):
    """FedAvg in three layers, in which the server sets how many epochs each institution's members do.

    Parameters
    ----------
    first_epochs : int, default 6
        c: the epochs of everyone in the first round.
    local_rounds : int, default 4
        τ_i: rounds of an institution with its members in each of these; a silo without members trains once.

    Examples
    --------
    >>> Tempo().first_epochs, Tempo().local_rounds
    (6, 4)
    """

    name: ClassVar[str] = "tempo"

    first_epochs: Annotated[int, Field(ge=1)] = 6
    local_rounds: Annotated[int, Field(ge=1)] = 4

    @property
    def usual_epochs(self) -> int:
        """c."""
        return self.first_epochs

    @property
    def most_epochs(self) -> int:
        """2c (eq. 9)."""
        return 2 * self.first_epochs

    def train_all(self, silos: Silos, state: State) -> Replies:
        """Everyone gets the weights and its own number of epochs (steps 1 and 2)."""
        pace = self._pace(silos, state)

        def message(name: str) -> Message:
            return {"weights": state["weights"], "round": state["round"], "epochs": pace[name]}

        fits, chosen = same_structure(state.group("weights")), self.chosen(silos, state)
        return silos.ask("train", each=message, to=chosen, valid=fits, gather=self.gathering())

    def review(self, silos: Silos, replies: Replies, state: State) -> None:
        """Set the epochs of the next round by eq. 9 (step 5)."""
        before = self._pace(silos, state)
        new = state.group("weights")
        differences = {name: distance(reply.group("weights"), new) for name, reply in replies.items()}
        silos.found(Pace).pace.append(
            PaceOfRound(round=state.integer("round"), epochs=before, differences=differences)
        )
        after = epochs(differences, self.first_epochs, before)
        state["pace"] = {name: np.array(count) for name, count in after.items()}

    def _pace(self, silos: Silos, state: State) -> dict[str, int]:
        """How many epochs each institution's clients do now."""
        known = state.group("pace") if "pace" in state else {}
        return {name: int(known.get(name, self.first_epochs)) for name in silos.names}
