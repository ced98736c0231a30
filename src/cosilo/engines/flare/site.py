"""The silo's end of a FLARE job: the one function that the coordinator can call.

It stands in front of the silo's boundary, which is the same as on any engine: policy, declared fields, record
and audit log. A job brings the name of a method and its parameters; the silo, its data and its policy come
from the silo's own file.
"""

import re
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any

from nvflare.collab import collab

from cosilo.config.resolve import known_method
from cosilo.config.settings import MethodSettings
from cosilo.coordination.boundary import Boundary
from cosilo.coordination.limits import in_words, is_beyond, kinds_sent
from cosilo.engines.flare import alterations, approval
from cosilo.engines.flare.carrier import BUSY, OPENING
from cosilo.engines.flare.kit_settings import read_kit_settings
from cosilo.engines.flare.party_files import read_silo
from cosilo.engines.flare.reach import address
from cosilo.engines.local.in_process import open_boundary
from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread
from cosilo.errors import ConfigError, CosiloError
from cosilo.protocol.carrier import Answer, Ask, Failure, FailureKind
from cosilo.protocol.participant import NAME, Participant, Procedure
from cosilo.runs.locks import locked

alterations.send_bytes_only()
alterations.tell_no_contents()
#: How long another job may still hold the record of a run, in seconds.
_PATIENCE = 300.0


class Site:
    """A silo in a run; `method` has its name under `use`, and its parameters."""

    def __init__(self, run: str, seed: int, method: dict[str, Any]) -> None:
        if not re.fullmatch(NAME, run):  # it becomes a folder here
            raise ConfigError(f"run {run!r}: wants letters, digits, '.', '_' and '-'")
        self.run, self.seed, self.method = run, seed, method
        #: One step at a time, and every one in the same thread.
        self._steps = ThreadPoolExecutor(1, initializer=OneThread)
        self._answers: dict[int, Future[Answer]] = {}
        self._lock = Lock()
        self._held = ExitStack()
        #: Set when it is ready, or has failed to get ready.
        self._opened = Event()
        self._boundary: Boundary | None = None
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
            silo, method = self.silo(name, kit)
            allow = silo.allow
            if allow is not None and allow.approve == "ask" and not is_beyond(method, silo, allow):
                host, port = address(kit)
                words = in_words(method, silo, allow, f"{host}:{port}")
                approval.wait_for(self._folder, words, silo.privacy_lines(kinds_sent(method, silo)))
            silo.preload()
            self._boundary = open_boundary(silo, method, self.seed, self._folder)
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

    def silo(self, name: str, kit: Path) -> tuple[Participant, Procedure]:
        """The silo of this kit, and what is asked of it."""
        method = known_method(MethodSettings(**self.method), "the job")
        path = Path(read_kit_settings(kit).silo or "")
        silo = read_silo(path)
        if silo.name != name:
            raise CosiloError(f"{path}: name: got {silo.name!r}; wants {name!r}, which the kit is made for")
        return silo, method

    @collab.publish
    def answer(self, number: int, step: str, body: bytes, after: int = 0) -> dict[str, Any]:
        """Begin a step, unless it has begun; the answer if there is one soon."""
        if not _asked_by_coordinator():
            return _REFUSED
        with self._lock:
            if number not in self._answers:
                for late in self._answers.values():  # the coordinator no longer waits for it
                    late.cancel()
                self._answers = {number: self._steps.submit(self._answered, number, step, body, after)}
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
        if isinstance(answer.content, Failure):
            failure = answer.content
            return {"failure": [failure.kind.value, failure.text]}  # FLARE carries no enumerations
        return {"reply": answer.content, "seconds": answer.seconds}

    def _answered(self, number: int, step: str, body: bytes, after: int) -> Answer:
        if self._boundary is None:
            return Answer("", self._problem or Failure(FailureKind.ERROR, "is not ready"))
        name = self._boundary.silo.name
        numbers = isinstance(number, int) and isinstance(after, int)
        if not (numbers and isinstance(step, str) and isinstance(body, bytes)):
            text = f"silo {name!r}: wants a number, a step and bytes"
            return Answer(name, Failure(FailureKind.REFUSED, text))
        try:
            return self._boundary.answer(Ask(number, step, body, after))
        except Exception as error:  # such as a full disk; FLARE would send the whole traceback
            return Answer(name, self._give_up(name, "cannot continue", error))

    @collab.final
    def close(self) -> None:
        """Close the silo; a step that is still running ends with this process."""
        if self._boundary is not None:
            self._boundary.close()
        self._held.close()


_REFUSED = {"failure": ["refused", "only the coordinator may ask"]}


def _asked_by_coordinator() -> bool:
    return bool(collab.caller == "server")
