"""One process at a time works on a run."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cosilo.errors import RunError
from cosilo.runs.durable_files import explain_write_errors


@contextmanager
def locked(folder: Path, patience: float = 5.0) -> Iterator[None]:
    """Keep a second process out of a run; workers of a killed process get a moment to end."""
    if folder.exists() and not folder.is_dir():
        raise RunError(
            f"{folder}: is a file; wants a folder for the run, a new one or that of an earlier run"
        )
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a+")
    with file:
        deadline = time.monotonic() + patience
        while not _lock(file):
            if time.monotonic() > deadline:
                file.seek(0)
                raise RunError(f"{folder}: process {file.read().strip() or '?'} is working on this run")
            time.sleep(0.05)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process is at work on a run; looking changes nothing."""
    path = folder / ".lock"
    if not path.exists():
        return False
    with path.open("a+") as file:
        free = _lock(file)
        if free:
            fcntl.flock(file, fcntl.LOCK_UN)
        return not free


def is_left(folder: Path) -> bool:
    """Whether a process was at work on a run, and is no more."""
    try:
        return (folder / ".lock").exists() and not is_locked(folder)
    except OSError:  # somebody else's folder
        return False


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
