"""FedFomo: each silo mixes the models of the others, by how much each would help on its own validation data.

M. Zhang et al., "Personalized Federated Learning with First Order Model Optimization" (2021).

In each round every silo trains its own model and uploads it. It gets some of the others' models back and
weighs each by how much smaller its loss on the silo's validation data is than that of the model the round
began with, divided by the distance between the two (eq. 4); what does not help weighs nothing. The new model
is the one the round began with, moved towards the others by these weights.

Validation data is a part of the silo's training data; for a silo with a target set it is the labelled points
of the target, and the silo trains on the rest: what it wants is then not what it has (§ 4.2 of the paper).

Deviations from the paper:

- Which models a silo gets is drawn from the coordinator's chance, ε-greedily over the weights a silo gave
  before (§ 3.3); ε begins at 0.3 and shrinks by 0.05 a round, as in the authors' code. A silo's own model is
  always among those it weighs.
- The distance is the Euclidean norm over all parameters; the authors' code adds up L1 norms of tensors.
- Batch-norm statistics are mixed with the parameters; counters are those of the silo's own model.
- Every training starts with a new optimiser; `decay` shrinks its learning rate.
- A silo tells the coordinator the weights it gave: that is how the coordinator knows whom to send to it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import Weights, same_structure, structure
from cosilo.aggregation.similarity import distance, fomo_weights
from cosilo.coordination.asking import Check
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage
from cosilo.methods.base import Method
from cosilo.methods.effort import Effort, plain_silos
from cosilo.methods.packing import pack, unpack
from cosilo.methods.rounds import STRUCTURE, share_of, starting_weights, taking_part
from cosilo.protocol.findings import Findings, Matrix
from cosilo.protocol.message import Fields, Message, Shared, State
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import step
from cosilo.runs.journal import Replies
from cosilo.silo.parts import Part
from cosilo.silo.silo import Silo

Count = Annotated[int, Field(ge=1)]


class Affinity(Findings):
    """What FedFomo's part of the report reads."""

    #: What each silo gave the models of the others, over all rounds.
    affinity: Matrix | None = None


