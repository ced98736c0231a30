"""FedBE: FedAvg whose global model learns from an ensemble: the silos' models, and models drawn around them.

H.-Y. Chen and W.-L. Chao, "FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning" (2021).

After local training a distribution is fitted to the silos' weights, and models are drawn from it. The
teachers are the mean of FedAvg, the models drawn and the silos' own; the mean of what they say about a public
pool, sharpened, is what the mean model is trained towards (Algorithm 1).

Deviations from the paper:

- The coordinator has no network, only arrays. Silos score the pool, each with its own model and its share of
  the models drawn, so that no silo sees another's; one silo trains the mean model towards the scores.
- Batch-norm statistics are averaged with the parameters, and not drawn; the mean over training (SWA) is of
  parameters.
- Each silo's optimiser is its training's and starts afresh every round. Local training gets as many epochs as
  the rounds have together.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import Weights, mean, same_structure
from cosilo.coordination.coordinator import Check, Silos
from cosilo.errors import BadMessage, RunError
from cosilo.methods.fedavg import FedAvg
from cosilo.methods.packing import pack, unpack
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.step import step
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    from torch import Tensor

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class FedBE(FedAvg):
    """Federated Bayesian ensembles: the mean of FedAvg learns from models drawn around the silos' models.

    Parameters
    ----------
    samples : int, default 10
        How many models are drawn in a round.
    draw : {"weights", "updates", "dirichlet"}, default "updates"
        From which distribution: a Gaussian fitted to the weights, or to normalised updates; or random
        mixtures of the silos' models.
    scale : float, default 0.1
        What the Gaussian's standard deviation is multiplied with.
    least_variance : float, default 1e-5
        The least variance that the Gaussian has.
    temperature : float, default 0.5
        Probabilities are raised to 1/temperature: below 1 makes them sharper.
    distil_epochs : int, default 20
        Epochs on the pool, towards the ensemble's scores.
    distil_batch : int, default 128
        Pool instances in a batch of these.
    distil_lr : float, default 1e-3
        The learning rate of these.
    average_from : int, default 500
        From which step on the student enters the mean that it ends as.
    average_every : int, default 25
        How often it does, in steps.

    Examples
    --------
    >>> sorted(FedBE().needs())
    ['logits', 'size', 'weights']
    """

    name: ClassVar[str] = "fedbe"
    needs_pool: ClassVar[bool] = True
    #: A silo's own model is asked about the pool.
    keeps_models: ClassVar[bool] = True

    samples: Annotated[int, Field(ge=0)] = 10
    draw: Literal["weights", "updates", "dirichlet"] = "updates"
    scale: Positive = 0.1
    least_variance: Positive = 1e-5
    temperature: Positive = 0.5
    distil_epochs: Count = 20
    distil_batch: Count = 128
    distil_lr: Positive = 1e-3
    average_from: Count = 500
    average_every: Count = 25

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """Teachers, their word on the pool, and the student's training."""
        average = super().merged(silos, replies, state)
        drawn = self._draws(replies, average, silos.rng)
        names = list(replies)
        hands: dict[str, dict[str, Weights]] = {name: {} for name in names}
        for place, model in enumerate([average, *drawn]):
            hands[names[place % len(names)]][f"drawn-{place}"] = model

        def message(name: str) -> Message:
            return {"models": pack(hands[name])} if hands[name] else {}

        outputs = len(silos.vocabulary)
        scored = silos.ask("score", each=message, to=names, valid=_probabilities(silos.pool_size, outputs))
        targets = sharpened(_mean_word(scored), self.temperature)
        for name in scored:  # the first that can
            student: Message = {"weights": average, "targets": targets}
            taught = silos.ask("distil", student, to=[name], valid=same_structure(average), quorum=0.0)
            for reply in taught.values():
                return reply.group("weights")
        raise RunError("step 'distil': no silo could train the global model")

    def _draws(self, replies: Replies, average: Weights, rng: np.random.Generator) -> list[Weights]:
        """Models around the silos' own."""
        if self.samples == 0:
            return []
        if self.draw == "dirichlet":
            shares = rng.dirichlet(np.ones(len(replies)), self.samples)
            return [
                mean(
                    (reply.group("weights"), share)
                    for reply, share in zip(replies.values(), row, strict=True)
                )
                for row in shares
            ]
        spread = deviations(
            (reply.group("weights") for reply in replies.values()), average, self.draw == "updates"
        )
        drawn: list[Weights] = []
        for _ in range(self.samples):
            model = {}
            for name, array in average.items():
                model[name] = array
                if name in spread:
                    deviation = np.sqrt(np.maximum(spread[name], self.least_variance))
                    noise = self.scale * deviation * rng.standard_normal(array.shape)
                    model[name] = np.asarray(array + noise).astype(array.dtype)
            drawn.append(model)
        return drawn

    # ------------------------------------------------------------------ at the silo

    @step(
        chances=Shared(
            "logits", "what its model and those it was sent say about each pool instance, added up by class"
        ),
        teachers=Shared("logits", "how many models that is the sum of"),
    )
    def score(self, silo: Silo, models: Weights | None = None) -> Message:
        """What the silo's own model and those it was given say about the pool, added up."""
        own, pool = silo.network.weights(), silo.need_pool()
        trial = silo.network.another()
        teachers = [own, *unpack(models or {}).values()]
        total: NDArray[Any] = np.zeros((len(pool), silo.network.outputs))
        for weights in teachers:
            trial.set_weights(weights)
            total += trial.probabilities(pool)
        return {"chances": total.astype(np.float32), "teachers": np.array(float(len(teachers)))}

    @step(
        weights=Shared(
            "weights", "weights of the mean model after it learnt from the pool, without private data"
        )
    )
    def distil(self, silo: Silo, weights: Weights, targets: NDArray[Any]) -> Message:
        """Train the mean model towards what the teachers say."""
        student = silo.network.another()
        student.set_weights(weights)
        average = RunningMean(self.average_from, self.average_every)
        student.train(
            (silo.need_pool(), targets),
            loss=soft_cross_entropy,
            after_step=average,
            optimiser="sgd",
            momentum=0.9,
            lr=self.distil_lr,
            weight_decay=0.0,
            schedule="constant",
            epochs=self.distil_epochs,
            batch=self.distil_batch,
        )
        average.take_over()
        return {"weights": student.weights()}


