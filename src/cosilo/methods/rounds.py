"""What methods have in common whose silos train copies of one network, round after round."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from cosilo.averaging import Weights, like
from cosilo.message import Message
from cosilo.methods.base import Method, step

if TYPE_CHECKING:
    from cosilo.coordinator import Silos
    from cosilo.runs.journal import Replies
    from cosilo.silo import Silo


class Rounds(Method):
    """Send the global weights, let silos train, merge what comes back; a mark at the end of each round.

    A subclass says how a silo trains (`train`) and how replies become the new weights (`merged`).
    """

    needs_network: ClassVar[bool] = True

    rounds: Annotated[int, Field(ge=1)] = 10
    #: Epochs of each silo in a round.
    epochs: Annotated[int, Field(ge=1)] = 1
    #: The share of the silos that takes part in a round, drawn anew each time; at least one does.
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: The learning rate of round t is that of the silo's recipe × decay^(t − 1).
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: Models are judged after every so many rounds, and after the last.
    evaluate_every: Annotated[int, Field(ge=1)] = 1

    def coordinate(self, silos: "Silos") -> None:
        """Algorithm 1 of FedAvg, and of FML."""
        state = silos.marked
        if state is None:
            alone = silos.ask("alone")  # the denominator of every comparison
            silos.evaluate("local", to=alone)
            silos.ask("begin", {"vocabulary": list(silos.vocabulary.classes)})
            first = silos.ask("initial", to=silos.names[:1], quorum=1.0)
            state = {"round": 0, "weights": first[silos.names[0]]["weights"]}
        weights: Any = state["weights"]
        done: Any = state["round"]
        for number in range(done + 1, self.rounds + 1):
            message: Message = {"weights": weights, "round": number}
            replies = silos.ask("train", message, to=self._chosen(silos), valid=like(weights))
            weights = self.merged(silos, replies)
            if number == self.rounds or number % self.evaluate_every == 0:
                stage = self.last_stage if number == self.rounds else f"round {number}"
                judged = silos.ask("judge", {"weights": weights, "stage": stage})
                silos.evaluate(stage, to=judged)
                if self.has_global_model:
                    silos.evaluate_jointly(stage, to=judged)
            silos.mark(round=number, weights=weights)
        self.finish(silos, weights)

    @property
    def last_stage(self) -> str:
        """What the stage after the last round is called."""
        return "federated"

    @property
    def has_global_model(self) -> bool:
        """Whether what is merged is a whole network, which can be judged on its own."""
        return True

    def finish(self, silos: "Silos", weights: Weights) -> None:
        """What happens after the last round: nothing, here."""

    def _chosen(self, silos: "Silos") -> list[str]:
        if self.fraction == 1.0:
            return silos.names
        count = max(1, round(self.fraction * len(silos.names)))
        return [str(name) for name in silos.rng.choice(silos.names, count, replace=False)]

    @abstractmethod
    def merged(self, silos: "Silos", replies: "Replies") -> dict[str, Any]:
        """The global weights after a round; the silos may be asked again for that."""

    # ------------------------------------------------------------------ at the silo

    @step()
    def alone(self, silo: "Silo") -> None:
        """Local training by the silo's own recipe, for as many epochs as the federation has: equal work."""
        silo.fit("local", epochs=self.rounds * self.epochs)

    @step()
    def begin(self, silo: "Silo", vocabulary: list[str]) -> None:
        """From now on the network has an output for each class of the vocabulary."""
        silo.network.widen(vocabulary)

    @step(weights="weights")
    def initial(self, silo: "Silo") -> Message:
        """The weights that everyone starts from."""
        return {"weights": silo.network.weights()}

    def rate(self, round: int) -> float:
        """What the learning rate is multiplied with in a round."""
        return float(self.decay ** (round - 1))
