"""Agreements: the contract of a run, a silo's own limits, and whether a step may be done.

A coordinator has a contract with the silo (`cosilo.protocol.contract`). At first contact the silo writes it
into its record, before anything else; every later job and every single request has to come with the same one.
Silos of other owners also have limits of their own: what they share, and `[allow]`. Limits are no part of the
contract. They are read again before each step, so the owner may tighten them at any time.

Before every step `Agreement.check` asks, in this order:

1. Is it the contract of the record? Another contract is another run, and needs another name.
2. Is the contract within the limits? What was refused once stays refused.
3. If the limits ask for approval: did the administrator approve this contract, under these limits?
4. Does the step come when the method could ask for it, and not more often? A request counts when it comes,
   whether it succeeds or fails. The same bytes under the same number do not count again; other bytes under
   that number are refused.
5. If it has to be computed: is anything left of the requests, seconds and bytes that the limits grant?

Where all silos have one owner (no `[allow]`), only the first question is asked.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cosilo.errors import BadMessage, Refused, RunError
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Ask
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant, Procedure, refusals
from cosilo.protocol.step import HELLO, Step
from cosilo.runs import approval
from cosilo.runs.audit import AuditLog
from cosilo.runs.durable_files import explain_write_errors, read_json, write_json
from cosilo.runs.silo_record import digest_of
from cosilo.version import PROTOCOL

#: In the silo's record of a run: the contract, since when, and why it was refused, if it was.
CONTRACT = "contract.json"
_DAY = 24 * 3600.0
#: How many changes of a contract are named, and the most characters of each.
_MOST, _LONGEST = 3, 200


@dataclass(frozen=True)
class Limits:
    """The limits of a silo's owner for any coordinator: the kinds that may leave, and `[allow]`."""

    shares: frozenset[str]
    allow: Allow | None

    @property
    def digest(self) -> str:
        """A digest of all of it."""
        allow = None if self.allow is None else self.allow.model_dump(mode="json")
        text = json.dumps([sorted(self.shares), allow], sort_keys=True)
        return sha256(text.encode()).hexdigest()


def keep_contract(folder: Path, contract: Contract, where: str, limits: Limits) -> None:
    """Write a contract down at first contact; raise if the record has another one, or was begun without.

    A record of an earlier version of cosilo has no contract: between organisations it is refused, and where
    all silos have one owner it takes the contract over, with a line in its log.
    """
    path, allow = folder / CONTRACT, limits.allow
    known = contract_in(folder)
    if known is not None:
        if known.hash != contract.hash:
            raise Refused(
                f"{where}: run {folder.name!r} was begun under another contract "
                f"({_changes_in_words(known, contract)}); submit a new run under another name"
            )
        return
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # models, notes and logs are for the silo's owner only
    begun_before = (folder / "audit.jsonl").exists() or (folder / "identity.json").exists()
    if begun_before and allow is not None:
        raise Refused(
            f"{where}: its record of run {folder.name!r} has no contract, since an earlier version of cosilo "
            "began it; submit a new run under another name"
        )
    if begun_before:
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"the record is of an earlier version, without a contract: took over {contract.hash}\n")
    written: dict[str, Any] = {"contract": contract.values(), "hash": contract.hash, "at": time.time()}
    if allow is not None and _begun_today(folder.parent) >= allow.runs_per_day:
        written["refused"] = f"{where}: its [allow] runs_per_day = {allow.runs_per_day} are used up"
    write_json(path, written)


def _changes_in_words(known: Contract, contract: Contract) -> str:
    """Return what differs between two contracts, in a line that leaves room for what to do about it."""
    changes = known.changes(contract)
    words = [change if len(change) <= _LONGEST else f"{change[:_LONGEST]}…" for change in changes[:_MOST]]
    if len(changes) > _MOST:
        words.append(f"and {len(changes) - _MOST} more")
    return "; ".join(words)


def contract_in(folder: Path) -> Contract | None:
    """Return the contract in a silo's record; None if the record has none."""
    path = folder / CONTRACT
    if not path.exists():
        return None
    try:
        return Contract.read(read_json(path)["contract"])
    except (BadMessage, KeyError, TypeError) as error:
        raise RunError(f"{path}: is damaged ({error}); restore it or start a new run") from None


def _begun_today(runs: Path) -> int:
    """Count the runs that came to this silo within the last 24 hours."""
    since = time.time() - _DAY
    return sum(read_json(path).get("at", 0.0) > since for path in runs.glob(f"*/{CONTRACT}"))


