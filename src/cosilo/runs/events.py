"""The event log: what the coordinator did and when, one JSON line each."""

import time
import weakref
from pathlib import Path
from typing import Any

from cosilo.protocol.events import Event
from cosilo.runs.durable_files import add_line, drop_partial_line, read_lines


class EventLog:
    """An observer that appends to `events.jsonl`; `at` is the wall clock, in seconds since the epoch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        drop_partial_line(path)
        self._file = path.open("a", encoding="utf-8")  # kept open: there is an event for every reply
        # Python warns of an open file whenever it notices: that could be in a step, whose silo would log it.
        weakref.finalize(self, self._file.close)

    def __call__(self, event: Event) -> None:
        """Log one event."""
        add_line(self._file, {"at": round(time.time(), 3), "event": event.what, **event.facts})

    def read(self) -> list[dict[str, Any]]:
        """All events so far."""
        return read_lines(self.path)
