"""What methods have in common whose silos train copies of one network, round after round.

An institution does some rounds of its own with its members before it replies, so that there are three layers
(C. Ying, B. Li and B. Li, "Tempo", 2022, eqs. 3 to 7): whatever merges silos merges members too.
"""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from statistics import mode
from typing import Annotated, Any, ClassVar, NoReturn

from numpy.typing import NDArray
from pydantic import Field

from cosilo.aggregation.averaging import same_structure, structure
from cosilo.aggregation.robust import Average
from cosilo.coordination.asking import Gather
from cosilo.coordination.coordinator import Silos
from cosilo.coordination.institution import Institution
from cosilo.errors import BadMessage, Refused, RunError
from cosilo.methods.base import Method
from cosilo.methods.effort import Effort, hidden_share
from cosilo.protocol.forms import Text
from cosilo.protocol.message import Fields, Message, Shared, State, Value
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.protocol.step import first, step
from cosilo.runs.journal import Replies
from cosilo.silo.silo import Silo

#: What a silo says of its network before weights are exchanged.
STRUCTURE = Shared("task", "names and shapes of its network's arrays, as a hash", merge=mode, form=Text())


def averaged(values: Sequence[Value]) -> NoReturn:
    """How an institution merges its members' weights: by rounds of the method's own averaging."""
    raise NotImplementedError("Rounds.relay does this")


def share_of(silos: int, fraction: float) -> int:
    """How many silos a fraction of them is: at least one.

    >>> share_of(25, 0.4), share_of(3, 0.1)
    (10, 1)
    """
    return max(1, round(fraction * silos))


def taking_part(silos: Silos, fraction: float, number: int) -> list[str]:
    """Who takes part in a round: on one seed the same silos for every method, so that rivals compare."""
    if fraction == 1.0:
        return silos.names
    count = share_of(len(silos.names), fraction)
    return [str(name) for name in silos.chance_of_round(number).choice(silos.names, count, replace=False)]


def starting_weights(silos: Silos, begun: Replies) -> dict[str, NDArray[Any]]:
    """The weights that everyone starts from: of the first silo that sends some like most silos' own.

    Each silo has said what its network is like (`structure`), so that one cannot impose another network.
    If one is lost, the next one is asked; but where all silos have to answer, the run stops before that, and
    starts from the same weights when it is resumed.
    """
    told = {name: reply.text("structure") for name, reply in begun.items()}
    usual = mode(told.values())
    odd = [name for name in told if told[name] != usual]

    def fits(silo: str, reply: Fields) -> None:
        if structure(reply.group("weights")) != usual:
            raise BadMessage("its network has not the arrays that most silos' networks have")

    for name in told:
        if name not in odd:
            quorum = 1.0 if silos.needs_all else 0.0
            for reply in silos.ask("initial", to=[name], valid=fits, quorum=quorum).values():
                return reply.group("weights")
    raise RunError("step 'initial': no silo sent weights to start from; see its log, or leave it out")


