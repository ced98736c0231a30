"""Local: every silo trains alone. No exchange; the denominator of every comparison."""

from typing import TYPE_CHECKING, ClassVar

from cosilo.methods.base import Method, step

if TYPE_CHECKING:
    from cosilo.coordination.coordinator import Silos
    from cosilo.silo.silo import Silo


class Local(Method):
    """Each silo fits its own learner on its own data.

    >>> Local().needs()
    {}
    """

    name: ClassVar[str] = "local"
    knows_institutions: ClassVar[bool] = True

    def coordinate(self, silos: "Silos") -> None:
        """Train, and collect the scores."""
        trained = silos.ask("train")
        silos.evaluate("local", to=trained)

    @step()
    def train(self, silo: "Silo") -> None:
        """Local training."""
        silo.fit("local")
