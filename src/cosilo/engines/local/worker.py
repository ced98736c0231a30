"""A worker process that owns some silos for the whole run."""

import ctypes
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from cosilo.coordination.boundary import Boundary
from cosilo.engines.local.in_process import open_boundary
from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread
from cosilo.errors import CosiloError, RunError
from cosilo.protocol.carrier import Answer, Ask, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant, Procedure
from cosilo.protocol.seal import Seal

# Where it is safe a worker is forked: it starts in milliseconds and shares the data with this process.
_context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


class Worker:
    """This side of a worker process. Asks and answers are bytes on a pipe: a JSON head, then the message."""

    def __init__(
        self, silos: Sequence[Participant], procedure: Procedure, contract: Contract, folder: Path
    ) -> None:
        self.owns = {silo.name for silo in silos}
        self._arguments = (list(silos), procedure, contract, folder)
        self._start()

    def _start(self) -> None:
        self.connection, theirs = _context.Pipe()
        arguments = (theirs, self.connection, os.getpid(), *self._arguments)
        self._process = _context.Process(target=_serve, args=arguments, daemon=True)  # type: ignore[attr-defined]
        self._process.start()
        theirs.close()
        self._last_body: bytes | None = None

    def send(self, name: str, ask: Ask) -> None:
        """Hand over an ask; a message that is the same as the last one is not sent again."""
        same = ask.body is self._last_body
        self._last_body = ask.body
        head = {"silo": name, "number": ask.number, "step": ask.step, "same": same}
        head |= {"contract": ask.contract, "last": None if ask.last is None else ask.last.values()}
        # A worker that died is noticed when its answer is received.
        with suppress(BrokenPipeError):
            self.connection.send_bytes(json.dumps(head).encode())
            if not same:
                self.connection.send_bytes(ask.body)

    def receive(self, name: str) -> Answer:
        """The answer; if the process died instead, it is restarted and the silo counts as lost."""
        try:
            head = json.loads(self.connection.recv_bytes())
            if head["ok"]:
                file = None if head["file"] is None else Path(head["file"])
                content = self.connection.recv_bytes() if file is None else file.read_bytes()
                return Answer(name, content, head["seconds"], file, Seal.read(head["seal"]))
        except (EOFError, ConnectionError):
            how = self.restart()
            text = f"silo {name!r}: its worker process died ({how}) in the middle of the step"
            return Answer(name, Failure(FailureKind.LOST, text))
        if "broken" in head:
            raise RunError(head["broken"])
        failure = Failure(FailureKind(head["kind"]), head["text"])
        return Answer(name, failure, seal=Seal.read(head["seal"]))

    def restart(self) -> str:
        """Kill and restart the process; its silos continue from their records. Returns how it had ended."""
        self._process.join(timeout=0.2)
        code = self._process.exitcode
        self.stop()
        self._start()
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """End the process, whatever it is doing: everything that it completed is on disk."""
        self.connection.close()
        self._process.kill()
        self._process.join()


def _serve(
    mine: Connection,
    parents: Connection,
    parent: int,
    silos: list[Participant],
    procedure: Procedure,
    contract: Contract,
    folder: Path,
) -> None:
    parents.close()
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's to handle
    OneThread()
    keep_freed_memory()
    owned = {silo.name: silo for silo in silos}
    opened: dict[str, Boundary] = {}
    body = b""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            head = json.loads(mine.recv_bytes())
            if not head["same"]:
                body = mine.recv_bytes()
            name = head["silo"]
            try:
                if name not in opened:
                    opened[name] = open_boundary(owned[name], procedure, contract, folder / name)
                last = Seal.read(head["last"])
                answer = opened[name].answer(Ask(head["number"], head["step"], body, head["contract"], last))
            except CosiloError as error:  # the silo cannot even be opened, or its disk fails
                mine.send_bytes(json.dumps({"ok": False, "broken": str(error)}).encode())
                continue
            content = answer.content
            seal = None if answer.seal is None else answer.seal.values()
            if isinstance(content, Failure):
                failed = {"ok": False, "kind": content.kind, "text": content.text, "seal": seal}
                mine.send_bytes(json.dumps(failed).encode())
                continue
            # A large reply is not sent through the pipe: it is read where the silo keeps it.
            file = None if answer.file is None else str(answer.file)
            done = {"ok": True, "seconds": answer.seconds, "file": file, "seal": seal}
            mine.send_bytes(json.dumps(done).encode())
            if file is None:
                mine.send_bytes(content)


def _die_with(parent: int) -> None:
    """End with the coordinator, however it ends: an orphan must not write into a run that is resumed."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
