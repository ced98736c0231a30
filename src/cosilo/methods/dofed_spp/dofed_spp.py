"""DoFed-SPP: silos label their unlabelled target points with each other's models, weighted by similarity.

C.-W. Ching et al., "Dual-Objective Personalized Federated Service System with Partially-labeled Data over
Wireless Networks" (2023).

A silo has a labelled training set and a target set of other classes with a handful of labels. It wants a
model for the target classes (classification) and labels for its unlabelled target points (labelling). Every
silo trains a reciprocal model on its training set, which may be what another silo's target needs. How much it
is needed is told by its similarity ratio (eq. 19), which a silo takes on its labelled target points. The K
models that help most, all silos taken together, travel (§ 4.4); each silo labels its target with the B best
of these for itself (eq. 20) and trains its target model on what came out.

Deviations from the paper, and what it leaves open:

- The constants of eq. 19 are not given in the paper. With G₁ = G₂ = 0 only models that beat the target model
  on its few labelled points help: none, as soon as it fits these. G₂ bounds a gradient, and so how much the
  loss can rise from one model to another. Unless it is given it is measured, in every round: the rise from
  the target model to the best model at hand, min ℓ_n(θ_rec,i) − ℓ_n(θ_tar), and from a model without a fault
  to one that knows nothing, ℓ_n(θ_tar,0). The best model thus always helps. With this bound, unless it
  would be below 0, the loss of the target model cancels: a model counts by ℓ_n(θ_tar,0) + min ℓ_n(θ_rec) −
  ℓ_n(θ_rec,i), and line 32 of Algorithm 2 matters for a given G₂ only. It trains on these few points, so that
  its loss there goes to 0 and tells nothing. The largest rise, a true bound, makes ratios so even that eq. 27
  no longer finds a helper for everyone; norms of gradients are far above losses for images and far below them
  for texts.
- A silo's own model is near because it hardly moved since the last round; the floor ε of a distance is that
  of the nearest other model, or else it would outvote them all. If no ratio of a silo is positive, its last
  ones are kept, or before the first round the model with the smallest loss gets all.
- All reciprocal and target models begin with the same weights.
- What a silo remembers of a model that it did not get in a round are its loss and its distance.
- Labels are chosen among the silo's target classes: it has a labelled point of each.
- Models are downsized (§ 4.5) by one PCA over all that travel together: mean and components are sent once,
  with a few coefficients for each model, which silos put together again. From K − 1 components on nothing is
  saved, and models are sent as they are.
- The run stops early when fewer than `stop_below` of the labels changed in a round. The paper looks at the
  change of test accuracy, which is not to be looked at before the end.
- Silos are judged on test data of their target classes, and among those. Local training sees the training set
  and the labelled target points, for as many epochs as a reciprocal model has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from cosilo.aggregation.averaging import Weights, same_structure, structure
from cosilo.coordination.asking import Check
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage, ConfigError, DataError
from cosilo.methods.base import Method
from cosilo.methods.dofed_spp.budget import Budget
from cosilo.methods.dofed_spp.findings import Exchange, Exchanges
from cosilo.methods.dofed_spp.model_selection import best, feasible, greedy
from cosilo.methods.dofed_spp.parcel import Models, wrap
from cosilo.methods.dofed_spp.reciprocal import Reciprocal
from cosilo.methods.effort import Effort, plain_silos
from cosilo.methods.rounds import STRUCTURE, starting_weights
from cosilo.protocol.findings import Matrix
from cosilo.protocol.forms import SHARE
from cosilo.protocol.message import Fields, Message, Shared, State, Value, payload
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import step
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo
from cosilo.silo.target import untaught
from cosilo.text import listing

Count = Annotated[int, Field(ge=1)]
#: Models that are sent at a time before the first round, when all are: bounds what silos need of memory.
_AT_ONCE = 10
#: How many such messages there may be: a silo does not know how many silos there are.
_MOST_LOOKS = 1000


class DoFedSPP(Method):
    """Two objectives: models for the silos' targets, and labels for their unlabelled points, in limited time.

    Parameters
    ----------
    rounds : int, default 10
        G: the most rounds there may be.
    warm_up : int, default 10
        L: epochs of the reciprocal models before the first round.
    epochs : int, default 1
        Epochs of a reciprocal model in a round.
    target_epochs : int, default 5
        Epochs of a target model in a round.
    uploads : int, default None
        K: how many models are uploaded in a round; None: 10 or as many as there are silos, or with a budget
        what is best (eq. 26).
    labellers : int, default None
        B: how many of them a silo labels with; None: all, or with a budget what is best (eq. 26).
    budget : Budget, default None
        The time for all rounds, and what takes how much of it; instead of uploads and labellers.
    components : int, default None
        To how many components the models are downsized before they are sent on (§ 4.5); None: not at all.
    g1 : float, default 0.0
        G₁ of the similarity ratio (eq. 19).
    g2 : float, default None
        G₂ of the similarity ratio (eq. 19); None: measured, so that the best model at hand always helps.
    stop_below : float in [0, 1], default 0.01
        The run ends when a smaller share of the labels changed in a round.
    local : bool, default True
        Whether silos first train alone, for as many epochs as their reciprocal models have: what the
        federation is compared with.

    Examples
    --------
    >>> sorted(DoFedSPP(uploads=5, labellers=3).needs())
    ['metrics', 'similarity', 'weights']
    """

    name: ClassVar[str] = "dofed_spp"
    needs_network: ClassVar[bool] = True

    rounds: Count = 10
    warm_up: Count = 10
    epochs: Count = 1
    target_epochs: Count = 5
    uploads: Count | None = None
    labellers: Count | None = None
    budget: Budget | None = None
    components: Count | None = None
    g1: Annotated[float, Field(ge=0)] = 0.0
    g2: Annotated[float, Field(ge=0)] | None = None
    stop_below: Annotated[float, Field(ge=0, le=1)] = 0.01
    local: bool = True

    @model_validator(mode="after")
    def _fits(self) -> "DoFedSPP":
        if self.budget is not None and (self.uploads is not None or self.labellers is not None):
            raise ValueError("either a budget or uploads and labellers")
        if self.labellers is not None and self.labellers > (self.uploads or 10):
            raise ValueError(f"labellers of at most uploads, {self.uploads or 10}; got {self.labellers}")
        return self

    def coordinate(self, silos: Silos) -> None:
        """Algorithm 2."""
        names, state = silos.names, silos.marked
        uploaded: Replies | None = None
        if state is None:
            state, uploaded = self._cold_start(silos)
        similar, done, spent = state.array("ratios"), state.integer("round"), state.number("spent")
        ready, reference = state.names("ready"), state.group("weights")
        for number in silos.rounds(done, self.rounds):
            # Phase 1: which models travel. In the first round the coordinator has all of them.
            travel, labellers = self._decide(similar, reference, number, spent)
            able = [names[place] for place in travel if names[place] in ready]
            if number > 1:
                uploaded = silos.ask("upload", to=able, valid=same_structure(reference))
            assert uploaded is not None  # nobody marks before the first round is over
            sent = [name for name in able if name in uploaded]
            parcel, errors = wrap(sent, _weights_in(uploaded), self.components, over=list(uploaded))
            # Phases 2 to 4, at the silos: all these models are broadcast.
            stage = Stage.after_round(number)
            message = {**parcel, "silos": names, "labellers": labellers, "stage": str(stage)}
            learnt = silos.ask("learn", message, to=ready, valid=_shaped(len(names)))
            fresh = {name: reply.array("ratios") for name, reply in learnt.items() if "ratios" in reply}
            for name, ratios in fresh.items():
                similar[names.index(name)] = ratios
            changes = [reply.number("moved") for reply in learnt.values() if "moved" in reply]
            moved = float(np.mean(changes)) if changes else None
            if self.budget is not None:
                sizes = [_bytes(reference)] * len(uploaded) if number > 1 else []
                spent += self.budget.round_seconds(labellers, sizes, silos.rng)
            silos.evaluate(stage, to=learnt)
            found = Exchange(
                round=number,
                uploaded=sent,
                labellers=labellers,
                seconds=round(spent, 3),
                labels_moved=None if moved is None else round(moved, 4),
                fresh_ratios=len(fresh),
                bytes_sent=payload(parcel),
                reconstruction_error={name: round(error, 6) for name, error in errors.items()},
            )
            self._note(silos, found, similar)
            settled = moved is not None and moved < self.stop_below
            over = settled or (self.budget is not None and not self.budget.fits(_bytes(reference), spent))
            if over or silos.last_round:
                kept = silos.ask("finish", {**parcel, "silos": names}, to=ready)
                silos.evaluate(FEDERATED, to=kept)
            if over:
                break  # without a mark, for the models that were sent are in the journal
            silos.mark(round=number, ratios=similar, spent=spent, ready=ready, weights=reference)

    def _cold_start(self, silos: Silos) -> tuple[State, Replies]:
        """Phase 0: everyone warms up and uploads, and compares all models with its target."""
        names, spent = silos.names, 0.0
        if self.local:
            alone = silos.ask("alone")  # the denominator of every comparison
            silos.evaluate(LOCAL, to=alone)
        begun = silos.ask("begin", each=lambda name: {"vocabulary": silos.vocabulary_for(name)})
        reference = starting_weights(silos, begun)
        if self.budget is not None:
            spent = self.budget.cold_start(_bytes(reference), len(names), silos.rng)
        warm = silos.ask("warm", {"weights": reference}, valid=same_structure(reference))
        similar, there = np.zeros((len(names), len(names))), list(warm)
        # Downsized, all models fit into one message.
        size = _AT_ONCE if self.components is None else len(there)
        for start in range(0, len(there), size):
            parcel, _ = wrap(there[start : start + size], _weights_in(warm), self.components)
            silos.ask("look", {**parcel, "silos": names}, to=there)
        replies = silos.ask("compare", {"silos": names}, to=there, valid=_shaped(len(names)))
        for name, reply in replies.items():
            similar[names.index(name)] = reply.array("ratios")
        # Nobody can join later: a silo that did not warm up has no model to compare or to send.
        state = State({"round": 0, "spent": spent, "ready": there, "ratios": similar, "weights": reference})
        return state, warm

    def _decide(
        self, similar: NDArray[Any], reference: Weights, number: int, spent: float
    ) -> tuple[list[int], int]:
        """K and B (eq. 26), and the K models (Algorithm 1)."""
        silos = len(similar)
        if self.budget is None:
            uploads = min(self.uploads or 10, silos)
            labellers = min(self.labellers or uploads, uploads)
            return sorted(greedy(similar, uploads, labellers).tolist()), labellers
        costs = self.budget.costs(_bytes(reference))
        if number == 1:  # all models were uploaded before
            costs = replace(costs, upload=0.0, once=0.0)
        # What is left, in equal parts; the last rounds are left out if these are too small.
        share = (self.budget.total - spent) / (self.rounds - number + 1)
        choice = best(similar, feasible(costs, max(share, costs.seconds(1, 1)), silos))
        return sorted(choice.chosen), choice.B

    def _note(self, silos: Silos, exchange: Exchange, similar: NDArray[Any]) -> None:
        """What the report shows of a round."""
        found = silos.found(Exchanges)
        found.exchange.append(exchange)
        found.similarity = Matrix(silos=silos.names, values=np.round(similar, 4).tolist())
        found.budget = None if self.budget is None else self.budget.total

    def most_asks(self, step: str) -> int:
        """Before the first round all models are looked at, some at a time."""
        return _MOST_LOOKS if step == "look" else super().most_asks(step)

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """Reciprocal models are uploaded and train on own data; target models train on target points."""
        uploads = None if self.budget is not None else min(self.uploads or 10, len(participants))
        shares = [silo.target_size / silo.size for silo in plain_silos(participants)]
        epochs = self.warm_up + self.rounds * (self.epochs + self.target_epochs * fmean(shares))
        return Effort(uploads, epochs, judged_every=1, held_out=0.0)

    # ------------------------------------------------------------------ before anything is computed

    def prepare(self, silo: Silo) -> None:
        """A silo needs a target."""
        super().prepare(silo)
        if not silo.has_target:
            raise DataError(
                f"silo {silo.name!r}: has no target, which {self.name} needs; give it one: "
                "target = { path = … } in a recipe, target=Target(…) in Python"
            )
        if self.budget is not None:  # whether one model fits into a round does not depend on the others
            size, total = _bytes(silo.fresh().network.another().weights()), self.budget.total
            try:
                feasible(self.budget.costs(size), total / self.rounds, 1, rounds=self.rounds)
            except ConfigError as error:
                raise ConfigError(f"method.budget.total: got {total:.4g} s; {error}") from None

    def check(self, tasks: Mapping[str, Any]) -> None:
        """K and B have to fit the number of silos."""
        for key, value in (("uploads", self.uploads), ("labellers", self.labellers)):
            if value is not None and value > len(tasks):
                raise ConfigError(f"method.{key}: got {value}; there are {len(tasks)} silos")

    def check_targets(
        self, training: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
    ) -> None:
        """A target class is learnt from others: somebody has to train on it."""
        lonely = untaught(training, wanted)
        if lonely:
            lines = [
                f"silo {name!r}: no other silo trains on {listing(found)}" for name, found in lonely.items()
            ]
            raise ConfigError(
                "\n".join(f"{line}; leave it out of the target, or find a partner" for line in lines)
            )

    # ------------------------------------------------------------------ at the silo

    @step(timed=False)
    def alone(self, silo: Silo) -> None:
        """Local training on the training set and the labelled target points."""
        silo.fit(LOCAL, epochs=self.warm_up + self.rounds * self.epochs)

    @step(structure=STRUCTURE)
    def begin(self, silo: Silo, vocabulary: list[str]) -> Message:
        """From now on networks have an output for each class of the vocabulary."""
        silo.network.widen(vocabulary)
        return {"structure": structure(silo.network.another().weights())}

    @step(weights=Shared("weights", "untrained weights that everyone starts from; asked of one silo only"))
    def initial(self, silo: Silo) -> Message:
        """The weights that every model starts from."""
        return {"weights": silo.network.weights()}

    @step(weights=Shared("weights", "weights of its reciprocal model, trained on its training set"))
    def warm(self, silo: Silo, weights: Weights) -> Message:
        """Phase 0: the target model begins, the reciprocal model trains on the training set."""
        silo.network.set_weights(weights)
        mine = Reciprocal(silo)
        mine.train(weights, self.warm_up)
        return {"weights": mine.weights}

    @step()
    def look(
        self,
        silo: Silo,
        silos: list[str],
        models: Weights,
        coefficients: NDArray[Any] | None = None,
        downsized: list[str] | None = None,
    ) -> None:
        """Phase 0: take the losses and distances of some models."""
        Reciprocal(silo).look_at(Models(models, coefficients, downsized), silos)

    @step(
        ratios=Shared(
            "similarity", "how useful each other silo's model is for its target, before the first round"
        )
    )
    def compare(self, silo: Silo, silos: list[str]) -> Message:
        """Phase 0: the similarity ratios of all models that it looked at."""
        mine = Reciprocal(silo)
        found = mine.ratios(mine.take_loss(), silos, self.g1, self.g2)
        return {"ratios": mine.least_loss() if found is None else found}

    @step(weights=Shared("weights", "weights of its reciprocal model as it is in this round"))
    def upload(self, silo: Silo) -> Message:
        """The reciprocal model as it is now."""
        return {"weights": Reciprocal(silo).weights}

    @step(
        ratios=Shared(
            "similarity",
            "how useful each other silo's model is for its target, after the round; absent if none helps",
            optional=True,
        ),
        moved=Shared(
            "metrics",
            "share of its target labels that changed in the round; absent if no model that helps travelled",
            optional=True,
            form=SHARE,
        ),
    )
    def learn(
        self,
        silo: Silo,
        silos: list[str],
        labellers: int,
        stage: str,
        models: Weights,
        coefficients: NDArray[Any] | None = None,
        downsized: list[str] | None = None,
    ) -> Message:
        """Phases 2 to 4: label, train the target model, take new ratios, train the reciprocal model."""
        mine, given = Reciprocal(silo), Models(models, coefficients, downsized)
        helpful = mine.best(given, silos, labellers)
        reply: dict[str, Value] = {"moved": mine.label(given, helpful)} if helpful else {}
        loss = mine.take_loss()
        mine.train_target(self.target_epochs)
        silo.take_score(Stage.parse(stage))
        mine.look_at(given, silos)
        ratios = mine.ratios(loss, silos, self.g1, self.g2)
        if ratios is not None:
            reply["ratios"] = ratios
        mine.train(mine.weights, self.epochs)
        return reply

    @step(timed=False)
    def finish(
        self,
        silo: Silo,
        silos: list[str],
        models: Weights,
        coefficients: NDArray[Any] | None = None,
        downsized: list[str] | None = None,
    ) -> None:
        """The last score is the result; the models that labelled are kept, to label new points."""
        Reciprocal(silo).keep_labeller(Models(models, coefficients, downsized), silos)
        silo.keep_score(FEDERATED)


def _bytes(weights: Weights) -> int:
    return sum(array.nbytes for array in weights.values())


def _weights_in(replies: Replies) -> Callable[[str], Weights]:
    """Reads the model that a silo uploaded, from disk."""
    return lambda name: replies[name].group("weights")


def _shaped(silos: int) -> Check:
    """A check for ratios: one for each silo, none below 0, and they add up to 1 or are all 0."""

    def check(silo: str, reply: Fields) -> None:
        if "ratios" not in reply:
            return
        found = reply.array("ratios")
        if found.shape != (silos,) or (found < 0).any() or found.sum() > 1 + 1e-6:
            raise BadMessage(f"field 'ratios' wants {silos} numbers of at least 0 that add up to at most 1")

    return check
