"""Local: every silo trains alone. No exchange; the denominator of every comparison."""

from typing import ClassVar

from cosilo.coordination.coordinator import Silos
from cosilo.methods.base import Method
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

    @step()
    def train(self, silo: Silo) -> None:
        """Local training."""
        silo.fit(LOCAL)
