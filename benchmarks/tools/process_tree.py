"""Work in a process of its own, and the memory that it takes with all processes below it."""

import multiprocessing
import threading
from collections.abc import Callable
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


def _pss(root: int) -> float:
    """Megabytes of a process and all below it."""
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError, StopIteration, PermissionError):
            continue
    return total / 1024