class FedFomo(Method):
    """Personalised learning by first-order model optimisation: each silo mixes the models that help it.

    Parameters
    ----------
    rounds : int, default 20
        How often silos train, upload, and mix what they get.
    epochs : int, default 5
        Epochs of each silo in a round.
    models : int, default 4
        How many models of others a silo gets in a round.
    epsilon : float in [0, 1], default 0.3
        How likely it is, in the first round, that they are drawn at random and not by what helped before.
    epsilon_decay : float in [0, 1], default 0.05
        What ε loses each round.
    decay : float in (0, 1], default 0.99
        The learning rate of round t is that of the silo's training × decay^(t − 1).
    fraction : float in (0, 1], default 1.0
        The share of the silos that takes part in a round (trains, uploads, mixes), drawn anew each time; at
        least one does.
    local : bool, default True
        Whether silos first train alone, for as many epochs as they have in the rounds, in the mean: what the
        federation is compared with.
    evaluate_every : int, default 1
        Models are judged once in this many rounds, and after the last one.

    Examples
    --------
    >>> sorted(FedFomo(rounds=5).needs())
    ['similarity', 'weights']
    """

    name: ClassVar[str] = "fedfomo"
    needs_network: ClassVar[bool] = True

    rounds: Count = 20
    epochs: Count = 5
    models: Count = 4
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.3
    epsilon_decay: Annotated[float, Field(ge=0, le=1)] = 0.05
    decay: Annotated[float, Field(gt=0, le=1)] = 0.99
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    local: bool = True
    evaluate_every: Count = 1

    def coordinate(self, silos: Silos) -> None:
        """Train, exchange, mix, round after round."""
        names, state = silos.names, silos.marked
        if state is None:
            if self.local:
                alone = silos.ask("alone")  # the denominator of every comparison
                silos.evaluate(LOCAL, to=alone)
            begun = silos.ask("begin", each=lambda name: {"vocabulary": silos.vocabulary_for(name)})
            silos.ask("start", {"weights": starting_weights(silos, begun)})
            state = State({"round": 0, "affinity": np.zeros((len(names), len(names)))})
            silos.mark(**state)
        affinity, done = state.array("affinity"), state.integer("round")
        for number in silos.rounds(done, self.rounds):
            chosen = taking_part(silos, self.fraction, number)
            uploaded = silos.ask("train", {"round": number}, to=chosen, valid=_alike())
            epsilon = max(0.0, self.epsilon - self.epsilon_decay * (number - 1))
            sent = {name: self._pick(silos, name, uploaded, affinity, epsilon) for name in names}
            message = partial(_parcel, uploaded, sent)
            mixed = silos.ask("mix", each=message, to=list(uploaded), valid=_as_many(sent))
            for name, reply in mixed.items():
                weights = reply.array("weights")
                total = float(np.abs(weights).sum())
                if total > 0:
                    columns = [names.index(other) for other in sent[name]]
                    affinity[names.index(name), columns] += weights / total
            if silos.last_round or number % self.evaluate_every == 0:
                stage = FEDERATED if silos.last_round else Stage.after_round(number)
                failed = {*uploaded.failures, *mixed.failures}
                able = [name for name in names if name not in failed]  # also who did not take part
                judged = silos.ask("judge", {"stage": str(stage)}, to=able)
                silos.evaluate(stage, to=judged)
            silos.mark(round=number, affinity=affinity)
        silos.found(Affinity).affinity = Matrix(silos=names, values=np.round(affinity, 4).tolist())

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """Validation data is never trained on."""
        uploads = share_of(len(participants), self.fraction)
        epochs = self.rounds * self.epochs * uploads / len(participants)
        shares = [silo.validation_share for silo in plain_silos(participants)]
        return Effort(uploads, epochs, self.evaluate_every, sum(shares) / len(shares))

    def _pick(
        self, silos: Silos, name: str, uploaded: Replies, affinity: NDArray[Any], epsilon: float
    ) -> list[str]:
        """The models that a silo gets: at random with probability ε, else those that helped most so far."""
        row = affinity[silos.names.index(name)]
        others = [other for other in uploaded if other != name]
        shuffled = [others[place] for place in silos.rng.permutation(len(others))]
        if silos.rng.random() >= epsilon:  # ties, as in the first round, stay in random order
            shuffled.sort(key=lambda other: -row[silos.names.index(other)])
        return sorted(shuffled[: self.models])

    # ------------------------------------------------------------------ at the silo

    @step(timed=False)
    def alone(self, silo: Silo) -> None:
        """Local training by the silo's own training, for as many epochs as it has in the rounds."""
        silo.fit(LOCAL, epochs=max(1, round(self.rounds * self.epochs * self.fraction)))

    @step(structure=STRUCTURE)
    def begin(self, silo: Silo, vocabulary: list[str]) -> Message:
        """From now on the network has an output for each class of the vocabulary."""
        silo.network.widen(vocabulary)
        return {"structure": structure(silo.network.another().weights())}

    @step(weights=Shared("weights", "untrained weights that everyone starts from; asked of one silo only"))
    def initial(self, silo: Silo) -> Message:
        """The weights that everyone starts from."""
        return {"weights": silo.network.weights()}

    @step()
    def start(self, silo: Silo, weights: Weights) -> None:
        """Take them over."""
        silo.network.set_weights(weights)

    @step(after="start", weights=Shared("weights", "weights of its network after training in the round"))
    def train(self, silo: Silo, round: int) -> Message:
        """Some epochs from the silo's own model; where it began is remembered."""
        if not 1 <= round <= self.rounds:
            raise BadMessage(f"got round = {round}; wants 1 to {self.rounds}")
        silo.notes["base"] = silo.network.weights()
        lr = silo.network.training.lr * self.decay ** (round - 1)
        silo.network.train(Part.OWN if silo.has_target else Part.REST, epochs=self.epochs, lr=lr)
        return {"weights": silo.network.weights()}

    @step(
        weights=Shared("similarity", "how much each model that it was sent helped on its own data; no model")
    )
    def mix(self, silo: Silo, origins: list[str], models: Weights | None = None) -> Message:
        """Weigh the models on validation data (eq. 4), and move towards them (eq. 5)."""
        base = silo.notes.group("base")
        own = silo.network.weights()
        candidates = {**unpack(models or {}), silo.name: own}
        trial = silo.network.another()
        held = Part.TARGET if silo.has_target else Part.VALIDATION

        def loss(weights: Weights) -> float:
            trial.set_weights(weights)
            return trial.loss(held)

        names = [*origins, silo.name]
        losses = np.array([loss(candidates[name]) for name in names])
        distances = np.array([distance(candidates[name], base) for name in names])
        weights = fomo_weights(loss(base), losses, distances)
        # If nothing helps, not even its own training, the silo stays where the round began.
        helpers = [(candidates[name], share) for name, share in zip(names, weights, strict=True)]
        silo.network.set_weights(_moved(base, helpers))
        return {"weights": weights[:-1]}

    @step(timed=False)
    def judge(self, silo: Silo, stage: str) -> None:
        """Take the score of the model as it is."""
        silo.take_score(Stage.parse(stage))


def _parcel(uploaded: Replies, sent: Mapping[str, list[str]], name: str) -> Message:
    """What one silo gets: the models picked for it, from disk when it is its turn."""
    models = {other: uploaded[other].group("weights") for other in sent[name]}
    return {"models": pack(models), "origins": sent[name]}


def _moved(base: Weights, models: Sequence[tuple[Weights, float]]) -> dict[str, NDArray[Any]]:
    """θ_base + Σ w_n (θ_n − θ_base); the silo's own model comes last and gives the counters."""
    found = {}
    for name, array in base.items():
        if array.dtype.kind in "biu":
            found[name] = models[-1][0][name]
            continue
        moved = array.astype(np.float64)
        for weights, share in models:
            moved = moved + share * (weights[name] - array.astype(np.float64))
        found[name] = np.asarray(moved).astype(array.dtype)
    return found


def _alike() -> Check:
    """A check that all models have the same names and shapes: those of the first that arrives."""
    first: list[Check] = []

    def check(silo: str, reply: Fields) -> None:
        if not first:
            first.append(same_structure(reply.group("weights")))
        first[0](silo, reply)

    return check


def _as_many(sent: Mapping[str, list[str]]) -> Check:
    """A check that a silo gave one weight for each model it got, none below 0."""

    def check(silo: str, reply: Fields) -> None:
        weights = reply.array("weights")
        if weights.shape != (len(sent[silo]),) or (weights < 0).any():
            raise BadMessage(f"field 'weights' wants {len(sent[silo])} numbers of at least 0")

    return check
