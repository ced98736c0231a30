"""FML: each silo has a network of its own and a copy of a shared one, and the two teach each other.

T. Shen et al., "Federated Mutual Learning" (2020).

A silo forks the global network (its "meme"), trains it and its own personalised network on its data, each
also towards what the other says (eq. 5), and sends the meme back; the coordinator takes the plain mean. The
personalised network may have any architecture and never leaves. With β = 1 this is FedAvg with equal weights.

`share = "body"`: silos whose tasks differ share a body only. Each puts a head of its own on it (the adaptor),
with an output for each class of its task, and keeps it between rounds.

Deviations from the paper:

- The first silo draws the initial weights: the coordinator knows no architecture, only named arrays.
- Batch-norm statistics are averaged with the parameters.
- The personalised network's optimiser goes on over the rounds; the meme's begins anew at each fork, because
  the weights that its momentum belongs to are gone. Both follow the silo's own training.
- The KL terms are averaged over the batch and not over classes, and are not multiplied by T².
- α and β may change over the rounds: § 6 recommends it without a formula; here the way between the numbers
  of a list is straight.
- The authors' code multiplies the learning rate by 0.1 after each third of the rounds; the paper does not say
  so. Here that is `decay = 0.1` and, for 200 rounds, `decay_after = [67, 133]`; unless set it stays as it is.
- The global network is judged on all silos' test data together, each silo sharing a number.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import Weights, structure
from cosilo.aggregation.robust import average
from cosilo.coordination.coordinator import Silos
from cosilo.errors import LearnerError
from cosilo.methods.rounds import STRUCTURE, Rounds, averaged
from cosilo.protocol.message import Message, Shared, State
from cosilo.protocol.stage import Stage
from cosilo.protocol.step import first, step
from cosilo.runs.journal import Replies
from cosilo.silo.network import NetworkView
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    from torch import Tensor

    from cosilo.learners.trainee import Loss

Share = Annotated[float, Field(ge=0, le=1)]
#: One number, or numbers to go through from the first round to the last.
Schedule = Share | Annotated[list[Share], Field(min_length=2)]


class FML(Rounds):
    """Federated mutual learning: a network of one's own beside a shared one, and the two teach each other.

    Parameters
    ----------
    epochs : int, default 1
        Epochs of each silo in a round.
    alpha : float or list of float, default 0.5
        What the labels weigh in the personalised network's loss; the rest is the word of the meme, the silo's
        copy of the shared network. A list is gone through from the first round to the last.
    beta : float or list of float, default 0.5
        What the labels weigh in the meme's loss; the rest is the personalised network's word.
    temperature : float, default 1.0
        What outputs are divided by before the two are compared.
    meme : str, default None
        The shared network's architecture: mlp, lenet5, cnn1, cnn2, cnn, resnet18 or text; None: that of the
        silos' own learners.
    share : {"whole", "body"}, default "whole"
        What is shared of it: all, or the body, so that tasks may differ.

    Examples
    --------
    >>> FML(alpha=[0.9, 0.5], rounds=3).now("alpha", round=2)
    0.7
    """

    name: ClassVar[str] = "fml"

    epochs: Annotated[int, Field(ge=1)] = 1
    alpha: Schedule = 0.5
    beta: Schedule = 0.5
    temperature: Annotated[float, Field(gt=0)] = 1.0
    meme: Literal["mlp", "lenet5", "cnn1", "cnn2", "cnn", "resnet18", "text"] | None = None
    share: Literal["whole", "body"] = "whole"

    def now(self, parameter: Literal["alpha", "beta"], round: int) -> float:
        """A schedule's value in a round."""
        value: Any = getattr(self, parameter)
        if isinstance(value, list):
            way = (round - 1) / max(1, self.rounds - 1)
            value = np.interp(way, np.linspace(0, 1, len(value)), value)
        return float(value)

    @property
    def usual_epochs(self) -> int:
        """The same in every round."""
        return self.epochs

    def opening(self, silos: Silos, name: str) -> Message:
        """A silo whose body alone is shared need not know how many classes others have."""
        return super().opening(silos, name) if self.share == "whole" else {}

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """The plain mean of the memes: how much data a silo has is not said."""

        def memes() -> Iterable[tuple[Weights, float]]:
            for reply in replies.values():  # from disk, one at a time
                yield reply.group("weights"), 1.0

        return average(self.average, memes, state.group("weights"))

    # ------------------------------------------------------------------ at the silo

    def prepare(self, silo: Silo) -> None:
        """The meme has to be buildable, and to have a head if only its body is shared."""
        super().prepare(silo)
        trial = silo.fresh()
        self._split(trial, trial.network.another(self.meme).weights())

    @step(structure=STRUCTURE)
    def begin(self, silo: Silo, vocabulary: list[str] | None = None) -> Message:
        """A new personalised network."""
        if vocabulary is None:
            silo.network.restart()
        else:
            silo.network.widen(vocabulary)
        return {"structure": structure(self._split(silo, silo.network.another(self.meme).weights())[0])}

    @step(
        weights=Shared(
            "weights",
            "untrained weights of the meme that everyone starts from; asked of one silo only",
            merge=first,
        )
    )
    def initial(self, silo: Silo) -> Message:
        """The weights that everyone's meme starts from."""
        return {"weights": self._split(silo, silo.network.another(self.meme).weights())[0]}

    @step(
        weights=Shared(
            "weights",
            "weights of its meme, or of its body alone, after training in the round",
            merge=averaged,
        )
    )
    def train(self, silo: Silo, weights: Weights, round: int) -> Message:
        """ClientUpdate: fork, some epochs of mutual learning, push."""
        meme = self._fork(silo, weights)
        before = silo.notes.group("optimiser") if "optimiser" in silo.notes else None
        silo.notes["optimiser"] = silo.network.train(
            epochs=self.epochs,
            lr=silo.network.training.lr * self.rate(round),
            loss=mutual(self.now("alpha", round), self.temperature),
            peers=[(meme, mutual(self.now("beta", round), self.temperature))],
            state=before,
        )
        shared, kept = self._split(silo, meme.weights())
        if kept:
            silo.notes["adaptor"] = kept
        return {"weights": shared}

    @step(timed=False)
    def judge(self, silo: Silo, weights: Weights, stage: str) -> None:
        """Take the personalised network's score, and the global one's; a body alone cannot be judged."""
        silo.take_score(Stage.parse(stage))
        if self.share == "whole":
            silo.take_joint_score(Stage.parse(stage), self._fork(silo, weights))

    def _fork(self, silo: Silo, weights: Weights) -> NetworkView:
        """The meme: the global weights, and the adaptor that the silo kept."""
        meme = silo.network.another(self.meme)
        _, fresh = self._split(silo, meme.weights())
        kept = silo.notes.group("adaptor") if "adaptor" in silo.notes else fresh
        meme.set_weights({**weights, **kept})
        return meme

    def _split(self, silo: Silo, weights: Weights) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is shared of the meme's weights, and what the silo keeps."""
        if self.share == "whole":
            return dict(weights), {}
        parts = {name.partition(".")[0] for name in weights}
        if parts != {"body", "head"}:
            raise LearnerError(
                f"silo {silo.name!r}: {self.meme or silo.learner.name} has the parts {sorted(parts)}; "
                'share = "body" wants a network with a body and a head, which becomes the adaptor: '
                "one of the zoo, or a module with these two attributes"
            )
        shared = {name: array for name, array in weights.items() if name.startswith("body.")}
        return shared, {name: array for name, array in weights.items() if name not in shared}


def mutual(share: float, temperature: float = 1.0) -> "Loss":
    """Eq. 5: share·CE + (1 − share)·KL(p_peer ‖ p), as its gradient at the outputs.

    The local network has α for its share and the meme for its peer, the meme has β and the local network.
    """
    from cosilo.learners.losses import cross_entropy

    def loss(outputs: "Tensor", codes: "Tensor", weight: "Tensor | None", peer: "Tensor") -> "Tensor":
        from_peer = divergence(outputs, peer, temperature)
        return share * cross_entropy(outputs, codes, weight) + (1 - share) * from_peer

    return loss


def divergence(outputs: "Tensor", peer: "Tensor", temperature: float = 1.0) -> "Tensor":
    """Of KL(p_peer ‖ p), both softened by a temperature T and the peer held still: (p − p_peer) / (T·n)."""
    own, theirs = (logits.div(temperature).softmax(1) for logits in (outputs, peer))
    return (own - theirs).div_(temperature * len(outputs))
