"""Asks to silos in worker processes on this machine."""

import gc
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path

from cosilo.engines.local.in_process import too_late
from cosilo.engines.local.worker import Worker
from cosilo.protocol.carrier import Answer, Asks, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant, Procedure


class Workers:
    """A carrier for silos in worker processes.

    Each process owns some of the silos for the whole run; their data and models stay there. A process
    that dies is started again and asked once more. A step that takes
    longer than its timeout is stopped with its worker, and the worker is started again.

    Parameters
    ----------
    silos
        All of them.
    count
        How many processes share them, at most one for each.
    """

    def __init__(self, silos: Sequence[Participant], count: int) -> None:
        self._silos = list(silos)
        self._count = min(count, len(self._silos))
        self._workers: list[Worker] = []

    def open(self, procedure: Procedure, contract: Contract, folder: Path) -> None:
        """Start the workers."""
        for silo in self._silos:
            silo.preload()
        gc.collect()
        gc.freeze()  # else the collector writes into what forked processes share, which then each has alone
        for place in range(self._count):
            owned = self._silos[place :: self._count]
            self._workers.append(Worker(owned, procedure, contract, folder))

    def close(self) -> None:
        """Stop the workers."""
        gc.unfreeze()
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def call(self, silos: Sequence[str], asks: Asks, timeout: float | None) -> Iterator[Answer]:
        """Ask the silos for a step, one at a time per worker: a timeout is that of one silo."""
        waiting = {worker: deque(name for name in silos if name in worker.owns) for worker in self._workers}
        busy: dict[Worker, tuple[str, float]] = {}
        repeated: set[str] = set()

        def occupy(worker: Worker) -> None:
            if waiting[worker]:
                name = waiting[worker].popleft()
                worker.send(name, asks(name))
                busy[worker] = (name, time.monotonic())

        for worker in self._workers:
            occupy(worker)
        while busy:
            ready = wait([worker.connection for worker in busy], _patience(busy, timeout))
            for worker, (name, started) in list(busy.items()):
                if worker.connection in ready:
                    answer = worker.receive(name)
                    if _died(answer) and name not in repeated:
                        # Its silo is as it was before the step: it is asked once more, in the new process.
                        repeated.add(name)
                        worker.send(name, asks(name))
                        busy[worker] = (name, time.monotonic())
                        continue
                elif timeout is not None and time.monotonic() - started > timeout:
                    worker.restart()
                    answer = Answer(name, too_late(name, timeout))
                else:
                    continue
                del busy[worker]
                occupy(worker)  # before the answer is handled, so that the worker does not wait for that
                yield answer


def _died(answer: Answer) -> bool:
    return isinstance(answer.content, Failure) and answer.content.kind is FailureKind.LOST


def _patience(busy: dict[Worker, tuple[str, float]], timeout: float | None) -> float | None:
    if timeout is None:
        return None
    first = min(started for _, started in busy.values())
    return max(0.0, first + timeout - time.monotonic()) + 0.01
