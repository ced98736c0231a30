"""What is kept of a reproduction: every value by seed, and where it comes from."""

import os
import platform
import subprocess
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cosilo.config.reproduces import Size
from cosilo.errors import RunError
from cosilo.runs.durable_files import read_json, write_json
from cosilo.version import __version__


@dataclass(frozen=True)
class Record:
    """One reproduction in one size."""

    name: str
    size: Size
    seeds: list[int]
    #: By place: a value for each seed.
    values: dict[str, list[float | None]]
    #: All runs together, at work.
    minutes: float
    machine: str
    #: Of the code, and its version.
    commit: str
    version: str
    date: str
    #: What a run is like: silos, and rounds where there are some.
    scale: str

    @property
    def file(self) -> str:
        """What its file is called."""
        return f"{self.name}-{self.size}.json"


def write_record(record: Record, path: Path) -> None:
    """Keep a record."""
    write_json(path, asdict(record))


def read_record(path: Path) -> Record:
    """A record from its file."""
    found: dict[str, Any] = read_json(path)
    if set(found) != {field.name for field in fields(Record)}:
        raise RunError(f"{path}: is not the record of a reproduction; delete it and reproduce it again")
    return Record(**found)


def machine() -> str:
    """Cores and processor, as far as they are known."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} × {name}"


def commit() -> str:
    """Of the code that runs, with a + if it was changed since; the version if it is not in a repository."""
    here = Path(__file__).parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here))
        return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return __version__