class Agreement:
    """The contract and the limits of one run at one silo.

    Parameters
    ----------
    contract
        What the coordinator of this job says the contract is.
    silo
        The silo that is asked; its policy follows the limits.
    procedure
        What is known of the method.
    folder
        The silo's record of the run.
    read_limits
        Reads the limits of the day; None: those that the silo was made with.
    """

    def __init__(
        self,
        contract: Contract,
        silo: Participant,
        procedure: Procedure,
        folder: Path,
        read_limits: Callable[[], Limits] | None = None,
    ) -> None:
        self.contract = contract
        self._silo, self._procedure, self._folder = silo, procedure, folder
        self._where = f"silo {silo.name!r}"
        made_with = Limits(silo.shares, silo.allow)
        self._read_limits = read_limits or (lambda: made_with)
        #: Why the record does not go with the contract; None: it does.
        self._problem: Refused | None = None
        try:
            keep_contract(folder, contract, self._where, made_with)
        except Refused as error:
            self._problem = error

    def limits(self) -> Limits:
        """Read the limits of the day; the silo's policy is then what they say."""
        limits = self._read_limits()
        self._silo.shares, self._silo.allow = limits.shares, limits.allow
        return limits

    # ------------------------------------------------------------------ the run

    def check_run(self) -> Limits:
        """Raise unless the record has this contract, and the contract is within the limits."""
        if self._problem is not None:
            raise self._problem
        limits = self.limits()
        if limits.allow is None:
            return limits
        path = self._folder / CONTRACT
        known = read_json(path)
        if "refused" in known:
            raise Refused(str(known["refused"]))
        try:
            self._check_versions()
            self._check_limits(limits.allow)
        except Refused as error:
            write_json(path, {**known, "refused": str(error)})
            raise
        return limits

    def _check_versions(self) -> None:
        """Raise unless both parties mean the same by the contract."""
        contract, procedure = self.contract, self._procedure
        if contract.protocol != PROTOCOL:
            raise Refused(
                f"{self._where}: speaks version {PROTOCOL} of the protocol, the coordinator version "
                f"{contract.protocol}; install releases of cosilo that go together, then start a new run"
            )
        told = json.loads(json.dumps(procedure.told_silos(procedure.parameters())))
        if contract.method != procedure.name or dict(contract.parameters) != told:
            raise Refused(
                f"{self._where}: reads the parameters of {contract.method} in the contract in another way; "
                "install the same release of cosilo everywhere, then start a new run"
            )

    def _check_limits(self, allow: Allow) -> None:
        """Raise unless method, parameters and all that would leave are within the limits."""
        procedure = self._procedure
        allow.check_method(self._where, procedure.name, procedure.parameters(), procedure.cautious)
        for line in refusals(self._silo, procedure.name, procedure.needs()):
            raise Refused(line)

    def subject(self) -> approval.Subject:
        """Return what an approval has to be for: this contract, under the limits of the day."""
        return approval.Subject(self.contract.hash, self.limits().digest)

    # ------------------------------------------------------------------ a step

    def check(self, ask: Ask, step: Step, log: AuditLog) -> None:
        """Raise unless the step may be done now; the request is in the audit log already."""
        if ask.contract != self.contract.hash:
            raise Refused(
                f"{self._where}: request {ask.number} came with another contract than the run was begun "
                "under; submit a new run under another name"
            )
        limits = self.check_run()
        if limits.allow is None:
            return
        if limits.allow.approve == "ask" and not approval.is_approved(self._folder, self.subject()):
            raise Refused(
                f"{self._where}: run {self._folder.name!r} is not approved under the limits that the silo "
                "has now; let its administrator approve it, then resume the run"
            )
        self._check_order(step, log)
        self._check_count(ask, step, log)

    def _check_order(self, step: Step, log: AuditLog) -> None:
        """Raise if the step needs another one that was not done before it."""
        done = set(log.steps)
        for before in (HELLO, step.declared.after):
            if before is not None and step.name != HELLO and before not in done:
                raise Refused(f"{self._where}: step {step.name!r} came before {before!r}")

    def _check_count(self, ask: Ask, step: Step, log: AuditLog) -> None:
        """Raise if the step was asked for too often, or its number came with other bytes before."""
        first = log.first[ask.number]
        if (first.step, first.digest) != (step.name, digest_of(ask.body)):
            raise Refused(f"{self._where}: request {ask.number} came a second time with different content")
        times = first.times
        most = self._procedure.most_asks(step.name)
        if times > most:
            raise Refused(
                f"{self._where}: was asked for step {step.name!r} {times} times; "
                f"{self._procedure.name} with these parameters asks {most} times at most"
            )

    def check_budget(self, log: AuditLog) -> None:
        """Raise if the requests, seconds or bytes of the limits are used up; asked before computing only."""
        allow, spent = self.limits().allow, log.spent
        if allow is None:
            return
        for what, so_far, allowed in (
            ("asks", spent.asks, allow.asks),
            ("seconds", spent.seconds, allow.seconds),
            ("bytes", spent.bytes, allow.bytes),
        ):
            if so_far > allowed or (what != "asks" and so_far == allowed):
                raise Refused(f"{self._where}: its [allow] {what} = {allowed:g} are used up in this run")


def kinds_sent(procedure: Procedure, silo: Participant) -> set[str]:
    """Return the kinds of fields that would leave a silo in a run; what it does not share stays."""
    steps = [step for name, step in procedure.steps().items() if procedure.uses(name)]
    asked = {field.kind for step in steps for field in step.fields.values()}
    return asked & {*silo.shares, "task"}


def in_words(
    procedure: Procedure, silo: Participant, allow: Allow, coordinator: str, contract: Contract
) -> list[str]:
    """Return what a run would send, to whom and how often, for the administrator who has to say yes or no."""
    sent = kinds_sent(procedure, silo)
    parameters = ", ".join(f"{name} = {value}" for name, value in procedure.parameters().items())
    lines = [f"The coordinator ({coordinator}) asks for a run of {procedure.name} ({parameters})."]
    lines.append(f"Your answer is for this {contract.in_words()}; settings sha256 {contract.settings[:16]}.")
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
