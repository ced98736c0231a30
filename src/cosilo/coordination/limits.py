"""What a silo holds an ask against before it computes anything: `[allow]`, and what the method could ask."""

import time
from collections import Counter

from cosilo.errors import Refused
from cosilo.protocol.allow import Allow
from cosilo.protocol.participant import Participant, Procedure, refusals
from cosilo.protocol.step import HELLO, Step
from cosilo.runs.silo_record import SiloRecord

_DAY = 24 * 3600.0


class Limits:
    """The limits of one run at one silo; what was done so far is read from its record."""

    def __init__(self, allow: Allow, silo: Participant, procedure: Procedure, record: SiloRecord) -> None:
        self._allow, self._procedure, self._record = allow, procedure, record
        self._where = f"silo {silo.name!r}"

    def check(self, step: Step) -> None:
        """Raise unless the step may be done now."""
        done = Counter(self._record.audit.steps)
        if step.name == HELLO:
            self._check_run()
        elif not done[HELLO]:
            raise Refused(f"{self._where}: step {step.name!r} came before {HELLO!r}")
        before = step.declared.after
        if before is not None and not done[before]:
            raise Refused(f"{self._where}: step {step.name!r} came before {before!r}")
        most = self._procedure.most_asks(step.name)
        if done[step.name] >= most:
            raise Refused(
                f"{self._where}: was asked for step {step.name!r} {done[step.name] + 1} times; "
                f"{self._procedure.name} with these parameters asks {most} times at most"
            )
        spent = self._record.audit.spent
        for what, so_far, allowed in (
            ("asks", spent.asks, self._allow.asks),
            ("seconds", spent.seconds, self._allow.seconds),
            ("bytes", spent.bytes, self._allow.bytes),
        ):
            if so_far > allowed or (what != "asks" and so_far == allowed):
                raise Refused(f"{self._where}: its [allow] {what} = {allowed:g} are used up in this run")

    def _check_run(self) -> None:
        procedure = self._procedure
        self._allow.check_method(self._where, procedure.name, procedure.parameters(), procedure.cautious)
        others = self._record.folder.parent.glob("*/audit.jsonl")
        begun = [path for path in others if time.time() - path.parent.stat().st_ctime < _DAY]
        if len(begun) > self._allow.runs_per_day:
            raise Refused(f"{self._where}: its [allow] runs_per_day = {self._allow.runs_per_day} are used up")


def is_beyond(procedure: Procedure, silo: Participant, allow: Allow) -> bool:
    """Whether a run goes beyond `[allow]` or `shares`: its `hello` is refused, whoever approves."""
    try:
        allow.check_method(silo.name, procedure.name, procedure.parameters(), procedure.cautious)
    except Refused:
        return True
    return bool(refusals(silo, procedure.name, procedure.needs()))


def kinds_sent(procedure: Procedure, silo: Participant) -> set[str]:
    """The kinds of fields that would leave a silo in a run; what it does not share stays."""
    steps = [step for name, step in procedure.steps().items() if procedure.uses(name)]
    asked = {field.kind for step in steps for field in step.fields.values()}
    return asked & {*silo.shares, "task"}


def in_words(procedure: Procedure, silo: Participant, allow: Allow, coordinator: str) -> list[str]:
    """What a run would send, to whom and how often, for the administrator who has to say yes or no."""
    sent = kinds_sent(procedure, silo)
    parameters = ", ".join(f"{name} = {value}" for name, value in procedure.parameters().items())
    lines = [f"The coordinator ({coordinator}) asks for a run of {procedure.name} ({parameters})."]
    sends, silent = [], []
    for name, step in sorted(procedure.steps().items()):
        if not procedure.uses(name):
            continue
        times = procedure.most_asks(name)
        often = "once" if times == 1 else f"at most {times} times"
        fields = {
            field: one
            for field, one in step.fields.items()
            if one.kind in sent and (allow.exact_scores or not one.exact)
        }
        for field, one in fields.items():
            sends.append(f"  {often}, step {name!r}: {field} ({one.kind}): {one.about}")
        if not fields:
            silent.append(f"{name} ({often})")
    lines += ["It would send to the coordinator:", *sends]
    if not allow.exact_scores:
        lines.append("Scores leave rounded: to hundredths, and numbers of instances to their first digit.")
    lines.append(f"It would also do, sending nothing but that it is done: {', '.join(silent) or 'nothing'}.")
    lines.append(
        f"In all at most {allow.asks} asks, {allow.seconds:g} seconds and {allow.bytes} bytes, by [allow]."
    )
    return lines
