"""The coordinator's side of the one contract: `ask`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cosilo.coordination.asking import Asking, Check, Gather, SilosDoNotFit
from cosilo.coordination.meeting import Introductions
from cosilo.errors import BadMessage, ConfigError
from cosilo.protocol.carrier import Carrier, Failure
from cosilo.protocol.contract import Contract
from cosilo.protocol.events import Happening, Observer
from cosilo.protocol.findings import Findings
from cosilo.protocol.message import Fields, Message, Value
from cosilo.protocol.metrics import METRIC_KINDS
from cosilo.protocol.participant import Procedure
from cosilo.protocol.scores import metrics_in, overall_score, scores_in
from cosilo.protocol.stage import Measure, Score, Stage
from cosilo.protocol.step import EVALUATE, HELLO, WANTS
from cosilo.protocol.task import Task
from cosilo.runs.journal import Journal, Mark, Replies
from cosilo.simulated_time.time_limit import TimeLimit

F = TypeVar("F", bound=Findings)
#: What a run finds out besides its method's findings, by key of its result.
_SCORES: Mapping[Measure, str] = {
    Measure.OWN: "scores",
    Measure.CONTROL: "control",
    Measure.OFFERED: "offered",
    Measure.LABELLING: "labelling",
    Measure.JOINT: "joint",
}


class Silos:
    """All silos, as a method's `coordinate` sees them: names, tasks, and something to ask.

    Every completed ask is journalled. When a run is resumed the method starts from the top and asks again:
    journalled asks answer from disk, the first unfinished one goes out. Methods are handed one; its
    parameters are for the code that runs the coordinator.

    Parameters
    ----------
    names : iterable of str
        The silos.
    procedure : Procedure
        What is known of the method: its steps, and what it needs.
    carrier : Carrier
        What takes asks to the silos.
    journal : Journal
        Where completed asks are kept.
    observers : sequence of Observer, default ()
        Called with every event.
    seed : int, default 0
        Of the coordinator's own source of chance.
    quorum : float, default 0.5
        The fraction of the silos asked that has to answer a step.
    timeout : float, default None
        The seconds that a silo has for a step; None: as long as it takes.
    within : str, default None
        The institution whose members they are; None at the server.
    limit : TimeLimit, default None
        How much simulated time the run may take; None: any.
    contract : Contract, default None
        The run's contract; None: that of these silos, this method and this seed.

    Attributes
    ----------
    names : list of str
        The silos.
    tasks : dict of Task
        The task of each, by name.
    vocabulary : Task
        The union of all tasks.
    rng : numpy.random.Generator
        The coordinator's own source of chance: a method that draws from it can be replayed.
    pool_size : int
        How many instances the pool has.
    needs_all : bool
        Whether the run stops, to be resumed, if a single silo does not answer.
    marked : Fields or None
        The state of the last `mark`, if the run has one.

    Examples
    --------
    >>> def coordinate(method, silos: Silos) -> None:
    ...     trained = silos.ask("train")
    ...     sizes = silos.ask("count", to=trained)
    ...     print(sum(reply.integer("size") for reply in sizes.values()))
    """

    def __init__(
        self,
        names: Iterable[str],
        procedure: Procedure,
        carrier: Carrier,
        journal: Journal,
        observers: Sequence[Observer] = (),
        *,
        seed: int = 0,
        quorum: float = 0.5,
        timeout: float | None = None,
        within: str | None = None,
        limit: TimeLimit | None = None,
        contract: Contract | None = None,
    ) -> None:
        self.names = list(names)
        self.within = within
        #: Whether the run stops, to be resumed, if a single silo does not answer.
        self.needs_all = quorum == 1.0
        #: The coordinator's own source of chance: a method that draws from it can be replayed.
        self.rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        self._seed = seed
        self._procedure = procedure
        self._journal = journal
        if contract is None:
            contract = Contract.of(procedure, seed, silos=self.names)
        self.contract = contract
        self._asking = Asking(procedure.steps(), carrier, journal, observers, quorum, timeout, contract.hash)
        self._known = Introductions()
        self._met = 0
        self._limit = limit
        #: The last ask before the present round, and whether no round follows it: None if that is not known.
        self._before_round = 0
        self._last_round: bool | None = None
        #: How many instances the pool has, and the names of its classes if it is labelled.
        self.pool_size = 0
        self.pool_classes: list[str] = []
        #: The classes it trains on, and those it wants: none if it has no target.
        self.training: dict[str, list[str]] = {}
        self.wanted: dict[str, list[str]] = {}
        #: Scores and failures so far, as they will stand in the run's result.
        self.findings: dict[str, Any] = {"scores": {}, "failures": []}
        self._told: Findings | None = None

    # ------------------------------------------------------------------ meeting

    def meet(self, pool: str | None = None, pool_size: int = 0, pool_classes: Iterable[str] = ()) -> None:
        """Ask all silos who they are, and check that they fit the method; nothing is computed yet."""
        self.pool_size, self.pool_classes = pool_size, list(pool_classes)
        problems = self._introduce(self.ask(HELLO, quorum=1.0), pool)
        if not problems:
            self._meet_targets()
            try:
                self._procedure.check(self.tasks)
                self._procedure.check_targets(self.training, self.wanted)
            except ConfigError as error:
                problems = [str(error)]
        if problems:
            raise SilosDoNotFit("\n".join(problems))
        self._met = self._asking.number
        mark = self._journal.last_mark
        if mark is not None:
            self._asking.number, self.findings = mark.number, mark.findings
            self._last_round = mark.over
            self.rng.bit_generator.state = mark.rng

    def meet_late(
        self, name: str, others: Mapping[str, Fields], after: int, pool: str | None, pool_size: int
    ) -> None:
        """Meet one silo after the last ask of a run; `others` is how they introduced themselves."""
        self.pool_size, self._asking.number, self._met = pool_size, after, after
        self._introduce(others, pool)
        problems = self._introduce(self.ask(HELLO, to=[name], quorum=1.0), pool)
        if problems:
            raise SilosDoNotFit("\n".join(problems))
        self._procedure.check(self.tasks)

    def _introduce(self, replies: Mapping[str, Fields], pool: str | None) -> list[str]:
        """Remember how silos introduce themselves; a line for each that does not fit."""
        problems = self._known.add(replies, pool, self._procedure.needs_pool)
        self._asking.expected = self._known.expected(self.pool_size)
        return problems

    def _meet_targets(self) -> None:
        """Ask silos with a target which classes they want; without such silos nothing is asked."""
        self.training = {name: list(task.classes) for name, task in self.tasks.items()}
        self.wanted = {name: [] for name in self.tasks}
        aiming = [name for name, offers in self._known.offers.items() if "target" in offers]

        def within_task(name: str, reply: Fields) -> None:
            for field in ("training", "wanted"):
                if strange := [one for one in reply.names(field) if one not in self.tasks[name].classes]:
                    raise BadMessage(f"field {field!r} names {strange[0]!r}, which is not in its task")

        if aiming:
            for name, reply in self.ask(WANTS, to=aiming, valid=within_task, quorum=1.0).items():
                self.training[name], self.wanted[name] = reply.names("training"), reply.names("wanted")

    @property
    def tasks(self) -> dict[str, Task]:
        """The task of each silo, by name."""
        return self._known.tasks

    @property
    def vocabulary(self) -> Task:
        """The union of all tasks."""
        return self._known.vocabulary

    def vocabulary_for(self, name: str, *public: str) -> list[str]:
        """The vocabulary as one silo may know it: its own classes and public ones by name, others by number.

        An order is all that networks need of others' classes.
        """
        return self._known.vocabulary_for(name, *public)

    @property
    def failed(self) -> dict[str, Failure]:
        """The failures that stopped the run, by silo."""
        return self._asking.failed

    # ------------------------------------------------------------------ asking

    def ask(
        self,
        step: str,
        message: Message | None = None,
        *,
        each: Callable[[str], Message] | None = None,
        to: Iterable[str] | None = None,
        valid: Check | None = None,
        gather: Gather | None = None,
        quorum: float | None = None,
        timeout: float | None = None,
    ) -> Replies:
        """Ask silos to do a step, and wait for their replies.

        A silo that fails, is late or sends something other than the step declares is in the replies'
        `failures`. If too few are left the run stops, and can be resumed.

        Parameters
        ----------
        step : str
            The name of the step.
        message : Message, default None
            What all of them are sent; None: nothing.
        each : callable, default None
            Instead of `message`: what a silo is sent, by name.
        to : iterable of str, default None
            Who is asked; None: all.
        valid : callable, default None
            A further check, `valid(name, reply)`, that raises BadMessage.
        gather : callable, default None
            Called with each usable reply, `gather(name, reply)`, in the order of the silos, while others
            still work: a sum is taken as they come, and none is read again. The replies have it as
            `gathered`.
        quorum : float, default None
            The fraction of those asked that has to answer; None: that of the run.
        timeout : float, default None
            The seconds each of them has; None: those of the run.

        Returns
        -------
        Replies
            What they replied, by silo: `Fields` that are read by type.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from cosilo import Federation, Method, Shared, Silo, step
        >>> class Census(Method):
        ...     name = "census"
        ...
        ...     def coordinate(self, silos):
        ...         replies = silos.ask("count", {"factor": 10}, to=["a"])
        ...         print({name: reply.integer("size") for name, reply in replies.items()})
        ...
        ...     @step(size=Shared("size", "ten times the training instances"))
        ...     def count(self, silo, factor):
        ...         return {"size": factor * silo.size}
        >>> X, y = np.eye(8), list("abababab")
        >>> silos = [Silo(name, X, y, GaussianNB(), test=None, shares=["size"]) for name in ("a", "b")]
        >>> run = Federation(silos, method=Census()).run(mkdtemp())
        {'a': 80}
        """
        wanted = set(self.names if to is None else to)
        names = [name for name in self.names if name in wanted]
        entry = self._asking.ask(names, step, message, each, valid, gather, quorum, timeout)
        for name, failure in entry.failures.items():
            found = {"ask": entry.number, "step": entry.step, "silo": name}
            self.findings["failures"].append({**found, "kind": failure.kind, "text": failure.text})
        return Replies(entry, gather)

    def warn(self, text: str) -> None:
        """Say something about the run so far that its owners should know: a line for whoever watches."""
        self._asking.tell(Happening.WARNING, text=text)

    # ------------------------------------------------------------------ scores and findings

    def offering(self, *kinds: str, among: Iterable[str] | None = None) -> list[str]:
        """The silos that can and may share something of one of these kinds."""
        names = self.names if among is None else among
        return [name for name in names if self._known.offers.get(name, frozenset()) & set(kinds)]

    def evaluate(self, stage: Stage, to: Iterable[str]) -> float | None:
        """Collect the scores that silos took after a stage, from those that share metrics.

        One ask brings all: of the silo's model; where the truth about unlabelled target points is known, of
        their labels; and of a global network, of which all silos' scores together are one: that is returned.
        """
        joint = None
        replies = self._evaluated(stage, to)
        found = {name: scores_in(reply) for name, reply in replies.items()}
        metrics = {name: more for name, reply in replies.items() if (more := metrics_in(reply))}
        if metrics:
            self.findings.setdefault("metrics", {})[str(stage)] = metrics
        for measure, key in _SCORES.items():
            scores = {name: one[measure] for name, one in found.items() if measure in one}
            if measure is Measure.JOINT:
                if scores:
                    together = overall_score(scores.values())
                    self.findings.setdefault(key, {})[str(stage)] = _as_finding(together)
                    joint = together.accuracy
            elif scores or measure is Measure.OWN:
                by_silo = {name: _as_finding(score) for name, score in scores.items()}
                self.findings.setdefault(key, {})[str(stage)] = by_silo
        return joint

    def collect_scores(
        self, stage: Stage, to: Iterable[str] | None = None
    ) -> dict[str, dict[Measure, Score]]:
        """The scores that silos took after a stage and share, by silo."""
        return {name: scores_in(reply) for name, reply in self._evaluated(stage, to).items()}

    def _evaluated(self, stage: Stage, to: Iterable[str] | None) -> Replies:
        """What silos reply that share something about their scores."""
        willing = self.offering("metrics", "labelling", *METRIC_KINDS, among=to)
        return self.ask(
            EVALUATE,
            {"stage": str(stage)},
            to=willing,
            valid=_whole_scores,
            quorum=0.0,
        )

    def found(self, kind: type[F]) -> F:
        """The method's findings, to be added to: those of the last mark if the run was resumed, or new ones.

        They are kept with every mark, and are part of the run's result.
        """
        if not isinstance(self._told, kind):
            self._told = kind.model_validate(self.findings)
        return self._told

    def result(self) -> dict[str, Any]:
        """Everything that was found out: scores, failures, and the method's findings."""
        told = {} if self._told is None else self._told.model_dump(mode="json")
        return {**self.findings, **told}

    # ------------------------------------------------------------------ rounds

    def rounds(self, done: int, most: int) -> Iterator[int]:
        """The numbers of the rounds to come; none follows one after which there is no time for another.

        Parameters
        ----------
        done : int
            How many there were before.
        most : int
            How many there are at most.

        Examples
        --------
        >>> def coordinate(method, silos: Silos) -> None:
        ...     state = silos.marked
        ...     for number in silos.rounds(0 if state is None else state.integer("round"), most=10):
        ...         trained = silos.ask("train")
        ...         if silos.last_round:
        ...             silos.evaluate(FEDERATED, to=trained)
        ...         silos.mark(round=number)
        """
        for number in range(done + 1, most + 1):
            if self._last_round:
                return
            self._before_round = self._asking.number
            self._last_round = True if number == most else None
            yield number
            if self.last_round and number < most:
                self.findings["stopped_after"] = number

    @property
    def last_round(self) -> bool:
        """Whether the present round is the last: known when all that takes time in it is done."""
        if self._last_round is None:
            self._last_round = self._limit is not None and not self._limit.allows_another(
                self._before_round, self._asking.number
            )
        return self._last_round

    def chance_of_round(self, number: int) -> np.random.Generator:
        """Chance that is a round's own: the same for every method, whatever else it draws from `rng`."""
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(1, number)))

    def end_rounds(self) -> None:
        """Make the present round the last."""
        self._last_round = True

    def mark(self, **state: Value) -> None:
        """Keep the state at the end of a round: a resumed run continues from here (`marked`).

        It replaces the journal before it, so that a run does not grow with its rounds.
        """
        rng: dict[str, Any] = dict(self.rng.bit_generator.state)
        over = bool(self._last_round)
        self._journal.mark(Mark(self._asking.number, self._met, state, self.result(), rng, over))

    def go_on_from(self, number: int) -> None:
        """Continue with the ask after this one; those up to here will not be replayed."""
        self._asking.number = number
        self._journal.drop(self._met, number)

    @property
    def marked(self) -> Fields | None:
        """The state of the last mark, if the run has one."""
        return None if self._journal.last_mark is None else Fields(self._journal.last_mark.state)


def _as_finding(score: Score) -> dict[str, float]:
    return {"accuracy": score.accuracy, "instances": score.instances}


def _whole_scores(silo: str, reply: Fields) -> None:
    """An accuracy comes with the number of its instances."""
    scores_in(reply)
