"""Work in processes of its own, with the memory and the processor time that they and all below them take."""

import itertools
import json
import multiprocessing
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


class Watch:
    """Looks at a process and all below it, between `with` and its end.

    Ten times a second at the processor time, twice at the memory. More often would take as much of the
    processor as some of what is watched: the kernel walks through all pages to tell proportional set sizes.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._look)
        self._spent: dict[int, float] = {}  # by process, those that have ended too
        self._moments, self._seconds = [time.time()], [0.0]
        #: The largest sum of proportional set sizes.
        self.megabytes = 0.0

    def __enter__(self) -> "Watch":
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def processor_seconds(self, begin: float, end: float) -> float:
        """What all processes together took between two moments (`time.time()`)."""
        until_begin, until_end = np.interp([begin, end], self._moments, self._seconds)
        return float(until_end - until_begin)

    def _look(self) -> None:
        for count in itertools.count():
            if self._over.wait(0.1):
                return
            for pid in _tree(self._root):
                self._spent[pid] = max(_spent(pid), self._spent.get(pid, 0.0))
            self._moments.append(time.time())
            self._seconds.append(sum(self._spent.values()))
            if count % 5 == 0:
                self.megabytes = max(self.megabytes, _pss(self._root))


def measured(work: Callable[..., None], *args: Any, **options: Any) -> dict[str, Any]:
    """What `work` sends through the pipe that it gets last; adds `megabytes`, the peak of its tree."""
    found, watch = watched(work, *args, **options)
    return {**found, "megabytes": watch.megabytes}


def watched(work: Callable[..., None], *args: Any, **options: Any) -> tuple[dict[str, Any], Watch]:
    """What `work` sends through the pipe that it gets last, and what was seen of its processes."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=work, args=(*args, theirs), kwargs=options)
    process.start()
    theirs.close()
    with Watch(process.pid or 0) as watch:
        found: dict[str, Any] = mine.recv()
    process.join()
    return found, watch


def watched_command(command: Sequence[str], environment: Mapping[str, str]) -> tuple[dict[str, Any], Watch]:
    """The same of a command, whose last line of output is JSON; what else it says is shown if it fails."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with Watch(process.pid) as watch:
        output, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}:\n{output}\n{errors}")
    return json.loads(output.splitlines()[-1]), watch


def processor_seconds(root: int) -> float:
    """Seconds of the processor that a process and all below it have taken; those that ended do not count."""
    return sum(_spent(pid) for pid in _tree(root))


def _spent(pid: int) -> float:
    """Seconds of the processor that one process has taken; 0 if it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _pss(root: int) -> float:
    """Megabytes of a process and all below it."""
    total = 0
    for pid in _tree(root):
        with suppress(FileNotFoundError, ProcessLookupError, StopIteration, PermissionError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def _tree(root: int) -> Iterator[int]:
    """A process and all below it."""
    todo = [root]
    while todo:
        pid = todo.pop()
        yield pid
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
