"""FedBE: FedAvg whose global model learns from an ensemble: the silos' models, and models drawn around them.

H.-Y. Chen and W.-L. Chao, "FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning" (2021).

After local training a distribution is fitted to the silos' models, and models are drawn from it. The
teachers are the mean of FedAvg, the models drawn and the silos' own; the mean of what they say about a public
pool, sharpened, is what the mean model is trained towards (Algorithm 1).

As in the authors' code the Gaussian is one of directions, tensor by tensor: with w the model that the round
began with, u_i = (w_i − w)/‖w_i − w‖ has a mean ū and a variance, of 1e-5 at least, and a model drawn is
w + l·(ū + 0.1·σ·ε) with l the mean of ‖w_i − w‖. `draw = "weights"` is the Gaussian of the paper's text.

Deviations from the paper:

- Silos weigh by size in the moments and in mixtures, as in the paper; in the authors' code they are equal.
- The coordinator has no network, only arrays. Silos score the pool, each with its own model and its share of
  the models drawn, so that no silo sees another's; one silo trains the mean model towards the scores.
- Batch-norm statistics are averaged with the parameters, and not drawn: a variance could become negative. The
  mean over training (SWA) is of parameters.
- The student's loss is the mean over instances; in the authors' code it is also divided by the classes.
- Each silo's optimiser is its training's and starts afresh every round. Local training gets as many epochs as
  a silo has in the rounds, in the mean.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import Weights, mean, same_structure
from cosilo.aggregation.gaussians import Gaussian, of_directions, of_weights
from cosilo.coordination.asking import Check
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage, ConfigError, RunError
from cosilo.methods.effort import Effort, plain_silos
from cosilo.methods.fedavg import FedAvg
from cosilo.methods.packing import pack, unpack
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.participant import Participant
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
        From which distribution: a Gaussian fitted to the weights, or to the directions of the updates; or
        random mixtures of the silos' models.
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
    average_from : int, default None
        From which step on the student enters the mean that it ends as; None: after a third of its steps (the
        authors' 500 are about a third of theirs).
    average_every : int, default 25
        How often it does, in steps.
    average : {"mean"}, default "mean"
        Teachers are drawn around all networks: no other average would keep bad ones out.

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
    average_from: Count | None = None
    average_every: Count = 25
    average: Literal["mean"] = "mean"

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """As FedAvg, and one silo a round trains the student on the pool."""
        found = super().effort(participants, pool)
        sizes = [silo.size for silo in plain_silos(participants)]
        learnt = self.rounds * self.distil_epochs * pool / sum(sizes)
        return replace(found, epochs=None if found.epochs is None else found.epochs + learnt)

    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """Teachers, their word on the pool, and the student's training."""
        average = super().merged(silos, replies, state)
        drawn = self._draws(replies, state.group("weights"), average, silos.rng)
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

    def _draws(
        self, replies: Replies, start: Weights, average: Weights, rng: np.random.Generator
    ) -> list[Weights]:
        """Models around the silos' own; what is not drawn of them is that of the mean model."""
        if self.samples == 0:
            return []
        sizes = list(self.shares(replies).values())

        def models(shares: Iterable[float]) -> Iterable[tuple[Weights, float]]:
            for reply, share in zip(replies.values(), shares, strict=True):  # from disk, one at a time
                yield reply.group("weights"), share

        if self.draw == "dirichlet":
            mixtures = rng.dirichlet(np.ones(len(sizes)), self.samples)
            return [mean(models(row * sizes)) for row in mixtures]
        if self.draw == "updates":
            found = of_directions(models(sizes), start)
        else:
            found = of_weights(models(sizes), average)
        return [{**average, **self._one(found, average, rng)} for _ in range(self.samples)]

    def _one(
        self, gaussians: Mapping[str, Gaussian], like: Weights, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        model = {}
        for name, one in gaussians.items():
            deviation = np.sqrt(np.maximum(one.variance, self.least_variance))
            noise = self.scale * deviation * rng.standard_normal(deviation.shape)
            model[name] = np.asarray(one.origin + one.length * (one.mean + noise)).astype(like[name].dtype)
        return model

    # ------------------------------------------------------------------ at the silo

    def prepare(self, silo: Silo) -> None:
        """The mean over the student's training has to begin."""
        super().prepare(silo)
        if silo.pool is not None and self._average_from(len(silo.pool)) > self._steps(len(silo.pool)):
            raise ConfigError(
                f"method.average_from: got {self.average_from}; the student has "
                f"{self._steps(len(silo.pool))} steps on this pool: raise distil_epochs, or leave it out"
            )

    def _steps(self, pool: int) -> int:
        return self.distil_epochs * math.ceil(pool / self.distil_batch)

    def _average_from(self, pool: int) -> int:
        return max(1, self._steps(pool) // 3) if self.average_from is None else self.average_from

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
        average = RunningMean(self._average_from(len(silo.need_pool())), self.average_every)
        student.train(
            (silo.need_pool(), targets),
            loss=soft_cross_entropy,
            after_step=average,
            optimiser="sgd",
            momentum=0.9,
            lr=self.distil_lr,
            weight_decay=1e-5,  # as in the authors' code
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
