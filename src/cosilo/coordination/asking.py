"""Sending asks, and what becomes of the answers: checks, journal, failures, quorum."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cosilo.errors import CosiloError, RunError
from cosilo.protocol.carrier import Answer, Ask, Carrier, Failure, FailureKind
from cosilo.protocol.events import Event, Happening, Observer
from cosilo.protocol.forms import Expected
from cosilo.protocol.message import Fields, Message, check, describe, payload
from cosilo.protocol.seal import Seal
from cosilo.protocol.step import HELLO, Step
from cosilo.protocol.wire import decode, encode
from cosilo.runs.journal import Arrival, Entry, Journal
from cosilo.text import plain

#: Raises BadMessage if a silo's reply is not what a method wants.
Check: TypeAlias = Callable[[str, Fields], None]
#: Takes in a silo's reply.
Gather: TypeAlias = Callable[[str, Fields], None]
#: Replies that wait in memory for those before them; others are read from disk again when it is their turn.
_WAITING = 8
#: Characters of a silo's failure that are kept.
_LINE = 1000


class SilosDoNotFit(RunError):
    """These silos and this method do not fit together; one line for each reason. Nothing was computed."""


class TooFew(RunError):
    """Fewer silos than the quorum answered a step."""


class _InOrder:
    """Hands over the replies of an ask in the order of its silos, each as soon as those before it are there.

    Sums in another order would differ in their last bits.
    """

    def __init__(self, entry: Entry, gather: Gather) -> None:
        self._entry, self._gather = entry, gather
        self._names = deque(entry.silos)
        self._answered: dict[str, Fields | None] = {}
        #: How many of these are in memory.
        self._held = 0

    def take(self, name: str, reply: Fields | None = None) -> None:
        """A silo has answered; without a reply it failed, or its reply is on disk."""
        reply = reply if self._held < _WAITING else None
        self._answered[name] = reply
        self._held += reply is not None
        while self._names and self._names[0] in self._answered:
            first = self._names.popleft()
            reply = self._answered.pop(first)
            self._held -= reply is not None
            if first in self._entry.arrivals:
                self._gather(first, self._entry.read(first) if reply is None else reply)


class Asking:
    """The asks of a run, one after the other; `timeout` and `quorum` are those of asks that name none."""

    def __init__(
        self,
        steps: Mapping[str, Step],
        carrier: Carrier,
        journal: Journal,
        observers: Sequence[Observer],
        quorum: float,
        timeout: float | None,
        contract: str = "",
    ) -> None:
        self._steps = steps
        self._carrier = carrier
        self._journal = journal
        self._observers = tuple(observers)
        self._quorum = quorum
        self._timeout = timeout
        #: The hash of the run's contract, which goes with every request.
        self._contract = contract
        #: The number of the last ask.
        self.number = 0
        #: What replies are held against, by silo: known when it has introduced itself.
        self.expected: dict[str, Expected] = {}
        #: The failures that stopped the run, by silo.
        self.failed: dict[str, Failure] = {}
        #: The seal of the last reply of each silo.
        self._seals = dict(journal.seals)

    def ask(
        self,
        names: list[str],
        step: str,
        message: Message | None,
        each: Callable[[str], Message] | None,
        valid: Check | None,
        gather: Gather | None,
        quorum: float | None,
        timeout: float | None,
    ) -> Entry:
        """Ask silos for a step, unless the journal has their replies; raise if too few are left."""
        self.number += 1
        entry = self._journal.entry(self.number, step, names, self._steps[step].declared.timed)
        line = None if gather is None else _InOrder(entry, gather)
        if entry.done and line:
            for name in names:
                line.take(name)
        if not entry.done:
            size, shared = payload(message or {}), encode(message or {})

            def body(name: str) -> bytes:
                own = each(name) if each else None
                entry.sent[name] = size if own is None else payload(own)
                return shared if own is None else encode(own)

            self._collect(entry, body, valid, line, timeout if timeout is not None else self._timeout)
            self._hold_quorum(entry, self._quorum if quorum is None else quorum)
        self._journal.close(entry)
        return entry

    def _collect(
        self,
        entry: Entry,
        body: Callable[[str], bytes],
        valid: Check | None,
        line: "_InOrder | None",
        timeout: float | None,
    ) -> None:
        """Send the asks that have no reply yet, and keep what comes back."""
        step = self._steps[entry.step]
        started = time.monotonic()
        there = entry.there
        for name, values in entry.seals.items():
            self._keep_seal(name, Seal.read(values) or Seal(entry.number))
        missing = [name for name in entry.silos if name not in there]
        for name in entry.silos:
            if name in there:
                body(name)  # for its size
                reply = self._replay(entry, step, name, valid)
                if line:
                    line.take(name, reply)
        self.tell(Happening.ASK, ask=entry.number, step=entry.step, silos=missing)

        def ask(name: str) -> Ask:
            return Ask(entry.number, entry.step, body(name), self._contract, self._seals.get(name))

        for answer in self._carrier.call(missing, ask, timeout):
            reply = self._receive(entry, step, answer, valid)
            if line:
                line.take(answer.silo, reply)
        entry.seconds = time.monotonic() - started
        self.tell(Happening.ANSWERED, ask=entry.number, step=entry.step, seconds=round(entry.seconds, 3))

    def _receive(self, entry: Entry, step: Step, answer: Answer, valid: Check | None) -> Fields | None:
        """Keep an answer, or note why it is none; returns what it says."""
        if isinstance(answer.content, Failure):
            failure = Failure(answer.content.kind, plain(answer.content.text)[:_LINE])
            self._keep_seal_of_failure(entry, answer)
            self._fail(entry, answer.silo, failure)
            return None
        accepted = self._accepted(entry, step, answer.silo, answer.content, valid)
        if isinstance(accepted, Failure):
            self._keep_seal_of_failure(entry, answer)
            self._fail(entry, answer.silo, accepted)
            return None
        reply, form = accepted
        seal = answer.seal or Seal(entry.number)
        arrival = Arrival(round(answer.seconds, 6), form, seal=seal.values())
        entry.keep(answer.silo, answer.content, arrival, answer.file)
        self._keep_seal(answer.silo, seal)
        self.tell(
            Happening.REPLY,
            ask=entry.number,
            step=entry.step,
            silo=answer.silo,
            seconds=round(answer.seconds, 3),
        )
        return reply

    def _keep_seal_of_failure(self, entry: Entry, answer: Answer) -> None:
        """Keep what a silo stated with a failure, or with a reply that is rejected: its log has that too."""
        if answer.seal is not None and self._keep_seal(answer.silo, answer.seal):
            entry.keep_seal(answer.silo, answer.seal.values())

    def _keep_seal(self, silo: str, seal: Seal) -> bool:
        """Keep a seal as the last of its silo, unless it is of a shorter log; return whether it is kept."""
        last = self._seals.get(silo)
        if last is not None and 0 < seal.length <= last.length:
            return False
        self._seals[silo] = seal
        return True

    def _replay(self, entry: Entry, step: Step, silo: str, valid: Check | None) -> Fields | None:
        """Take up a reply that arrived before a crash, in an ask that was not completed, like a fresh one."""
        accepted = self._accepted(entry, step, silo, entry.content(silo), valid)
        if isinstance(accepted, Failure):
            self._fail(entry, silo, accepted)
            return None
        reply, form = accepted
        entry.keep_again(silo, form)
        self._keep_seal(silo, Seal.read(entry.arrivals[silo].seal) or Seal(entry.number))
        return reply

    def _accepted(
        self, entry: Entry, step: Step, silo: str, content: bytes, valid: Check | None
    ) -> tuple[Fields, dict[str, dict[str, Any]]] | Failure:
        """Return a reply and the form of its fields, or the failure that it is rejected by."""
        entry.received[silo] = len(content)
        try:
            reply = self._checked(step, silo, content, valid)
            return reply, describe(reply, step.fields)
        except Exception as error:  # nothing that a silo sends stops the others
            what = str(error) if isinstance(error, CosiloError) else f"checking it: {type(error).__name__}"
            return Failure(FailureKind.REJECTED, f"silo {silo!r}: its reply was rejected: {what}")

    def _fail(self, entry: Entry, silo: str, failure: Failure) -> None:
        """Note why a silo gave no usable answer."""
        entry.failures[silo] = failure
        self.tell(
            Happening.FAILURE,
            ask=entry.number,
            step=entry.step,
            silo=silo,
            kind=failure.kind,
            text=failure.text,
        )

    def _checked(self, step: Step, silo: str, content: bytes, valid: Check | None) -> Fields:
        """What a reply says, if it is all that the step declares and the method wants."""
        reply = Fields(decode(content))
        check(reply, step.fields, self.expected.get(silo))
        if valid:
            valid(silo, reply)
        return reply

    def tell(self, what: Happening, **facts: object) -> None:
        """Tell whoever watches."""
        for observer in self._observers:
            observer(Event(what, facts))

    def _hold_quorum(self, entry: Entry, quorum: float) -> None:
        needed = math.ceil(quorum * len(entry.silos) - 1e-9)
        if len(entry.arrivals) < needed:
            reasons = "\n".join(failure.text for failure in entry.failures.values())
            self.failed = dict(entry.failures)
            away = (FailureKind.LOST, FailureKind.TIMEOUT)
            lost = any(failure.kind in away for failure in entry.failures.values())
            if entry.step == HELLO and not lost:  # who is away may fit: the run can be resumed with it
                raise SilosDoNotFit(reasons)
            raise TooFew(
                f"step {entry.step!r}: {len(entry.arrivals)} of {len(entry.silos)} silos answered, "
                f"the quorum is {needed}:\n{reasons}"
            )
