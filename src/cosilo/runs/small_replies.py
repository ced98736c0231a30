"""The small replies to an ask, one after the other in one file: a line about each, then the reply.

A file for each would be what an ask to thousands of silos takes most of its time for.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from cosilo.errors import RunError
from cosilo.runs.durable_files import append, as_line, from_line


class SmallReplies:
    """The file of one ask; what a crash left unfinished at its end does not count, and is written over."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Where each silo's reply begins and ends.
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        if path.exists():
            self._look_through()

    def _look_through(self) -> None:
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while (line := file.readline()).endswith(b"\n"):
                try:
                    about = from_line(line)
                except ValueError:
                    raise RunError(
                        f"{self.path}: is damaged (its checksum differs); if its folder is the last in the "
                        "journal, delete that folder and resume, else start a new run"
                    ) from None
                start, end = file.tell(), file.tell() + about["bytes"]
                if end > size:
                    return
                self._places[about["silo"]] = start, end
                self._end = end
                file.seek(end)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def add(self, silo: str, reply: bytes) -> None:
        """Have a reply on disk."""
        line = as_line({"silo": silo, "bytes": len(reply)}).encode()
        append(self.path, line, reply, after=self._end)
        start = self._end + len(line)
        self._end = start + len(reply)
        self._places[silo] = start, self._end

    def read(self, silo: str) -> bytes:
        """A reply from disk; FileNotFoundError if it is not there."""
        if silo not in self._places:
            raise FileNotFoundError(f"no reply of {silo!r}")
        start, end = self._places[silo]
        with self.path.open("rb", buffering=0) as file:
            return os.pread(file.fileno(), end - start, start)
