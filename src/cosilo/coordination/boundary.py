"""A silo's boundary: every ask comes in here and every reply goes out here, on every engine."""

import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import numpy as np

from cosilo.coordination.agreement import Agreement
from cosilo.coordination.institution import Institution
from cosilo.errors import BadMessage, CosiloError, LearnerError, OtherRecord, Refused, RunError
from cosilo.protocol.carrier import Answer, Ask, Carrier, Failure, FailureKind
from cosilo.protocol.forms import shown
from cosilo.protocol.incoming import check_incoming, takes_arrays
from cosilo.protocol.message import Message, check, describe
from cosilo.protocol.participant import Participant, Procedure, refusals
from cosilo.protocol.seal import Seal
from cosilo.protocol.step import HELLO, Step
from cosilo.protocol.wire import decode, encode
from cosilo.runs.silo_record import SiloRecord, digest_of
from cosilo.silo.silo import Silo

#: The most bytes of a request for a step that takes no arrays.
_MOST_PLAIN = 2**22
#: Makes a carrier to the members of the institution with this name.
MembersCarrier: TypeAlias = Callable[[Sequence[Participant], str], Carrier]


def seed_for(seed: int, name: str, number: int) -> int:
    """The seed of one step of one silo: the same on every engine, whatever else runs and in any order."""
    key = int.from_bytes(sha256(name.encode()).digest()[:8], "big")
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(key >> 32, key & 0xFFFFFFFF, number))
    return int(sequence.generate_state(1)[0])


