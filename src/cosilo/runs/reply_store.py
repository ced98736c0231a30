"""The replies to one request on disk, each with its checksum: nothing else reads them.

```
small               for each reply a line {"silo", "bytes", "reply": checksum, …}; a small reply
                    follows its line
NAME.safetensors    a large reply, written before its line
```

A file for each small reply would be what a request to thousands of silos takes most of its time
for. A reply counts when its line is there, and all of a small reply after it. What a crash left
unfinished at the end does not count, and is written over. Anything else that is not as it was
written is an error that names the file.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosilo.errors import RunError
from cosilo.runs.durable_files import append, as_line, checksum, from_line, is_cut_short, link, write
from cosilo.runs.silo_state import LARGE

#: The keys of a line that are not facts about the reply.
_OWN_KEYS = ("silo", "bytes", "reply", "file")


@dataclass(frozen=True)
class _Line:
    """One line of the index."""

    size: int
    #: Where the reply begins after the line; None if it has a file to itself.
    start: int | None
    #: Of the reply; empty in runs of earlier versions.
    checksum: str
    facts: Mapping[str, Any]


class ReplyStore:
    """The replies in the folder of one request.

    Earlier versions wrote lines without checksums, and none about large replies: such a reply is
    read only with the checksum that the completed request has of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "small"
        self._lines: dict[str, _Line] = {}
        self._end = 0
        if self.path.exists():
            self._read_index()

    def _read_index(self) -> None:
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while line := file.readline():
                if is_cut_short(line):
                    return
                try:
                    about = from_line(line)
                except ValueError:
                    raise _damaged(self.path, "its checksum differs") from None
                start = None if about.get("file") else file.tell()
                end = file.tell() if start is None else start + about["bytes"]
                if end > size:
                    return
                facts = {key: value for key, value in about.items() if key not in _OWN_KEYS}
                told = about.get("reply", "")
                self._lines[about["silo"]] = _Line(about["bytes"], start, told, facts)
                self._end = end
                file.seek(end)

    def __iter__(self) -> Iterator[str]:
        """The silos whose replies are here with their checksums."""
        return (silo for silo, line in self._lines.items() if line.checksum)

    def facts(self, silo: str) -> dict[str, Any]:
        """Return what was said about a reply when it was added, and its checksum."""
        line = self._lines[silo]
        return {**line.facts, "checksum": line.checksum}

    def add(self, silo: str, reply: bytes, facts: Mapping[str, Any], file: Path | None = None) -> str:
        """Have a reply on disk; returns its checksum.

        `file`, if any, has a large reply already and gets a second name.
        """
        large, whole = len(reply) >= LARGE, checksum(reply)
        if large:
            path = self._own_file(silo)
            if file is None or not link(file, path):
                write(path, reply)
        about = {**facts, "silo": silo, "bytes": len(reply), "reply": whole}
        if large:
            about["file"] = True
        line = as_line(about).encode()
        append(self.path, line, b"" if large else reply, after=self._end)
        start = self._end + len(line)
        self._lines[silo] = _Line(len(reply), None if large else start, whole, facts)
        self._end = start if large else start + len(reply)
        return whole

    def read(self, silo: str, expected: str = "") -> bytes:
        """Read a reply as it came; the completed request may know its checksum (`expected`)."""
        line = self._lines.get(silo)
        alone = self._own_file(silo)
        path = self.path if line and line.start is not None else alone
        if line is None and not alone.exists():
            raise _damaged(self.path, f"no reply of {silo!r}")
        known = {one for one in (expected, line.checksum if line else "") if one}
        if not known:
            raise RunError(
                f"{path}: is of a version of cosilo that kept no checksum of the reply of "
                f"{silo!r}, so it cannot be verified; start a new run"
            )
        try:
            if line is None or line.start is None:
                content = alone.read_bytes()
            else:
                with self.path.open("rb", buffering=0) as file:
                    content = os.pread(file.fileno(), line.size, line.start)
        except FileNotFoundError:
            raise _damaged(path, "it is missing") from None
        if {checksum(content)} != known:
            raise _damaged(path, "its checksum differs")
        return content

    def _own_file(self, silo: str) -> Path:
        return self._folder / f"{silo}.safetensors"


def _damaged(path: Path, why: str) -> RunError:
    return RunError(
        f"{path}: is damaged ({why}); if its folder is the last in the journal, delete that folder "
        "and resume, else start a new run"
    )
