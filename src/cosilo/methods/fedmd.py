"""FedMD: silos with networks of any architecture learn from the mean of their scores on public instances.

D. Li and J. Wang, "FedMD: Heterogenous Federated Learning via Model Distillation" (2019).

Every silo first trains its own network on a public labelled set (the pool), then on its own data: transfer
learning, whose score is that after "round 0". Then, round after round, all score the same part of the pool,
the coordinator takes the mean of the scores (the outputs before softmax), and each silo trains towards that
mean ("digest") and again on its own data ("revisit"). A network has an output for each class of the
vocabulary and of the pool; a public class with the name of a silo's class is that class. A silo is judged on
its own classes.

Numbers are those of the authors' code. Training on the pool has an optimiser of its own; private training,
digest and revisit are as the silo's own training settings say, but for epochs and batches.

Deviations from the paper:

- Early stopping looks at the loss on a tenth of the pool, then on the silo's own validation data, and goes
  back to the best weights; the authors' code looks at accuracy on private test data, and does not go back.
- The mean is that of the silos that answered in this round.
- The part of the pool is stratified, as in the authors' code; the paper says "random".
- Every training starts with a new optimiser: moments are not carried over the rounds.
- What the last layer looks like (the authors' has no bias, and an L2 penalty) is up to each silo's network.
- Local training, which everything is compared with, gets as many epochs on private data as FedMD has at
  most, private_epochs + rounds × revisit_epochs, by the silo's own training.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import Weights, mean
from cosilo.coordination.asking import Check
from cosilo.coordination.coordinator import Silos
from cosilo.data.instances import Instances, is_bytes, take
from cosilo.data.labels import in_order
from cosilo.data.stratified import hold_out, stratified
from cosilo.errors import BadMessage, DataError
from cosilo.methods.base import Method
from cosilo.methods.effort import Effort, hidden_share, plain_silos
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import step
from cosilo.protocol.task import Task
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    from torch import Tensor

Count = Annotated[int, Field(ge=1)]
#: The share of the pool that early stopping looks at.
_HELD = 0.1


class FedMD(Method):
    """Federated distillation over a labelled pool: networks of any architecture, of which only scores travel.

    Parameters
    ----------
    rounds : int, default 20
        How often silos score the pool and learn from the mean of their scores.
    subset : int, default 5000
        How many pool instances are scored in a round, drawn anew each time; all if there are fewer.
    public_epochs : int, default 20
        Training on the pool, before the first round: at most this many epochs of Adam.
    public_batch : int, default 128
        Pool instances in a batch of these.
    public_lr : float, default 1e-3
        The learning rate of these.
    public_patience : int or None, default 3
        They end after this many epochs without a smaller loss on the tenth held out; None: they never do.
    private_epochs : int, default 25
        Training on private data, before the first round: at most this many epochs.
    private_batch : int, default 32
        Instances in a batch of these.
    private_patience : int or None, default 10
        They end after this many epochs without a smaller loss on validation data; None: they never do.
    digest_epochs : int, default 1
        Epochs towards the mean of the scores, in each round.
    digest_batch : int, default 256
        Pool instances in a batch of these.
    revisit_epochs : int, default 4
        Epochs on private data, in each round.
    revisit_batch : int, default 5
        Instances in a batch of these.
    evaluate_every : int, default 1
        Models are judged once in this many rounds, and after the last one.

    Examples
    --------
    >>> FedMD(rounds=5).needs()
    {'logits': "step 'score', field 'logits'"}
    """

    name: ClassVar[str] = "fedmd"
    needs_pool: ClassVar[bool] = True
    needs_pool_labels: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True

    rounds: Count = 20
    subset: Count = 5000
    public_epochs: Count = 20
    public_batch: Count = 128
    public_lr: Annotated[float, Field(gt=0)] = 1e-3
    public_patience: Count | None = 3
    private_epochs: Count = 25
    private_batch: Count = 32
    private_patience: Count | None = 10
    digest_epochs: Count = 1
    digest_batch: Count = 256
    revisit_epochs: Count = 4
    revisit_batch: Count = 5
    evaluate_every: Count = 1

    def coordinate(self, silos: Silos) -> None:
        """Algorithm 1."""
        state = silos.marked
        if state is None:
            alone = silos.ask("alone")  # the denominator of every comparison
            silos.evaluate(LOCAL, to=alone)
            ready = silos.ask(  # transfer learning
                "pretrain", each=lambda name: {"classes": silos.vocabulary_for(name, *silos.pool_classes)}
            )
            silos.evaluate(Stage.after_round(0), to=ready)
            # Nobody can join later: whoever has not pretrained has no outputs to compare.
            state = State({"round": 0, "silos": list(ready)})
            silos.mark(**state)
        names, done = state.names("silos"), state.integer("round")
        valid = _shaped(min(self.subset, silos.pool_size), len(self._outputs(silos)))
        for number in silos.rounds(done, self.rounds):
            draw = int(silos.rng.integers(2**32))
            scores = silos.ask("score", {"draw": draw}, to=names, valid=valid)  # communicate
            consensus = _mean(scores)  # aggregate
            silos.ask("digest", {"draw": draw, "targets": consensus}, to=names)  # distribute, digest
            silos.ask("revisit", to=names)
            if silos.last_round or number % self.evaluate_every == 0:
                stage = FEDERATED if silos.last_round else Stage.after_round(number)
                judged = silos.ask("judge", {"stage": str(stage)}, to=names)
                silos.evaluate(stage, to=judged)
            silos.mark(round=number, silos=names)

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """No model leaves a silo. Passes over the pool count like those over private data."""
        private = self.private_epochs + self.rounds * self.revisit_epochs
        public = self.public_epochs * pool + self.rounds * self.digest_epochs * min(self.subset, pool)
        sizes = [silo.size for silo in plain_silos(participants)]
        epochs = private + public / fmean(sizes)
        return Effort(None, epochs, self.evaluate_every, hidden_share(participants))

    @staticmethod
    def _outputs(silos: Silos) -> list[str]:
        return list(in_order([*silos.vocabulary.classes, *silos.pool_classes]))

    # ------------------------------------------------------------------ at the silo

    @step(timed=False)
    def alone(self, silo: Silo) -> None:
        """Local training by the silo's own training, for as many epochs as FedMD has on private data."""
        silo.fit(LOCAL, epochs=self.private_epochs + self.rounds * self.revisit_epochs)

    @step()
    def pretrain(self, silo: Silo, classes: list[str]) -> None:
        """Transfer learning: first the pool, then the silo's own data."""
        silo.network.widen(classes)
        pool, labels = silo.labelled_pool()
        codes = Task(tuple(classes)).encode(labels, f"silo {silo.name!r}, pool")
        patience, held, kept = self.public_patience, np.empty(0, np.int64), np.arange(len(codes))
        if patience is not None:
            held, kept = hold_out(codes, _HELD, seed=0)  # none of a pool with few instances of each class
        silo.network.train(
            (take(pool, kept), codes[kept]),
            (take(pool, held), codes[held]),
            optimiser="adam",
            lr=self.public_lr,
            schedule="constant",
            weight_decay=0.0,
            balanced=False,
            epochs=self.public_epochs,
            batch=self.public_batch,
            patience=patience if len(held) else None,
        )
        silo.network.train(
            epochs=self.private_epochs, batch=self.private_batch, patience=self.private_patience
        )
        silo.take_score(Stage.after_round(0))

    @step(
        after="pretrain",
        logits=Shared("logits", "its network's scores for each instance drawn from the pool, by class"),
    )
    def score(self, silo: Silo, draw: int) -> Message:
        """What the network says about this round's part of the pool."""
        return {"logits": silo.network.logits(self._part(silo, draw))}

    @step(after="score")
    def digest(self, silo: Silo, draw: int, targets: NDArray[Any]) -> None:
        """Approach the consensus on the same part."""
        part = self._part(silo, draw)
        wanted = len(part), silo.network.outputs
        if targets.shape != wanted:
            raise DataError(
                f"silo {silo.name!r}: got targets of shape {targets.shape}; wants {wanted}: "
                "a row for each instance, a column for each output"
            )
        if not np.isfinite(targets).all():
            raise DataError(f"silo {silo.name!r}: got targets that are not finite numbers")
        silo.network.train(
            (part, targets), epochs=self.digest_epochs, batch=self.digest_batch, loss=mean_absolute_error
        )

    @step(after="pretrain")
    def revisit(self, silo: Silo) -> None:
        """Go on with private data."""
        silo.network.train(epochs=self.revisit_epochs, batch=self.revisit_batch)

    @step(timed=False)
    def judge(self, silo: Silo, stage: str) -> None:
        """Take the score of the model as it is."""
        silo.take_score(Stage.parse(stage))

    def _part(self, silo: Silo, draw: int) -> Instances:
        """The same instances at every silo: their pools and labels are the same, and so is the draw."""
        pool, labels = silo.labelled_pool()
        return take(pool, stratified(labels, self.subset, draw))

    # ------------------------------------------------------------------ before anything is computed

    def prepare(self, silo: Silo) -> None:
        """Public and private instances go through one network, and early stopping needs validation data."""
        super().prepare(silo)
        if silo.pool is not None and is_bytes(silo.pool) != silo.takes_bytes:
            one, other = ("bytes", "other numbers")[:: 1 if is_bytes(silo.pool) else -1]
            raise DataError(
                f"silo {silo.name!r}: its pool is {one}, its data {other}; networks scale bytes (uint8) and "
                "nothing else: bring both to the same scale and type"
            )
        if self.private_patience is not None:
            silo.need_validation()


def mean_absolute_error(outputs: "Tensor", targets: "Tensor", weight: "Tensor | None" = None) -> "Tensor":
    """Of the mean of |z − target| over instances and outputs: its sign, divided by their number."""
    error = outputs - targets
    # To torch the sign of NaN is 0, which would hide a network that went astray.
    return error.sign().add_(error, alpha=0).div_(outputs.numel())


def _shaped(instances: int, outputs: int) -> Check:
    """A check for replies with a field `logits`."""
    wanted = f"float32{[instances, outputs]}"

    def check(silo: str, reply: Fields) -> None:
        logits = reply.array("logits")
        form = f"{logits.dtype}{list(logits.shape)}"
        if form != wanted:
            raise BadMessage(f"field 'logits' is {form}; wants {wanted}")

    return check


def _mean(replies: Replies) -> NDArray[np.float32]:
    """The consensus of Algorithm 1: one reply in memory at a time."""

    def scores() -> Iterable[tuple[Weights, float]]:
        for reply in replies.values():  # from disk
            yield {"logits": reply.array("logits")}, 1.0

    return mean(scores())["logits"]
