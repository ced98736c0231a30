"""FedAvg: silos train copies of one network, the coordinator averages them, round after round.

H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data" (2017).

The network is that of the silos' own learners, with one output for each class of the vocabulary; a silo is
judged on its own classes. Names and shapes have to be equal: training recipes are the silos' own.

Deviations from the paper:

- No size counts for more than ten times the median size: sizes are what silos say.
- The first silo draws the initial weights: the coordinator knows no architecture, only named arrays.
- Batch-norm statistics are averaged with the parameters.
- Local training, which everything is compared with, gets as many epochs as a silo has in the rounds, in the
  mean.
- Each silo's optimiser is its training's and starts afresh every round; `decay` shrinks its learning rate.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import RunningMean, Weights
from cosilo.aggregation.robust import average, bounded
from cosilo.coordination.coordinator import Silos
from cosilo.errors import Refused
from cosilo.methods.rounds import Rounds, averaged
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.stage import Stage
from cosilo.protocol.step import step
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    from cosilo.learners.trainee import Correction


class Averaging(Rounds):
    """Train by the training, take the mean; a subclass says for how many epochs.

    Parameters
    ----------
    weighting : {"size", "equal"}, default "size"
        What a silo's network weighs in the mean: its number of training instances, or the same. Sizes are
        what silos say: none counts for more than ten times the median of them.
    """

    #: Whether silos keep what they trained: if not, the next step has to bring weights.
    keeps_models: ClassVar[bool] = False

    weighting: Literal["size", "equal"] = "size"

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """Σ n_k w_k / Σ n_k, or the plain mean."""
        shares, came = self.shares(replies), replies.gathered
        if isinstance(came, Came) and came.models is not None and shares == came.shares:
            return came.models.mean()  # as it is, unless somebody weighs less than it says

        def models() -> Iterable[tuple[Weights, float]]:
            for name, reply in replies.items():  # from disk, one at a time
                yield reply.group("weights"), shares[name]

        return average(self.average, models, state.group("weights"))

    def shares(self, replies: Replies) -> dict[str, float]:
        """n_k, as far as a silo is believed, or the same for all."""
        if self.weighting == "equal":
            return dict.fromkeys(replies, 1.0)
        if isinstance(replies.gathered, Came):
            return bounded(replies.gathered.shares)
        return bounded({name: reply.number("size") for name, reply in replies.items()})

    def gathering(self) -> "Came":
        """Sizes, and the sum of the models where that is all that is needed of them."""
        return Came(self.weighting, RunningMean() if self.average == "mean" else None)

    # ------------------------------------------------------------------ at the silo

    @step(
        weights=Shared("weights", "weights of its network after training in the round", merge=averaged),
        size=Shared(
            "size", "how many training instances it has: the weight of its network in the mean", merge=sum
        ),
        after="begin",
    )
    def train(self, silo: Silo, weights: Weights, round: int, epochs: int | None = None) -> Message:
        """ClientUpdate: some epochs from the global weights."""
        silo.network.set_weights(weights, keep=self.keeps_models)
        silo.network.train(
            epochs=self.epochs_of(silo, epochs),
            lr=silo.network.training.lr * self.rate(round),
            correction=self.correction(),
            keep=self.keeps_models,
        )
        return {"weights": silo.network.weights(), "size": silo.size}

    def epochs_of(self, silo: Silo, wanted: int | None) -> int:
        """How many epochs a silo does in a round, if the server wants no more than the method could."""
        epochs = self.usual_epochs if wanted is None else wanted
        if not 1 <= epochs <= self.most_epochs:
            raise Refused(f"silo {silo.name!r}: got epochs = {epochs}; wants 1 to {self.most_epochs}")
        return epochs

    @property
    def most_epochs(self) -> int:
        """The most that the server may ask for in a round."""
        return self.usual_epochs

    def correction(self) -> "Correction | None":
        """What is added to the gradients of a training: nothing."""
        return None

    @step(timed=False, after="begin")
    def judge(self, silo: Silo, weights: Weights, stage: str) -> None:
        """Take the global model and its scores: on the silo's own classes, and among all."""
        silo.network.set_weights(weights)
        silo.take_score(Stage.parse(stage))
        silo.take_joint_score(Stage.parse(stage))


class Came:
    """What is known of the models of a round as they come; `models`: their mean, if that is wanted."""

    def __init__(self, weighting: Literal["size", "equal"], models: RunningMean | None) -> None:
        self._weighting, self.models = weighting, models
        #: What each of them weighs, by its own account.
        self.shares: dict[str, float] = {}

    def __call__(self, silo: str, reply: Fields) -> None:
        """Take in a reply."""
        share = self.shares[silo] = reply.number("size") if self._weighting == "size" else 1.0
        if self.models is not None:
            self.models.add(reply.group("weights"), share)


class FedAvg(Averaging):
    """Federated averaging: silos train copies of one network, the coordinator takes their mean.

    Parameters
    ----------
    epochs : int, default 1
        Epochs of each silo in a round.

    Examples
    --------
    >>> FedAvg(rounds=5, fraction=0.5).needs()["weights"]
    "step 'train', field 'weights'"
    """

    name: ClassVar[str] = "fedavg"

    epochs: Annotated[int, Field(ge=1)] = 1

    @property
    def usual_epochs(self) -> int:
        """The same in every round."""
        return self.epochs
