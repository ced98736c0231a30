"""A silo's own records of runs, where it keeps them itself: between organisations there is no run.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosilo.errors import RunError
from cosilo.runs.durable_files import read_json, read_lines
from cosilo.runs.locks import is_locked
from cosilo.runs.silo_state import last_state


@dataclass(frozen=True)
class SiloRun:
    """What a silo knows of one run."""

    folder: Path
    about: dict[str, Any]
    #: By stage and measure.
    scores: dict[str, Any]
    #: All that left it, in order.
    left: list[dict[str, Any]]
    #: Whether a process is at work on it.
    at_work: bool

    @property
    def bytes_left(self) -> int:
        """How much left it."""
        return sum(entry.get("bytes", 0) for entry in self.left)

    @property
    def kinds(self) -> list[str]:
        """The kinds of fields that left it."""
        fields = [field for entry in self.left for field in entry.get("fields", {}).values()]
        return sorted({field["kind"] for field in fields} - {"task"})

    def accuracy(self, stage: str) -> float | None:
        """Its model's accuracy on its own test data after a stage, if it has test data."""
        own = self.scores.get(stage, {}).get("own")
        return None if own is None else float(own["accuracy"])

    @property
    def summary(self) -> str:
        """What left, and the score before and after, in one line."""
        what = f" ({', '.join(self.kinds)})" if self.kinds else ""
        text = f"{self.bytes_left:,} bytes left in {len(self.left)} messages{what}"
        before, after = self.accuracy("local"), self.accuracy("federated")
        if before is not None and after is not None:
            return f"{text}; accuracy on its own test data {before:.1%} before, {after:.1%} after"
        return text if before is None else f"{text}; accuracy on its own test data {before:.1%}"


def read_silo_run(folder: Path) -> SiloRun:
    """A silo's record of a run."""
    if not (folder / "silo.json").exists():
        raise RunError(f"{folder}: is not a silo's record of a run (it has no silo.json)")
    state = last_state(folder)
    log = read_lines(folder / "audit.jsonl")
    left = [entry for entry in log if entry.get("way", "out") == "out" and not entry.get("again")]
    scores = dict(state.scores) if state else {}
    return SiloRun(folder, read_json(folder / "silo.json"), scores, left, is_locked(folder))


def silo_runs_in(parent: Path) -> list[SiloRun]:
    """All records in a folder, by name."""
    return [read_silo_run(path.parent) for path in sorted(parent.glob("*/silo.json"))]


class News:
    """Tells when runs begin and end at a silo; those from before it was made are no news."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._at_work = {run.folder: run.at_work for run in silo_runs_in(parent)}

    def lines(self) -> list[str]:
        """What has happened since the last look, a line each."""
        found = []
        for run in silo_runs_in(self._parent):
            before = self._at_work.get(run.folder)
            if run.at_work and not before:
                again = "begins" if before is None else "goes on"
                found.append(f"run {run.folder.name} {again}: {run.about['method']}")
            elif not run.at_work and before in (True, None):
                found.append(f"run {run.folder.name} ended: {run.summary}")
            self._at_work[run.folder] = run.at_work
        return found
