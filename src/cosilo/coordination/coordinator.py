"""The coordinator's side of the one contract: `ask`."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cosilo.errors import BadMessage, ConfigError, RunError
from cosilo.methods.base import Method, Step
from cosilo.progress import bar
from cosilo.protocol.engine import Answer, Engine
from cosilo.protocol.message import Expected, Message, Value, check, decode, encode
from cosilo.protocol.task import Task, vocabulary
from cosilo.runs.events import Events
from cosilo.runs.journal import Arrival, Entry, Failure, Journal, Mark, Replies
from cosilo.runs.silo_record import describe
from cosilo.silo.silo import joint, labelling


class NotMet(RunError):
    """These silos and this method do not go together; one line for each reason. Nothing was computed."""


class TooFew(RunError):
    """Fewer silos than the quorum answered a step."""


class Silos:
    """All silos, as a method sees them: names, tasks, and something to ask.

    `within` is the institution whose members they are; None at the server.

    Every completed ask is journalled. When a run is resumed the method starts from the top and asks again:
    journalled asks answer from disk, the first unfinished one goes out.
    """

    def __init__(
        self,
        names: Iterable[str],
        method: Method,
        engine: Engine,
        journal: Journal,
        events: Events,
        *,
        seed: int = 0,
        quorum: float = 0.5,
        timeout: float | None = None,
        within: str | None = None,
    ) -> None:
        self.names = list(names)
        self.within = within
        #: The coordinator's own source of chance: a method that draws from it can be replayed.
        self.rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        self._steps = method.steps()
        self._engine = engine
        self._journal = journal
        self._events = events
        self._quorum = quorum
        self._timeout = timeout
        self._number = 0
        #: How many instances the pool has, and the names of its classes if it is labelled.
        self.pool_size = 0
        self.pool_classes: list[str] = []
        self._expected: dict[str, Expected] = {}
        self._offers: dict[str, frozenset[str]] = {}
        #: The failures that stopped the run, by silo.
        self.failed: dict[str, Failure] = {}
        #: The task of each silo, by name.
        self.tasks: dict[str, Task] = {}
        #: The classes it trains on, and those it wants: none if it has no target.
        self.training: dict[str, list[str]] = {}
        self.wanted: dict[str, list[str]] = {}
        #: What the run has found out; a report reads it.
        self.findings: dict[str, Any] = {"scores": {}, "failures": []}

    def meet(
        self, method: Method, pool: str | None, pool_size: int, pool_classes: Iterable[str] = ()
    ) -> None:
        """Ask everyone who they are, and hold it against what the method needs; nothing is computed yet."""
        self.pool_size, self.pool_classes = pool_size, list(pool_classes)
        problems = []
        for name, reply in self.ask("hello", quorum=1.0).items():
            theirs, classes = str(reply["pool"]), reply["classes"]
            assert isinstance(classes, list)
            if method.needs_pool and theirs != pool:
                problems.append(other_pool(name, theirs, pool))
            self.tasks[name] = Task(tuple(classes))
            self._expected[name] = Expected(classes=len(classes), pool=pool_size)
            self._offers[name] = frozenset(reply["offers"])  # type: ignore[arg-type]
        if not problems:
            self._meet_targets()
            try:
                method.check(self.tasks)
                method.check_targets(self.training, self.wanted)
            except ConfigError as error:
                problems = [str(error)]
        if problems:
            raise NotMet("\n".join(problems))
        mark = self._journal.last_mark
        if mark is not None:
            self._number, self.findings = mark.number, mark.findings
            self.rng.bit_generator.state = mark.rng

    def _meet_targets(self) -> None:
        """Ask silos with a target what they want; if there are none, nothing is asked."""
        self.training = {name: list(task.classes) for name, task in self.tasks.items()}
        self.wanted = {name: [] for name in self.tasks}
        aiming = [name for name, offers in self._offers.items() if "target" in offers]
        if aiming:
            for name, reply in self.ask("wants", to=aiming, quorum=1.0).items():
                training, wanted = reply["training"], reply["wanted"]
                assert isinstance(training, list)
                assert isinstance(wanted, list)
                self.training[name], self.wanted[name] = training, wanted

    @property
    def vocabulary(self) -> Task:
        """The union of all tasks."""
        return vocabulary(self.tasks.values())

    def ask(
        self,
        step: str,
        message: Message | None = None,
        *,
        each: Callable[[str], Message] | None = None,
        to: Iterable[str] | None = None,
        valid: Callable[[str, Message], None] | None = None,
        quorum: float | None = None,
        timeout: float | None = None,
    ) -> Replies:
        """Ask silos to do a step, and wait for their replies.

        The message is the same for all, or `each(name)`. A silo that fails, is late or answers with something
        else than the step declares, or that `valid(name, reply)` raises BadMessage for, is in `failures`;
        if fewer than the fraction `quorum` of those asked are left, the run stops, and can be resumed.
        """
        wanted = set(self.names if to is None else to)
        names = [name for name in self.names if name in wanted]
        self._number += 1
        entry = self._journal.entry(self._number, step, names)
        if not entry.done:
            self._carry_out(entry, message, each, valid, timeout if timeout is not None else self._timeout)
            self._hold_quorum(entry, self._quorum if quorum is None else quorum)
        self._journal.close(entry)
        for name, failure in entry.failures.items():
            found = {"ask": entry.number, "step": entry.step, "silo": name}
            self.findings["failures"].append({**found, "kind": failure.kind, "text": failure.text})
        return Replies(entry)

    def _carry_out(
        self,
        entry: Entry,
        message: Message | None,
        each: Callable[[str], Message] | None,
        valid: Callable[[str, Message], None] | None,
        timeout: float | None,
    ) -> None:
        declared = self._steps[entry.step]
        shared = encode(message or {})
        body = (lambda name: encode(each(name))) if each else (lambda name: shared)
        started = time.monotonic()
        missing = []
        for name in entry.silos:
            # A reply that arrived before a crash, in an ask that was not completed.
            if entry.has(name):
                entry.arrivals[name] = Arrival(0.0, describe(entry.read(name), dict(declared.shares)))
            else:
                missing.append(name)
        self._events.add("ask", ask=entry.number, step=entry.step, silos=missing)
        with bar(entry.step, len(missing), shown=self.within is None) as advance:
            for answer in self._engine.call(entry.number, entry.step, missing, body, timeout):
                self._receive(entry, declared, answer, valid)
                advance()
        entry.seconds = time.monotonic() - started
        self._events.add("answered", ask=entry.number, step=entry.step, seconds=round(entry.seconds, 3))

    def _receive(
        self,
        entry: Entry,
        declared: Step,
        answer: Answer,
        valid: Callable[[str, Message], None] | None,
    ) -> None:
        failure = answer.content if isinstance(answer.content, Failure) else None
        if isinstance(answer.content, bytes):
            try:
                reply = decode(answer.content)
                check(reply, declared.shares, self._expected.get(answer.silo))
                if valid:
                    valid(answer.silo, reply)
                fields = describe(reply, dict(declared.shares))
                entry.keep(answer.silo, answer.content, Arrival(round(answer.seconds, 6), fields))
            except BadMessage as error:
                failure = Failure("rejected", f"silo {answer.silo!r}: its reply was rejected: {error}")
        facts: dict[str, Any] = {"ask": entry.number, "step": entry.step, "silo": answer.silo}
        if failure:
            entry.failures[answer.silo] = failure
            self._events.add("failure", **facts, kind=failure.kind, text=failure.text)
        else:
            self._events.add("reply", **facts, seconds=round(answer.seconds, 3))

    def _hold_quorum(self, entry: Entry, quorum: float) -> None:
        needed = math.ceil(quorum * len(entry.silos) - 1e-9)
        if len(entry.arrivals) < needed:
            reasons = "\n".join(failure.text for failure in entry.failures.values())
            self.failed = dict(entry.failures)
            if entry.step == "hello":
                raise NotMet(reasons)
            raise TooFew(
                f"step {entry.step!r}: {len(entry.arrivals)} of {len(entry.silos)} silos answered, "
                f"the quorum is {needed}:\n{reasons}"
            )

    def offering(self, kind: str, among: Iterable[str] | None = None) -> list[str]:
        """Who can and will share something of a kind."""
        names = self.names if among is None else among
        return [name for name in names if kind in self._offers.get(name, ())]

    def evaluate(self, stage: str, to: Iterable[str]) -> None:
        """Collect the scores that silos took after `stage`, from those that share metrics.

        Where the truth about unlabelled target points is known, how good their labels are is asked too.
        """
        names = list(to)
        scores = self.ask("evaluate", {"stage": stage}, to=self.offering("metrics", names), quorum=0.0)
        self.findings["scores"][stage] = {name: dict(reply) for name, reply in scores.items()}
        willing = self.offering("labelling", names)
        if willing:
            scores = self.ask("evaluate", {"stage": labelling(stage)}, to=willing, quorum=0.0)
            found = self.findings.setdefault("labelling", {})
            found[stage] = {name: dict(reply) for name, reply in scores.items()}

    def evaluate_jointly(self, stage: str, to: Iterable[str]) -> None:
        """Collect the scores of the global model among all classes: its accuracy on the joint test set."""
        found = self.joint_score(joint(stage), to)
        if found is not None:
            self.findings.setdefault("joint", {})[stage] = found

    def joint_score(self, stage: str, to: Iterable[str] | None = None) -> dict[str, Any] | None:
        """The accuracy on all test instances together of those that share it; None if nobody does."""
        replies = self.ask("evaluate", {"stage": stage}, to=self.offering("metrics", to), quorum=0.0)
        scores: list[Any] = list(replies.values())
        instances = sum(score["instances"] for score in scores)
        if not instances:
            return None
        accuracy = sum(score["accuracy"] * score["instances"] for score in scores) / instances
        return {"accuracy": accuracy, "instances": instances}

    def mark(self, **state: Value) -> None:
        """Keep the state at the end of a round: a resumed run goes on from here (`marked`).

        It replaces the journal before it, so that a run does not grow with its rounds.
        """
        rng: dict[str, Any] = dict(self.rng.bit_generator.state)
        self._journal.mark(Mark(self._number, state, self.findings, rng))

    def go_on_from(self, number: int) -> None:
        """The next ask is the one after this; those up to here will not be replayed."""
        self._number = number
        self._journal.drop(number)

    @property
    def marked(self) -> Message | None:
        """The state of the last mark, if the run has one."""
        return None if self._journal.last_mark is None else self._journal.last_mark.state

    def tell(self, **findings: Any) -> None:
        """Put something the method found out into the run's results."""
        self.findings.update(findings)


def other_pool(silo: str, theirs: str | None, pool: str | None) -> str:
    """The line about a silo that holds another pool than the federation."""
    return (
        f"silo {silo!r}: its pool has fingerprint {theirs or 'none'}, the federation's {pool}; "
        "every silo needs the same pool, in the same order, and the same labels if it has any"
    )
