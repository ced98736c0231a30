"""The local engine: all silos on this machine, in this process or in worker processes."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path

from cosilo.coordination.boundary import Ask, Boundary
from cosilo.engines.local.threads import OneThread
from cosilo.engines.local.worker import Worker
from cosilo.methods.base import Method
from cosilo.protocol.engine import Answer
from cosilo.protocol.participant import Participant
from cosilo.runs.journal import Failure

Body = Callable[[str], bytes]


class LocalEngine:
    """Silos on this machine: `workers=0` runs them in this process, one after the other.

    With workers, each process owns some of the silos for the whole run; their data and models stay there.
    A step that takes longer than its timeout is stopped with its worker, and the worker is started again.
    In process a step cannot be stopped: its reply is refused when it comes too late.

    `within` is the institution whose members the silos are, if they are; these have no workers.
    """

    def __init__(self, silos: Sequence[Participant], workers: int = 0, *, within: str | None = None) -> None:
        self._silos = list(silos)
        self._within = within
        self._count = min(workers, len(self._silos))
        self._workers: list[Worker] = []
        self._boundaries: dict[str, Boundary] = {}
        self._threads: OneThread | None = None

    def open(self, method: Method, seed: int, folder: Path) -> None:
        """Start the workers, or cap this process at one thread."""
        if self._count == 0:
            if self._within is None:  # else the engine of the institution has seen to it
                self._threads = OneThread()
            self._boundaries = {
                s.name: Boundary(s, method, seed, folder / s.name, self._within) for s in self._silos
            }
            return
        for silo in self._silos:
            silo.preload()
        for place in range(self._count):
            owned = self._silos[place :: self._count]
            self._workers.append(Worker(owned, method, seed, folder))

    def close(self) -> None:
        """Stop the workers; the silos of this process then hold what their records say."""
        for worker in self._workers:
            worker.stop()
        self._workers = []
        for boundary in self._boundaries.values():
            boundary.close()
        self._boundaries = {}
        if self._threads:
            self._threads.release()
            self._threads = None

    def call(
        self, number: int, step: str, silos: Sequence[str], body: Body, timeout: float | None
    ) -> Iterator[Answer]:
        """Ask the silos for a step."""
        if self._workers:
            yield from self._call_workers(number, step, silos, body, timeout)
        else:
            for name in silos:
                started = self._now()
                content = self._boundaries[name].answer(Ask(number, step, body(name)))
                seconds = self._now() - started
                if timeout is not None and seconds > timeout:
                    content = _too_late(name, timeout)
                yield Answer(name, content, seconds)

    def _now(self) -> float:
        """The wall clock; of members, whose seconds are for simulated time only, the processor's.

        Institutions compete for the processors of the machine that simulates them, as they would not.
        """
        return time.monotonic() if self._within is None else time.thread_time()

    def _call_workers(
        self, number: int, step: str, silos: Sequence[str], body: Body, timeout: float | None
    ) -> Iterator[Answer]:
        # One step at a time per worker, so that a timeout is that of one silo and not of a queue.
        waiting = {worker: deque(name for name in silos if name in worker.owns) for worker in self._workers}
        busy: dict[Worker, tuple[str, float]] = {}

        def occupy(worker: Worker) -> None:
            if waiting[worker]:
                name = waiting[worker].popleft()
                worker.send(name, Ask(number, step, body(name)))
                busy[worker] = (name, time.monotonic())

        for worker in self._workers:
            occupy(worker)
        while busy:
            ready = wait([worker.connection for worker in busy], self._patience(busy, timeout))
            for worker, (name, started) in list(busy.items()):
                seconds = time.monotonic() - started
                if worker.connection in ready:
                    content = worker.receive(name)
                elif timeout is not None and seconds > timeout:
                    worker.restart()
                    content = _too_late(name, timeout)
                else:
                    continue
                del busy[worker]
                occupy(worker)  # before the answer is dealt with: the worker need not wait for that
                yield Answer(name, content, seconds)

    @staticmethod
    def _patience(busy: dict[Worker, tuple[str, float]], timeout: float | None) -> float | None:
        if timeout is None:
            return None
        first = min(started for _, started in busy.values())
        return max(0.0, first + timeout - time.monotonic()) + 0.01


def _too_late(name: str, timeout: float) -> Failure:
    return Failure("timeout", f"silo {name!r}: took longer than its timeout of {timeout:g} s")
