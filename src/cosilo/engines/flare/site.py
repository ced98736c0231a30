"""The silo's end of a FLARE job: the one function that the coordinator can call.

It stands in front of the silo's boundary, which is the same as on any engine: contract, policy, declared
fields, record and audit log. A job brings the contract of a run and the coordinator's certificate; the silo,
its data and its limits come from the silo's own file, and limits are read again before each step.
"""

import re
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

from nvflare.collab import collab

from cosilo.config.resolve import known_method
from cosilo.config.settings import MethodSettings
from cosilo.coordination.agreement import Limits, in_words, keep_contract, kinds_sent
from cosilo.coordination.boundary import Boundary
from cosilo.engines.flare import alterations
from cosilo.engines.flare.carrier import BUSY, OPENING
from cosilo.engines.flare.kit_manifest import check_kit
from cosilo.engines.flare.kit_settings import read_kit_settings
from cosilo.engines.flare.party_files import read_limits, read_silo
from cosilo.engines.flare.reach import address
from cosilo.engines.flare.signing import SealsOfSilo, Signatory, is_coordinator
from cosilo.engines.local.in_process import open_boundary
from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread
from cosilo.errors import BadMessage, ConfigError, CosiloError, Refused
from cosilo.protocol.carrier import Answer, Ask, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import NAME, Participant, Procedure
from cosilo.protocol.seal import Seal
from cosilo.runs import approval
from cosilo.runs.audit import AuditLog
from cosilo.runs.locks import locked
from cosilo.runs.silo_record import digest_of

alterations.send_bytes_only()
alterations.tell_no_contents()
#: In a silo's record: the certificate of the coordinator, which signs its seals.
COORDINATOR = "coordinator.crt"
#: How long another job may still hold the record of a run, in seconds.
_PATIENCE = 300.0


