"""A silo's audit log: every ask that came and all that left, each line chained to the one before by its hash.

```
{"at": 1763…, "way": "in",  "ask": 4, "step": "label", "bytes": 96, "digest": "…", "chain": "…"}
{"at": 1763…, "way": "out", "ask": 4, "step": "label", "fields": {…}, "bytes": 403, "digest": "…", …}
{"at": 1763…, "way": "out", "ask": 5, "step": "label", "fields": {}, "failure": "silo 'a': …", …}
```

`bytes` are those of the message, `digest` is its SHA-256, `fields` what is in it by kind, form, bytes and
meaning; `again` marks an answer that was sent before. A line that is changed, moved or taken out breaks the
chain. `seal` is what the coordinator has of the log so far (`cosilo.protocol.seal`): with its signature, so
that it cannot deny that, and whoever rewrites the log cannot have it.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cosilo.errors import OtherRecord, RunError
from cosilo.protocol.seal import Seal
from cosilo.runs.durable_files import append_line, drop_partial_line, read_lines
from cosilo.runs.silo_state import last_state


@dataclass
class Spent:
    """What a run has taken of a silo so far."""

    asks: int = 0
    seconds: float = 0.0
    bytes: int = 0


@dataclass(frozen=True)
class First:
    """The first request under a number: its step and digest, and how many came for that step by then."""

    step: str
    digest: str
    times: int


class AuditLog:
    """The log of one silo in one run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        drop_partial_line(path)
        self.spent = Spent()
        #: The steps that were done, in order, and the asks whose answer has left.
        self.steps: list[str] = []
        self.answered: set[int] = set()
        #: By number, the first request that came.
        self.first: dict[int, First] = {}
        #: How many different requests came for each step, whether they were done or failed.
        self._requests: Counter[str] = Counter()
        #: The number of lines, and the hash of the last one.
        self.length, self.head = 0, ""
        #: The same before the line about the last reply.
        self._sealed = (0, "")
        entries = read_lines(path)
        broken = broken_at([entry for entry in entries if "chain" in entry])
        if broken is not None:
            raise RunError(f"{path}: line {broken} is not as it was written, or a line before it is missing")
        for entry in entries:
            self._count(entry)
            self.head = str(entry.get("chain", ""))

    def came(self, number: int, step: str, body: bytes, digest: str, last: Seal | None = None) -> None:
        """Log an ask as it comes, before anything is done about it; `last` is the seal that came with it."""
        entry = {"way": "in", "ask": number, "step": step, "bytes": len(body), "digest": digest}
        self._add(entry if last is None else {**entry, "seal": last.values()})

    def seal(self, number: int, request: str, reply: str, *, failed: bool = False) -> Seal:
        """Return what is stated about an exchange before the line about its reply is written."""
        self._sealed = (self.length, self.head)
        return Seal(number, request, reply, self.length, self.head, int(failed))

    def check_seal(self, seal: Seal, where: str) -> None:
        """Raise unless the log has what it said of itself in a seal that the coordinator has."""
        if seal.length == 0 or (seal.length, seal.head) == self._sealed:
            return
        entries = read_lines(self._path)
        if seal.length <= len(entries) and entries[seal.length - 1].get("chain") == seal.head:
            return
        raise OtherRecord(
            f"{where}: its audit log is not the one that the coordinator has seen (at line {seal.length}): "
            "an older copy was put back, or it was rewritten; restore the newer one or start a new run"
        )

    def left(
        self,
        number: int,
        step: str,
        fields: dict[str, dict[str, Any]],
        size: int,
        digest: str,
        seconds: float,
    ) -> None:
        """Log what leaves now: `size` is in bytes.

        A reply that is sent again after a crash is logged again, marked as such.
        """
        entry: dict[str, Any] = {"way": "out", "ask": number, "step": step, "fields": fields}
        entry |= {"bytes": size, "digest": digest, "seconds": round(seconds, 6)}
        if number in self.answered:
            entry["again"] = True
        self._add(entry)

    def failed(self, number: int, step: str, text: str) -> None:
        """Log the one line that leaves when a step was refused or failed."""
        self._add({"way": "out", "ask": number, "step": step, "fields": {}, "failure": text})

    def _add(self, entry: dict[str, Any]) -> None:
        entry = {"at": round(time.time(), 3), **entry}
        self.head = _chained(self.head, entry)
        append_line(self._path, {**entry, "chain": self.head})
        self._count(entry)

    def _count(self, entry: dict[str, Any]) -> None:
        self.length += 1
        if entry.get("way") == "in":
            number, step = entry["ask"], entry["step"]
            if number not in self.first:
                self._requests[step] += 1
                self.first[number] = First(step, entry.get("digest", ""), self._requests[step])
                self.spent.asks += 1
            return
        self.spent.seconds += entry.get("seconds", 0.0)
        if "failure" not in entry:
            if entry["ask"] not in self.answered:
                self.steps.append(entry["step"])
                self.spent.bytes += entry["bytes"]
            self.answered.add(entry["ask"])


def outgoing(path: Path) -> list[dict[str, Any]]:
    """All that left, in order."""
    return [entry for entry in read_lines(path) if entry.get("way", "out") == "out"]


def broken_at(entries: list[dict[str, Any]]) -> int | None:
    """The number of the first line that is not as it was written, or does not follow the one before it."""
    chain = ""
    for number, entry in enumerate(entries, start=1):
        told = entry.get("chain")
        if told != _chained(chain, {key: value for key, value in entry.items() if key != "chain"}):
            return number
        chain = str(told)
    return None


def unlogged(path: Path, entries: list[dict[str, Any]]) -> int | None:
    """The last ask that the record beside a log has answered, if the log lacks it: its end is gone."""
    state = last_state(path.parent)
    told = {entry["ask"] for entry in entries if entry.get("way", "out") == "out"}
    return state.number if state and state.number not in told else None


def _chained(before: str, entry: dict[str, Any]) -> str:
    text = json.dumps(entry, sort_keys=True, ensure_ascii=True)
    return sha256(f"{before}{text}".encode()).hexdigest()
