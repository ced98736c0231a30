"""The event log: what the coordinator did and when, one JSON line each."""

import time
from pathlib import Path
from typing import Any, Self

from cosilo.protocol.events import Event
from cosilo.runs.durable_files import add_line, drop_partial_line, read_lines


class EventLog:
    """An observer that appends to `events.jsonl`; `at` is the wall clock, in seconds since the epoch.

    The file is open until `close`, since there is an event for every reply.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        drop_partial_line(path)
        self._file = path.open("a", encoding="utf-8")

    def __call__(self, event: Event) -> None:
        """Log one event."""
        add_line(self._file, {"at": round(time.time(), 3), "event": event.what, **event.facts})

    def __enter__(self) -> Self:
        """The log, which `with` closes."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the log."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self) -> list[dict[str, Any]]:
        """All events so far."""
        return read_lines(self.path)
