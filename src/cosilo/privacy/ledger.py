"""A silo's account: what its records have spent, over all runs, and what left without any guarantee.

```
ledger.jsonl        one line for each voter, each voter that was kept, each kind of field that left in a run
KEY.records         which records a voter was trained on: a hash of each, by a key of the ledger
KEY.safetensors     all that is released of a voter: what it thinks of the pool, how many records, noisily
hash.key            what makes hashes of this ledger different from those of any other
```

A voter is paid for before it is trained, and kept before anything of it leaves. So a crash between the two
costs nothing twice: nobody has seen the voter that was lost. One that was kept answers for ever, at no cost.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import BadMessage, Refused, RunError
from cosilo.privacy.voter import Mechanism, Opinions
from cosilo.protocol.message import Fields
from cosilo.protocol.wire import decode, encode
from cosilo.runs.durable_files import drop_partial_line, explain_write_errors, read_lines, write
from cosilo.runs.locks import locked

#: One number for each record.
Hashes = NDArray[np.uint64]
#: The kinds of fields that are votes of a voter, or computed from these.
GUARANTEED = frozenset({"labels"})
#: How long another run at this silo may be training its voter, in seconds.
_PATIENCE = 600.0


class Spent(NamedTuple):
    """What the record that was used most has spent."""

    epsilon: float
    delta: float


class Ledger:
    """The account in a folder, which silos may share: it knows records, not silos."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "ledger.jsonl"

    def hash_key(self) -> bytes:
        """What records are hashed with; made with the ledger."""
        path = self.folder / "hash.key"
        if not path.exists():
            with self._open():
                if not path.exists():
                    write(path, os.urandom(16))
        return path.read_bytes()

    def entries(self) -> list[dict[str, Any]]:
        """All lines, the oldest first."""
        try:
            return read_lines(self._path)
        except RunError as error:
            at_fault = str(error).partition("; ")[0]
            raise RunError(
                f"{at_fault}; restore it from a copy: without it nobody knows what was spent"
            ) from None

    def spent(self, records: Hashes) -> Spent:
        """What these records have spent: voters that one record was used for add up, others do not.

        The sum of ε and that of δ hold whatever the next voter was chosen by.
        """
        epsilon, delta = np.zeros(max(1, len(records))), np.zeros(max(1, len(records)))
        for entry in self.entries():
            if entry["what"] == "voter":
                used = np.isin(records, self._records(entry["key"]))
                epsilon[: len(used)][used] += entry["mechanism"]["epsilon"]
                delta[: len(used)][used] += entry["mechanism"]["delta"]
        return Spent(float(epsilon.max()), float(delta.max()))

    def has(self, key: str) -> bool:
        """Whether there is such a voter, so that its votes cost nothing."""
        return self._is_kept(key) and self._opinions_path(key).exists()

    def check(self, key: str, records: Hashes, epsilon: float, most: float, where: str) -> None:
        """Raise if there is no such voter, and no money for it."""
        if self.has(key) or self._is_paid_for(key):
            return
        spent = self.spent(records).epsilon
        if spent + epsilon > most * (1 + 1e-9):
            raise Refused(
                f"{where}: its votes would cost ε = {epsilon:g}, and its records have spent {spent:g} of "
                f"their privacy budget of {most:g}; take the pool and the privacy settings of before, which "
                "costs nothing, or let its owner raise privacy.budget"
            )

    def opinions(
        self,
        key: str,
        records: Hashes,
        how: Mechanism,
        most: float,
        where: str,
        run: str,
        train: Callable[[], Opinions],
    ) -> Opinions:
        """What a voter thinks of the pool: one that was kept, or else a new one, paid for and kept."""
        if not self.has(key):
            with self._open():
                if not self.has(key):
                    self.check(key, records, how.epsilon, most, where)
                    if not self._is_paid_for(key):
                        write(self._records_path(key), records.tobytes())
                        self._add(what="voter", key=key, records=len(records), run=run, mechanism=asdict(how))
                    content = encode(train()._asdict())
                    write(self._opinions_path(key), content)
                    self._add(what="kept", key=key, digest=sha256(content).hexdigest())
        return self._read(key)

    def note(self, kinds: set[str], run: str) -> None:
        """Note that fields of these kinds left in a run, each once."""
        if news := kinds - self.left(run):
            with self._open():
                for kind in sorted(news):
                    self._add(what="left", kind=kind, guaranteed=kind in GUARANTEED, run=run)

    def left(self, run: str) -> set[str]:
        """The kinds of fields that left in a run."""
        return {entry["kind"] for entry in self.entries() if entry["what"] == "left" and entry["run"] == run}

    def _read(self, key: str) -> Opinions:
        path = self._opinions_path(key)
        content = path.read_bytes()
        wanted = [e["digest"] for e in self.entries() if e["what"] == "kept" and e["key"] == key]
        try:
            if sha256(content).hexdigest() not in wanted:
                raise BadMessage("other content")
            kept = Fields(decode(content))
            records = kept.number("records") if "records" in kept else 0.0
            return Opinions(kept.array("chances"), records)
        except BadMessage:
            raise RunError(f"{path}: is not the voter that was kept; restore it from a copy") from None

    def _records(self, key: str) -> Hashes:
        path = self._records_path(key)
        try:
            return np.frombuffer(path.read_bytes(), np.uint64)
        except (FileNotFoundError, ValueError):
            raise RunError(
                f"{path}: is missing or damaged; restore it: without it nobody knows what was spent"
            ) from None

    def _is_kept(self, key: str) -> bool:
        return any(entry["what"] == "kept" and entry["key"] == key for entry in self.entries())

    def _is_paid_for(self, key: str) -> bool:
        """Whether it was paid for, but a crash came before it was kept, so that nobody has seen it."""
        of_it = [entry["what"] for entry in self.entries() if entry.get("key") == key]
        return of_it.count("voter") > of_it.count("kept")

    def _records_path(self, key: str) -> Path:
        return self.folder / f"{key}.records"

    def _opinions_path(self, key: str) -> Path:
        return self.folder / f"{key}.safetensors"

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Keep others out, and everybody but the owner."""
        with explain_write_errors(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.folder, patience=_PATIENCE):
            drop_partial_line(self._path)
            yield

    def _add(self, **entry: Any) -> None:
        """One line, on the disk when the call returns: what follows may leave the silo."""
        at = datetime.now().astimezone().isoformat(timespec="seconds")
        line = json.dumps({"at": at, **entry}, ensure_ascii=False) + "\n"
        with explain_write_errors(self._path), self._path.open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