class Site:
    """A silo in a run; `contract` is what the coordinator says the run's contract is."""

    def __init__(self, run: str, contract: dict[str, Any], certificate: str) -> None:
        if not re.fullmatch(NAME, run):  # it becomes a folder here
            raise ConfigError(f"run {run!r}: expected letters, digits, '.', '_' and '-'")
        self.run, self.contract, self.certificate = run, contract, certificate
        #: One step at a time, and every one in the same thread.
        self._steps = ThreadPoolExecutor(1, initializer=OneThread)
        self._answers: dict[int, Future[Answer]] = {}
        #: What was asked last, all of it: anything else is another request, whatever its number.
        self._asked: tuple[object, ...] = ()
        self._lock = Lock()
        self._held = ExitStack()
        #: Set when it is ready, or has failed to get ready.
        self._opened = Event()
        self._boundary: Boundary | None = None
        #: Signs seals and checks them; None: nobody has keys.
        self._seals: SealsOfSilo | None = None
        #: What leaves the silo if it cannot take part: not why.
        self._problem: Failure | None = None

    @collab.init
    def open(self) -> None:
        """Start to get ready in the background; the first step waits for that."""
        keep_freed_memory()
        self._steps.submit(self._open, str(collab.site_name), Path(collab.workspace.get_root_dir()))

    def _open(self, name: str, kit: Path) -> None:
        """Get ready; if that fails, the coordinator learns so when it asks, and the owner is told why."""
        self._folder = kit / "runs" / self.run
        try:
            self._folder = self.folder(name, kit)
            # The job that a lost coordinator left behind may still be busy with a step here.
            self._held.enter_context(locked(self._folder, patience=_PATIENCE))
            contract = self.agreed()
            read_now = self.limits(kit)
            if read_now is not None:  # the contract is written down before anything else is done
                keep_contract(self._folder, contract, f"silo {name!r}", read_now())
            self._seals = self.seals_of(name, kit)
            silo, method = self.silo(name, kit)
            boundary = open_boundary(silo, method, contract, self._folder, read_limits=read_now)
            self._wait_for_approval(boundary, kit)
            silo.preload()
            self._boundary = boundary
        except Refused as error:
            self._give_up(name, "cannot take part", error)
            self._problem = Failure(FailureKind.REFUSED, str(error))
        except Exception as error:
            self._give_up(name, "cannot take part", error)
        finally:
            self._opened.set()

    def _give_up(self, name: str, what: str, error: Exception) -> Failure:
        """Do no more steps: the coordinator is told so, and the owner is told why."""
        self._boundary = None
        self._problem = Failure(FailureKind.ERROR, f"silo {name!r}: {what}; its own log says why")
        text = str(error) if isinstance(error, CosiloError) else "".join(traceback.format_exception(error))
        with suppress(OSError):  # the disk may be what failed
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / "log.txt").open("a", encoding="utf-8") as log:
                log.write(f"{what}: {text}\n")
        return self._problem

    def folder(self, name: str, kit: Path) -> Path:
        """Where the silo keeps its record of the run."""
        return Path(read_kit_settings(kit).runs) / self.run

    def agreed(self) -> Contract:
        """Return the contract that this job came with."""
        try:
            return Contract.read(self.contract)
        except BadMessage as error:
            raise Refused(str(error)) from None

    def limits(self, kit: Path) -> Callable[[], Limits] | None:
        """Return what reads the limits of the silo's own file; None: there are none."""
        return partial(read_limits, Path(read_kit_settings(kit).silo or ""))

    def seals_of(self, name: str, kit: Path) -> SealsOfSilo | None:
        """Return what signs the silo's seals and checks the coordinator's; None: nobody has keys."""
        check_kit(kit, "startup/rootCA.pem")
        authority = (kit / "startup" / "rootCA.pem").read_text(encoding="utf-8")
        if not is_coordinator(self.certificate, authority):
            raise Refused(f"silo {name!r}: the job's certificate is not that of the federation's coordinator")
        (self._folder / COORDINATOR).write_text(self.certificate, encoding="utf-8")
        return SealsOfSilo(self.run, name, Signatory.of(kit, "client"), self.certificate)

    def silo(self, name: str, kit: Path) -> tuple[Participant, Procedure]:
        """Return the silo of this kit, and what is asked of it."""
        contract = self.agreed()
        method = known_method(MethodSettings(use=contract.method, **contract.parameters), "the job")
        path = Path(read_kit_settings(kit).silo or "")
        silo = read_silo(path)
        if silo.name != name:
            raise CosiloError(
                f"{path}: name: got {silo.name!r}; expected {name!r}, which the kit is made for"
            )
        return silo, method

    def _wait_for_approval(self, boundary: Boundary, kit: Path) -> None:
        """Wait for the administrator, if the silo asks for that and the run is within its limits.

        A run beyond the limits is refused at every step, so there is nothing to approve.
        """
        agreement, silo = boundary.agreement, boundary.silo
        try:
            allow = agreement.check_run().allow
        except Refused:
            return
        if allow is None or allow.approve != "ask":
            return
        host, port = address(kit)
        words = in_words(boundary.procedure, silo, allow, f"{host}:{port}", agreement.contract)
        account = silo.privacy_lines(kinds_sent(boundary.procedure, silo))
        with suppress(Refused):  # the refusal is told at every step
            approval.wait_for(self._folder, agreement.subject(), words, account)

    @collab.publish
    def answer(
        self, number: int, step: str, body: bytes, contract: str = "", last: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Begin a step, unless it has begun; return the answer if there is one soon.

        `last` is the seal of the last reply that the coordinator has from here.
        """
        if not _asked_by_coordinator():
            return _REFUSED
        asked = (number, step, digest_of(body) if isinstance(body, bytes) else body, contract, last)
        with self._lock:
            if asked != self._asked:
                for late in self._answers.values():  # the coordinator no longer waits for it
                    late.cancel()
                self._asked = asked
                self._answers = {
                    number: self._steps.submit(self._answered, number, step, body, contract, last)
                }
        return self._soon(number)

    @collab.publish
    def wait(self, number: int) -> dict[str, Any]:
        """The answer to a step that has begun, if there is one soon."""
        return self._soon(number) if _asked_by_coordinator() else _REFUSED

    def _soon(self, number: int) -> dict[str, Any]:
        expected = self._answers.get(number)
        if expected is None:
            return {"failure": ["error", f"was not asked for {number}"]}
        try:
            answer = expected.result(BUSY)
        except TimeoutError:
            return {"busy": True} if self._opened.is_set() else OPENING
        said: dict[str, Any] = {"reply": answer.content, "seconds": answer.seconds}
        if isinstance(answer.content, Failure):
            failure = answer.content
            said = {"failure": [failure.kind.value, failure.text]}  # FLARE carries no enumerations
        if answer.seal is not None:
            said["seal"] = answer.seal.values()
            if self._seals is not None:
                said["certificate"] = self._seals.certificate
        return said

    def _answered(self, number: int, step: str, body: bytes, contract: str, last: object) -> Answer:
        if self._boundary is None:
            failure = self._problem or Failure(FailureKind.ERROR, "is not ready")
            if failure.kind is FailureKind.REFUSED and isinstance(number, int) and isinstance(step, str):
                log = AuditLog(self._folder / "audit.jsonl")
                log.came(number, step, body, digest_of(body))
                log.failed(number, step, failure.text)
            return Answer("", failure)
        name = self._boundary.silo.name
        texts = isinstance(step, str) and isinstance(contract, str)
        if not (type(number) is int and texts and isinstance(body, bytes)):
            text = f"silo {name!r}: expected a number, a step, bytes and the hash of a contract"
            return Answer(name, Failure(FailureKind.REFUSED, text))
        ask = Ask(number, step, body, contract, None if last is None else Seal.read(last))
        problem = None if last is None else self._seal_problem(ask.last, contract)
        try:
            if problem is not None:
                text = f"silo {name!r}: the seal that came with request {number} {problem}"
                return self._boundary.refuse(ask, text)
            answer = self._boundary.answer(ask)
        except Exception as error:  # such as a full disk; FLARE would send the whole traceback
            return Answer(name, self._give_up(name, "cannot continue", error))
        if self._seals is None or answer.seal is None:
            return answer
        return replace(answer, seal=self._seals.sign(answer.seal, contract))

    def _seal_problem(self, seal: Seal | None, contract: str) -> str | None:
        if seal is None:
            return "is not one"
        return None if self._seals is None else self._seals.problem(seal, contract)

    @collab.final
    def close(self) -> None:
        """Close the silo; a step that is still running ends with this process."""
        if self._boundary is not None:
            self._boundary.close()
        self._held.close()


_REFUSED = {"failure": ["refused", "only the coordinator may ask"]}


def _asked_by_coordinator() -> bool:
    return bool(collab.caller == "server")