def soft_cross_entropy(outputs: "Tensor", targets: "Tensor", weight: "Tensor | None" = None) -> "Tensor":
    """Of the mean cross-entropy with rows of probabilities: (p − target) / n."""
    return (outputs.softmax(1) - targets).div_(len(outputs))


class RunningMean:
    """The mean of the parameters from step `first` on, every `every` steps (stochastic weight averaging)."""

    def __init__(self, first: int, every: int) -> None:
        self._first, self._every, self._counted = first, every, 0
        self._mean: dict[str, Tensor] = {}
        self._parameters: Mapping[str, Tensor] = {}

    def __call__(self, step: int, parameters: "Mapping[str, Tensor]") -> None:
        """After a step."""
        if step < self._first or (step - self._first) % self._every:
            return
        self._counted, self._parameters = self._counted + 1, parameters
        for name, parameter in parameters.items():
            held = self._mean.setdefault(name, parameter.new_zeros(parameter.shape))
            held += (parameter - held) / self._counted

    def take_over(self) -> None:
        """Put the mean where the parameters are; with too few steps for one, these stay as they are."""
        for name, held in self._mean.items():
            self._parameters[name].detach().copy_(held)


def deviations(
    models: Iterable[Weights], average: Weights, normalise: bool
) -> dict[str, NDArray[np.float64]]:
    """The variance of every parameter over the models, around their mean.

    With `normalise` every model's update counts the same: it is scaled to the mean length of all.

    >>> models = [{"w": np.array([0.0, 2.0])}, {"w": np.array([2.0, 2.0])}]
    >>> deviations(models, {"w": np.array([1.0, 2.0])}, normalise=False)
    {'w': array([1., 0.])}
    """
    floating = [name for name, array in average.items() if array.dtype.kind == "f"]
    sums = {name: np.zeros(average[name].shape) for name in floating}
    lengths, count = 0.0, 0
    for weights in models:
        updates = {name: weights[name].astype(np.float64) - average[name] for name in floating}
        length = float(np.sqrt(sum(float(np.square(update).sum()) for update in updates.values())))
        lengths, count = lengths + length, count + 1
        for name, update in updates.items():
            sums[name] += np.square(update / length if normalise and length > 0 else update)
    factor = (lengths / count) ** 2 if normalise else 1.0
    return {name: np.asarray(factor * total / count) for name, total in sums.items()}


def sharpened(chances: NDArray[Any], temperature: float) -> NDArray[np.float32]:
    """Rows of probabilities to the power of 1/T, which add up to 1 again.

    >>> sharpened(np.array([[0.25, 0.75]]), temperature=0.5)
    array([[0.1, 0.9]], dtype=float32)
    """
    sharp = np.asarray(chances, dtype=np.float64) ** (1 / temperature)
    return np.asarray(sharp / sharp.sum(axis=1, keepdims=True), dtype=np.float32)


def _mean_word(replies: Replies) -> NDArray[np.float64]:
    """The mean over all teachers: one reply in memory at a time."""
    total: NDArray[np.float64] = np.zeros(())
    teachers = 0.0
    for reply in replies.values():
        total = total + reply.array("chances").astype(np.float64)
        teachers += float(reply.array("teachers"))
    return np.asarray(total / teachers)


def _probabilities(instances: int, outputs: int) -> Check:
    """A check for sums of probabilities: their form, and that each row adds up to the number of teachers."""

    def check(silo: str, reply: Fields) -> None:
        chances, teachers = reply.array("chances"), reply.array("teachers")
        if chances.shape != (instances, outputs) or teachers.shape != ():
            raise BadMessage(f"field 'chances' is {list(chances.shape)}; wants {[instances, outputs]}")
        if (
            not teachers >= 1
            or not np.allclose(chances.sum(axis=1), teachers, rtol=1e-3)
            or chances.min() < 0
        ):
            raise BadMessage("field 'chances' holds no sums of probabilities")

    return check
