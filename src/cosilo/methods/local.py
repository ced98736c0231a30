"""Local: every silo trains alone. No exchange; the denominator of every comparison."""

from collections.abc import Sequence
from typing import ClassVar

from cosilo.coordination.coordinator import Silos
from cosilo.methods.base import Method
from cosilo.methods.effort import Effort, epochs_of, hidden_share
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import LOCAL
from cosilo.protocol.step import step
from cosilo.silo.silo import Silo


class Local(Method):
    """Each silo trains its own learner on its own data; what every other method is compared with.

    Examples
    --------
    >>> Local().needs()
    {}
    """

    name: ClassVar[str] = "local"

    def coordinate(self, silos: Silos) -> None:
        """Train, and collect the scores."""
        trained = silos.ask("train")
        silos.evaluate(LOCAL, to=trained)

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """As its owner set it."""
        return Effort(epochs=epochs_of(participants), held_out=hidden_share(participants))

    @step()
    def train(self, silo: Silo) -> None:
        """Local training."""
        silo.fit(LOCAL)