class Boundary:
    """What stands between a silo and the coordinator: policy, declared fields, record, audit log.

    Parameters
    ----------
    silo
        The silo behind it.
    procedure
        What is known of the method.
    agreement
        The run's contract, whose seed each step's seed is derived from, and the silo's limits.
    folder
        Where the silo keeps its record.
    members_carrier
        Makes what an institution asks its members through.
    within
        The institution whose member the silo is, if it is one. A member's seeds are made of both names, and
        between its steps only its data stays in memory: there may be hundreds.
    """

    def __init__(
        self,
        silo: Participant,
        procedure: Procedure,
        agreement: Agreement,
        folder: Path,
        members_carrier: MembersCarrier,
        within: str | None = None,
    ) -> None:
        self.silo = silo
        self.procedure = procedure
        self.agreement = agreement
        self._seed = seed = agreement.contract.seed
        self._path = silo.name if within is None else f"{within}/{silo.name}"
        self._steps = procedure.steps()
        self._record = SiloRecord(folder)
        self._record.check_identity(silo, but=["shares"])  # each step asks the policy of the day
        silo.seed = seed_for(seed, self._path, 0)
        if isinstance(silo, Institution):
            carrier = members_carrier(silo.silos, silo.name)
            silo.lead(procedure, agreement.contract, self._record, carrier)
        elif isinstance(silo, Silo):
            silo.record = folder.resolve()
            about = {"method": procedure.name, "parameters": procedure.parameters(), "seed": seed}
            about |= silo.about()
            self._record.introduce(about, silo.learner)
            silo.hold_out_test_data()
        #: A member's learner before any training, which takes hardly any memory.
        self._untrained = None if within is None else silo.learner
        if self._untrained is None:
            self._record.restore(silo)

    def close(self) -> None:
        """Close what the silo opened."""
        self.silo.close()

    def answer(self, ask: Ask) -> Answer:
        """Do the step, or say in one line why not; what leaves is logged before it leaves."""
        seconds = 0.0
        try:
            self._record.audit.came(ask.number, ask.step, ask.body, digest_of(ask.body), ask.last)
            if ask.last is not None:
                self._check_last(ask.last)
            step = self._step(ask.step)
            self._check_length(ask, step)
            self.agreement.check(ask, step, self._record.audit)
            reply = self._record.reply(ask.number, ask.step, ask.body)
            if reply is None:
                message, seconds = self._compute(ask)
                reply = encode(message)
                whole = sha256(reply).hexdigest()
                self._record.complete(ask.number, ask.step, ask.body, reply, whole, self.silo)
            else:
                message, whole = decode(reply), sha256(reply).hexdigest()
            fields = describe(message, self._steps[ask.step].fields)
            seal = self._record.audit.seal(ask.number, digest_of(ask.body), whole)
            self._record.audit.left(ask.number, ask.step, fields, len(reply), whole, seconds)
            self.silo.left({field["kind"] for field in fields.values()})
            return Answer(self.silo.name, reply, seconds, self._record.kept, seal)
        except RunError:
            raise  # the silo's own disk fails: the run cannot continue
        except Exception as error:
            return self._fail(ask, error)
        finally:
            self._release()

    def refuse(self, ask: Ask, why: str) -> Answer:
        """Log a request whose seal is not good, and refuse it before anything else is looked at.

        The refusal has no seal: what the coordinator has seen of the log must not be forgotten.
        """
        self._record.audit.came(ask.number, ask.step, ask.body, digest_of(ask.body))
        self._record.audit.failed(ask.number, ask.step, why)
        return Answer(self.silo.name, Failure(FailureKind.REFUSED, why))

    def _recall(self, step: Step) -> None:
        """Restore a member from its record, with its model if the step needs it."""
        if self._untrained is not None:
            self.silo.learner = deepcopy(self._untrained)
            self._record.restore(self.silo, model=step.declared.needs_model)

    def _release(self) -> None:
        """Drop what a member has learnt and noted from memory; its record has it."""
        if self._untrained is not None:
            self.silo.learner = self._untrained
            self.silo.forget()

    def _compute(self, ask: Ask) -> tuple[Message, float]:
        """The reply, and how long the step took: by the processor, since silos compete for those of a machine
        that simulates them, and without judging, which is no part of a method.
        """
        step = self._step(ask.step)
        self.agreement.check_budget(self._record.audit)
        self._check_policy(step)
        self._recall(step)
        self.silo.seed = seed_for(self._seed, self._path, ask.number)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            content = _READ(ask.body, step)
            self.silo.judging, began = 0.0, time.thread_time()
            message = self.silo.perform(step, content, ask.number) or {}
            seconds = time.thread_time() - began - self.silo.judging
        for warning in caught:
            text = str(warning.message).strip()
            self._record.log(f"ask {ask.number} ({ask.step}): {warning.category.__name__}: {text}")
        check(message, step.fields)
        self._hold_to_policy(message, step)
        return message, max(0.0, seconds)

    def _check_last(self, seal: Seal) -> None:
        """Raise unless the record is the one that the coordinator has seen the last reply of.

        If both are on one machine, the run cannot go on with the record as it is; else the silo refuses.
        """
        answered = max(self._record.audit.answered, default=0)
        self._record.check_newest(answered if seal.failed else max(seal.number, answered))
        try:
            self._record.audit.check_seal(seal, f"silo {self.silo.name!r}")
        except Refused as error:
            if self.silo.allow is None:
                raise RunError(str(error)) from None
            raise

    def _check_length(self, ask: Ask, step: Step) -> None:
        """Raise if a request has more bytes than the step may come with, before any of them is read."""
        if step.declared.longest is not None and not isinstance(self.silo, Institution):
            most = step.declared.longest(self.silo)
        elif takes_arrays(step.run):
            return
        else:
            most = _MOST_PLAIN
        if len(ask.body) > most:
            raise Refused(
                f"silo {self.silo.name!r}: request {ask.number} has {len(ask.body)} bytes; "
                f"step {step.name!r} takes at most {most} here"
            )

    def _step(self, name: str) -> Step:
        """Return the step of that name, if the method asks for it with its parameters."""
        step = self._steps.get(name)
        if step is None or not self.procedure.uses(name):
            raise Refused(f"silo {self.silo.name!r}: {self.procedure.name} has no step {shown(name)}")
        return step

    def _check_policy(self, step: Step) -> None:
        """Raise unless the policy allows all that the step shares; joining asks for all the method needs."""
        needs = {one.kind: f"step {step.name!r}, field {name!r}" for name, one in step.fields.items()}
        if step.declared.voluntary and needs.keys() & self.silo.shares:
            needs = {}  # it sends what it may: `_hold_to_policy`
        if step.name == HELLO:
            needs = dict(self.procedure.needs())
        for line in refusals(self.silo, self.procedure.name, needs):
            raise Refused(line)

    def _hold_to_policy(self, message: Message, step: Step) -> None:
        """Raise if a field is there that the policy does not allow: a voluntary step may have any."""
        there = {step.fields[name].kind: f"step {step.name!r}, field {name!r}" for name in message}
        for line in refusals(self.silo, self.procedure.name, there):
            raise Refused(line)
        exact = [name for name in message if step.fields[name].exact]
        if exact and not self.silo.exact_scores:
            raise Refused(
                f"silo {self.silo.name!r}: step {step.name!r}, field {exact[0]!r} tells how much data it "
                "has: its own file allows that with exact_scores = true in [allow]"
            )

    def _fail(self, ask: Ask, error: Exception) -> Answer:
        # The text of a foreign exception may quote private data: it stays in the silo's own log.
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        story = "".join(traceback.format_exception(error))
        self._record.log(f"ask {ask.number} ({ask.step}):\n{story}{type(cause).__name__}: {_one_line(cause)}")
        failure = self._told(ask.step, error)
        seal = None
        if not isinstance(error, OtherRecord):  # what the coordinator has seen must not be forgotten
            line = sha256(failure.text.encode()).hexdigest()
            seal = self._record.audit.seal(ask.number, digest_of(ask.body), line, failed=True)
        self._record.audit.failed(ask.number, ask.step, failure.text)
        if self._untrained is None:
            self._record.restore(self.silo)
        return Answer(self.silo.name, failure, seal=seal)

    def _told(self, step: str, error: Exception) -> Failure:
        """Return what leaves of a failure.

        What the silo refuses by policy, form or contract, and why, everybody may know: none of that depends
        on private data. Anything else may. Where somebody else coordinates it leaves as one and the same
        line, whatever failed; where all silos have one owner, as what it is.
        """
        prefix = f"silo {self.silo.name!r}"
        if isinstance(error, Refused):
            text = str(error)
            return Failure(FailureKind.REFUSED, text if text.startswith(prefix) else f"{prefix}: {text}")
        if self.silo.allow is not None:
            text = f"{prefix}: step {shown(step)} failed; its own log says why"
            return Failure(FailureKind.ERROR, text)
        text = str(error) if isinstance(error, CosiloError) else f"{step} raised {type(error).__name__}"
        kind = FailureKind.LEARNER if isinstance(error, LearnerError) else FailureKind.ERROR
        return Failure(kind, text if text.startswith(prefix) else f"{prefix}: {text}")


class _Reading:
    """What came with an ask, if the step takes it; the error is about nothing but that.

    Silos that share a process often get the same bytes one after another, such as the global weights: they
    are read and checked once. Nobody can write into what was read.
    """

    def __init__(self) -> None:
        self._last: tuple[bytes, str, Message] = (b"", "", {})

    def __call__(self, body: bytes, step: Step) -> Message:
        before, name, content = self._last
        if before is not body or name != step.name:
            try:
                content = decode(body)
                check_incoming(step.run, content)
            except BadMessage as error:
                raise Refused(str(error)) from error
            self._last = body, step.name, content
        return {field: dict(value) if isinstance(value, dict) else value for field, value in content.items()}


_READ = _Reading()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
