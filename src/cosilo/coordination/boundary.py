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

from cosilo.coordination.institution import Institution
from cosilo.coordination.limits import Limits
from cosilo.errors import (
    BadMessage,
    ConfigError,
    CosiloError,
    DataError,
    LearnerError,
    MembersError,
    Refused,
    RunError,
)
from cosilo.protocol.carrier import Answer, Ask, Carrier, Failure, FailureKind
from cosilo.protocol.forms import shown
from cosilo.protocol.incoming import check_incoming
from cosilo.protocol.message import Message, check, describe
from cosilo.protocol.participant import Participant, Procedure, refusals
from cosilo.protocol.step import HELLO, Step
from cosilo.protocol.wire import decode, encode
from cosilo.runs.silo_record import SiloRecord, digest_of
from cosilo.silo.silo import Silo

#: What somebody else's coordinator learns of a failure.
_CATEGORIES: dict[type[Exception], str] = {
    LearnerError: "its learner failed",
    BadMessage: "a message is not as it was declared",
    ConfigError: "its settings do not fit",
    DataError: "its data does not fit",
    MembersError: "too few of its members could do it",
}
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
    seed
        The run's seed; each step gets its own, derived from it.
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
        seed: int,
        folder: Path,
        members_carrier: MembersCarrier,
        within: str | None = None,
    ) -> None:
        self.silo = silo
        self.procedure = procedure
        self._seed = seed
        self._path = silo.name if within is None else f"{within}/{silo.name}"
        self._steps = procedure.steps()
        self._record = SiloRecord(folder)
        self._record.check_identity(silo, but=["shares"])  # each step asks the policy of the day
        silo.seed = seed_for(seed, self._path, 0)
        allow = silo.allow
        self._limits = None if allow is None else Limits(allow, silo, procedure, self._record)
        if isinstance(silo, Institution):
            silo.lead(procedure, seed, self._record, members_carrier(silo.silos, silo.name))
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
            self._record.audit.came(ask.number, ask.step, ask.body, digest_of(ask.body))
            self._record.check_newest(ask.after)
            reply = self._record.reply(ask.number, ask.step, ask.body)
            if reply is None:
                message, seconds = self._compute(ask)
                reply = encode(message)
                whole = sha256(reply).hexdigest()
                self._record.complete(ask.number, ask.step, ask.body, reply, whole, self.silo)
            else:
                message, whole = decode(reply), sha256(reply).hexdigest()
            fields = describe(message, self._steps[ask.step].fields)
            self._record.audit.left(ask.number, ask.step, fields, len(reply), whole, seconds)
            self.silo.left({field["kind"] for field in fields.values()})
            return Answer(self.silo.name, reply, seconds, self._record.kept)
        except RunError:
            raise  # the silo's own disk fails: the run cannot continue
        except Exception as error:
            return Answer(self.silo.name, self._fail(ask, error))
        finally:
            self._release()

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
        step = self._allowed(ask.step)
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

    def _allowed(self, name: str) -> Step:
        """The step, if the policy allows all that it shares; joining asks for all the method will need."""
        step = self._steps.get(name)
        if step is None or not self.procedure.uses(name):
            raise Refused(f"silo {self.silo.name!r}: {self.procedure.name} has no step {shown(name)}")
        if self._limits is not None:
            self._limits.check(step)
        needs = {one.kind: f"step {name!r}, field {field!r}" for field, one in step.fields.items()}
        if step.declared.voluntary and needs.keys() & self.silo.shares:
            needs = {}  # it sends what it may: `_hold_to_policy`
        if name == HELLO:
            needs = dict(self.procedure.needs())
        for line in refusals(self.silo, self.procedure.name, needs):
            raise Refused(line)
        return step

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

    def _fail(self, ask: Ask, error: Exception) -> Failure:
        # The text of a foreign exception may quote private data: it stays in the silo's own log.
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        story = "".join(traceback.format_exception(error))
        self._record.log(f"ask {ask.number} ({ask.step}):\n{story}{type(cause).__name__}: {_one_line(cause)}")
        text = self._told(ask.step, error)
        kinds: dict[type[Exception], FailureKind] = {
            Refused: FailureKind.REFUSED,
            LearnerError: FailureKind.LEARNER,
        }
        self._record.audit.failed(ask.number, ask.step, text)
        if self._untrained is None:
            self._record.restore(self.silo)
        return Failure(kinds.get(type(error), FailureKind.ERROR), text)

    def _told(self, step: str, error: Exception) -> str:
        """The line that leaves. What the silo refuses, and why, everybody may know.

        Other texts of cosilo may have sizes, classes or names of columns in them: they are for whoever has
        all silos on one machine. Somebody else's coordinator learns the step, and what kind of thing failed.
        """
        prefix = f"silo {self.silo.name!r}"
        if self._limits is not None and not isinstance(error, Refused):
            what = next((what for kind, what in _CATEGORIES.items() if isinstance(error, kind)), "it failed")
            return f"{prefix}: step {shown(step)}: {what}; its own log says why"
        text = str(error) if isinstance(error, CosiloError) else f"{step} raised {type(error).__name__}"
        return text if text.startswith(prefix) else f"{prefix}: {text}"


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