class Rounds(Method):
    """Send the global weights, let silos train, merge what comes back; a mark at the end of each round.

    A subclass says how a silo trains (`train`), for how many epochs (`usual_epochs`), and how replies become
    the new weights (`merged`). What it has to remember between rounds it puts into the state, beside
    "round" and "weights": that is kept by the mark at the server, and by the institution's notes inside one.

    Parameters
    ----------
    rounds : int, default 10
        How often silos train and their networks are merged.
    local_rounds : int, default 1
        τ_i: rounds of an institution with its members in each of these; a silo without members trains once.
    fraction : float in (0, 1], default 1.0
        The share of the silos that takes part in a round, drawn anew each time; at least one does.
    decay : float in (0, 1], default 1.0
        What the learning rate of the silo's training is multiplied with after every round.
    decay_after : list of int, default None
        The rounds after which that happens; None: all.
    average : {"mean", "median", "trimmed", "clipped"}, default "mean"
        How networks become one. mean: as the method says, and one bad silo can spoil it. median: of each
        number by itself. trimmed: the mean without the highest and the lowest quarter of each number.
        clipped: the mean, in which no network counts as further from the last global one than the median of
        them. Medians and trimmed means count all silos equally, and need all networks in memory.
    local : bool, default True
        Whether silos first train alone, for as many epochs as they have in the rounds, in the mean: what the
        federation is compared with.
    evaluate_every : int, default 1
        Models are judged once in this many rounds, and after the last one.
    stop_at : float in (0, 1], default None
        No round follows one after which the global network, when it is judged, has this accuracy on all test
        data: for the time to an accuracy (Tempo, step 5). None: never.
    """

    needs_network: ClassVar[bool] = True
    #: The step that takes over and judges what came of the last round.
    last_judge: ClassVar[str] = "judge"

    rounds: Annotated[int, Field(ge=1)] = 10
    local_rounds: Annotated[int, Field(ge=1)] = 1
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    decay_after: list[Annotated[int, Field(ge=1)]] | None = None
    average: Average = "mean"
    local: bool = True
    evaluate_every: Annotated[int, Field(ge=1)] = 1
    stop_at: Annotated[float, Field(gt=0, le=1)] | None = None

    def coordinate(self, silos: Silos) -> None:
        """Algorithm 1 of FedAvg, and of FML."""
        state = State(silos.marked or self.start(silos))
        for number in silos.rounds(state.integer("round"), self.rounds):
            state["round"] = number
            replies = self.train_all(silos, state)
            state["weights"] = self.merged(silos, replies, state)
            self.review(silos, replies, state)
            if silos.last_round or number % self.evaluate_every == 0:
                stage = FEDERATED if silos.last_round else Stage.after_round(number)
                accuracy = self._judge(silos, state, stage)
                reached = accuracy is not None and self.stop_at is not None and accuracy >= self.stop_at
                if reached and not silos.last_round:
                    silos.end_rounds()
                    self._judge(silos, state, FEDERATED)
            silos.mark(**state)

    def _judge(self, silos: Silos, state: State, stage: Stage) -> float | None:
        """Judge the network after a round; returns the accuracy of a global one on all test data."""
        judging = self.last_judge if stage == FEDERATED else "judge"
        judged = silos.ask(judging, {"weights": state["weights"], "stage": str(stage)})
        return silos.evaluate(stage, to=judged)

    def start(self, silos: Silos) -> Message:
        """Local training if it is wanted, and the weights that everyone starts from."""
        if self.local:
            alone = silos.ask("alone")  # the denominator of every comparison
            silos.evaluate(LOCAL, to=alone)
        begun = silos.ask("begin", each=lambda name: self.opening(silos, name))
        return {"round": 0, "weights": starting_weights(silos, begun)}

    def opening(self, silos: Silos, name: str) -> Message:
        """What a silo has to know to build the network: how many classes there are, and which are its own."""
        return {"vocabulary": silos.vocabulary_for(name)}

    def train_all(self, silos: Silos, state: State) -> Replies:
        """Let the silos of this round train; all get the same message."""
        message: Message = {"weights": state["weights"], "round": state["round"]}
        fits = same_structure(state.group("weights"))
        return silos.ask("train", message, to=self.chosen(silos, state), valid=fits, gather=self.gathering())

    def gathering(self) -> Gather | None:
        """What takes in replies as they come, for `merged`: nothing, here."""
        return None

    def review(self, silos: Silos, replies: Replies, state: State) -> None:
        """What the server does after a round, when it has the new weights: nothing, here."""

    def chosen(self, silos: Silos, state: State) -> list[str]:
        """Who takes part in the present round."""
        return taking_part(silos, self.fraction, state.integer("round"))

    def most_asks(self, step: str) -> int:
        """Members train several times in a round; the last network may be judged twice (`stop_at`)."""
        inside = {"train": self.rounds * self.local_rounds, "judge": self.rounds + 1}
        return inside.get(step, super().most_asks(step))

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """Those who take part in a round train, and upload one model."""
        uploads = share_of(len(participants), self.fraction)
        inside = self.local_rounds if any(isinstance(one, Institution) for one in participants) else 1
        epochs = self.rounds * inside * self.usual_epochs * uploads / len(participants)
        return Effort(uploads, epochs, self.evaluate_every, hidden_share(participants))

    @abstractmethod
    def merged(self, silos: Silos, replies: Replies, state: State) -> dict[str, NDArray[Any]]:
        """The global weights after a round; the silos may be asked again for that.

        `state` still has the weights from before. In an institution, `silos` are its members.
        """

    @property
    @abstractmethod
    def usual_epochs(self) -> int:
        """Epochs of each silo in a round, unless the server says otherwise."""

    # ------------------------------------------------------------------ at an institution

    def relay(self, step: str, institution: Institution, message: Message) -> Message:
        """What an institution does for a step."""
        if step == "train":
            return self._train_members(institution, message)
        if step == "alone":
            message = {"times": self.local_rounds}
        return super().relay(step, institution, message)

    def _train_members(self, institution: Institution, message: Message) -> Message:
        """Rounds like those of the server, of which the last one's weights are the reply (eqs. 4 and 5)."""
        members = institution.members
        state = State({**institution.notes, **message})
        for _ in range(self.local_rounds):
            sent = {**message, "weights": state["weights"]}
            fits = same_structure(state.group("weights"))
            replies = members.ask("train", sent, valid=fits, gather=self.gathering())
            state["weights"] = self.merged(members, replies, state)
        for key, value in state.items():
            if key not in message:
                institution.notes[key] = value
        merged: dict[str, Value] = {"weights": state["weights"]}
        for name, field in self.steps()["train"].fields.items():
            if name != "weights" and field.merge is not None:  # of those who took part
                merged[name] = field.merge([reply[name] for reply in replies.values()])
        return merged

    # ------------------------------------------------------------------ at the silo

    @step(timed=False)
    def alone(self, silo: Silo, times: int = 1) -> None:
        """Local training by the silo's own training, for as many epochs as it has in the rounds: equal work.

        That is in the mean, where a fraction of the silos takes part in a round. Where the federation's
        learning rate falls, this one falls after as many epochs.
        """
        if not 1 <= times <= self.local_rounds:
            raise Refused(f"silo {silo.name!r}: got times = {times}; wants 1 to {self.local_rounds}")

        def until(round_: int) -> int:
            return max(1, round(round_ * self.usual_epochs * times * self.fraction))

        if self.decay == 1.0:
            silo.fit(LOCAL, epochs=until(self.rounds))
            return
        silo.network.restart()
        state, done = None, 0
        for rate, rounds in groupby(range(1, self.rounds + 1), self.rate):
            epochs = until(list(rounds)[-1]) - done
            if epochs:
                lr = silo.network.training.lr * rate
                state = silo.network.train(epochs=epochs, lr=lr, state=state)
            done += epochs
        silo.take_score(LOCAL)

    @step(structure=STRUCTURE)
    def begin(self, silo: Silo, vocabulary: list[str]) -> Message:
        """From now on the network has an output for each class of the vocabulary."""
        silo.network.widen(vocabulary)
        return {"structure": structure(silo.network.another().weights())}

    @step(
        weights=Shared(
            "weights", "untrained weights that everyone starts from; asked of one silo only", merge=first
        ),
        after="begin",
    )
    def initial(self, silo: Silo) -> Message:
        """The weights that everyone starts from."""
        return {"weights": silo.network.weights()}

    def rate(self, round: int) -> float:
        """What the learning rate is multiplied with in a round."""
        if not 1 <= round <= self.rounds:
            raise BadMessage(f"got round = {round}; wants 1 to {self.rounds}")
        past = round - 1 if self.decay_after is None else sum(round > last for last in self.decay_after)
        return float(self.decay**past)
