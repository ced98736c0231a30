"""FedAvg: silos train copies of one network, the coordinator averages them, round after round.

H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data" (2017).

The network is that of the silos' own learners, with one output for each class of the vocabulary; a silo is
judged on its own classes. Names and shapes have to be equal: training recipes are the silos' own.

Deviations from the paper:

- The first silo draws the initial weights: the coordinator knows no architecture, only named arrays.
- Batch-norm statistics are averaged with the parameters.
- Local training, which everything is compared with, gets as many epochs as the rounds have together.
- Each silo's optimiser is its recipe's and starts afresh every round; `decay` shrinks its learning rate.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from cosilo.averaging import Weights, like, mean
from cosilo.message import Message
from cosilo.methods.base import Method, step

if TYPE_CHECKING:
    from cosilo.coordinator import Silos
    from cosilo.runs.journal import Replies
    from cosilo.silo import Silo


class FedAvg(Method):
    """Federated averaging.

    >>> FedAvg(rounds=5, fraction=0.5).needs()["weights"]
    "step 'train', field 'weights'"
    """

    name: ClassVar[str] = "fedavg"
    needs_network: ClassVar[bool] = True

    rounds: Annotated[int, Field(ge=1)] = 10
    #: Epochs of each silo in a round.
    epochs: Annotated[int, Field(ge=1)] = 1
    #: The share of the silos that takes part in a round, drawn anew each time; at least one does.
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: What a silo's model weighs in the average.
    weighting: Literal["size", "equal"] = "size"
    #: The learning rate of round t is that of the silo's recipe × decay^t.
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: The global model is judged after every so many rounds, and after the last.
    evaluate_every: Annotated[int, Field(ge=1)] = 1

    def coordinate(self, silos: "Silos") -> None:
        """Algorithm 1 of the paper, with a mark at the end of each round."""
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
            weights = self._merged(replies)
            if number == self.rounds or number % self.evaluate_every == 0:
                stage = self.last_stage if number == self.rounds else f"round {number}"
                judged = silos.ask("judge", {"weights": weights, "stage": stage})
                silos.evaluate(stage, to=judged)
            silos.mark(round=number, weights=weights)
        self.finish(silos, weights)

    #: What the stage after the last round is called.
    last_stage: ClassVar[str] = "federated"

    def finish(self, silos: "Silos", weights: Weights) -> None:
        """What happens after the last round: nothing, here."""

    def _chosen(self, silos: "Silos") -> list[str]:
        if self.fraction == 1.0:
            return silos.names
        count = max(1, round(self.fraction * len(silos.names)))
        return [str(name) for name in silos.rng.choice(silos.names, count, replace=False)]

    def _merged(self, replies: "Replies") -> dict[str, Any]:
        def models() -> Iterable[tuple[Weights, float]]:
            for reply in replies.values():  # from disk, one at a time
                weights: Any = reply["weights"]
                size: Any = reply["size"]
                yield weights, float(size) if self.weighting == "size" else 1.0

        return mean(models())

    # ------------------------------------------------------------------ at the silo

    @step()
    def alone(self, silo: "Silo") -> None:
        """Local training by the silo's own recipe, for as many epochs as the federation has: equal work."""
        silo.fit("local", epochs=self.rounds * self.epochs)

    @step()
    def begin(self, silo: "Silo", vocabulary: list[str]) -> None:
        """From now on the network has an output for each class of the vocabulary."""
        silo.widen(vocabulary)

    @step(weights="weights")
    def initial(self, silo: "Silo") -> Message:
        """The weights that everyone starts from."""
        return {"weights": silo.weights()}

    @step(weights="weights", size="size")
    def train(self, silo: "Silo", weights: Weights, round: int) -> Message:
        """ClientUpdate: some epochs from the global weights."""
        silo.set_weights(weights)
        silo.train_network(epochs=self.epochs, rate=self.decay ** (round - 1), pull=self.pull)
        return {"weights": silo.weights(), "size": silo.size}

    @property
    def pull(self) -> float:
        """How strongly training is held near the global weights: not at all."""
        return 0.0

    @step()
    def judge(self, silo: "Silo", weights: Weights, stage: str) -> None:
        """Take the global model and its score on the silo's own classes."""
        silo.set_weights(weights)
        silo.take_score(stage)
