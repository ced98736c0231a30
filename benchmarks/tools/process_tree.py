"""Work in a process of its own, and the memory that it takes with all processes below it."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any


def measured(work: Callable[..., None], *args: Any, **options: Any) -> dict[str, Any]:
    """What `work` sends through the pipe that it gets last; adds `megabytes`, the peak of its tree."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=work, args=(*args, theirs), kwargs=options)
    process.start()
    theirs.close()
    peak, over = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.1):
            peak = max(peak, _pss(process.pid or 0))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        found: dict[str, Any] = mine.recv()
    finally:
        over.set()
        watcher.join()
    process.join()
    return {**found, "megabytes": peak}


def processor_seconds(root: int) -> float:
    """Seconds of the processor that a process and all below it have taken; those that ended do not count."""
    ticks = 0
    for pid in _tree(root):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


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
