"""The coordinator's journal: every reply as it came, so that a run can be replayed up to where it was."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cosilo.errors import BadMessage, RunError
from cosilo.protocol.carrier import Failure, FailureKind
from cosilo.protocol.message import Fields, Message
from cosilo.protocol.seal import Seal
from cosilo.protocol.wire import decode, encode
from cosilo.runs.durable_files import (
    append_line,
    checksum,
    drop_partial_line,
    explain_write_errors,
    read_json,
    read_lines,
    write,
    write_json,
)
from cosilo.runs.reply_store import ReplyStore

#: In the folder of an ask: a line for each failure that came with a seal.
_SEALS = "seals.jsonl"


@dataclass
class Arrival:
    """What is known of one reply besides its content."""

    #: Of the silo's processor.
    seconds: float
    fields: dict[str, dict[str, Any]]
    #: Of the reply; empty in runs of earlier versions.
    checksum: str = ""
    #: What the silo stated about the reply and its audit log (`cosilo.protocol.seal`).
    seal: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Arrival":
        """Make one of what a line or `done.json` says; what this version does not know is left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})

    def facts(self) -> dict[str, Any]:
        """Return what is kept with the reply as it arrives; its fields tell their form themselves."""
        return {key: value for key, value in vars(self).items() if key not in ("fields", "checksum")}


@dataclass
class Entry:
    """One ask: who was asked for what, and what came back.

    Has its own folder, with the replies (`reply_store`) and, when all is over, `done.json`.
    """

    folder: Path
    number: int
    step: str
    silos: list[str]
    #: Whether the step counts on the simulated clock.
    timed: bool = True
    done: bool = False
    #: By the wall clock.
    seconds: float = 0.0
    #: Bytes of the message to each silo.
    sent: dict[str, int] = field(default_factory=dict)
    #: Bytes of the message from each silo, also of one that was rejected.
    received: dict[str, int] = field(default_factory=dict)
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    #: What silos stated with failures; what they stated with replies is in the arrivals.
    seals: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._store = ReplyStore(self.folder)

    @classmethod
    def read_done(cls, folder: Path) -> "Entry":
        """Read a completed ask."""
        path = folder / "done.json"
        record = read_json(path)
        try:
            return cls(
                folder,
                record["number"],
                record["step"],
                record["silos"],
                timed=record["timed"],
                done=True,
                seconds=record["seconds"],
                sent=record.get("sent", {}),
                received=record.get("received", {}),
                arrivals={name: Arrival.from_record(one) for name, one in record["arrivals"].items()},
                failures={name: _failure(failure) for name, failure in record["failures"].items()},
                seals=record.get("seals", {}),
            )
        except (KeyError, TypeError, AttributeError, ValueError):
            raise RunError(f"{path}: is damaged; delete the file and resume the run") from None

    def keep(self, silo: str, body: bytes, arrival: Arrival, file: Path | None = None) -> None:
        """Have a reply on disk: it is never asked for again. The silo's `file` of it gets another name."""
        arrival.checksum = self._store.add(silo, body, arrival.facts(), file)
        self.arrivals[silo] = arrival
        self.seals.pop(silo, None)

    def keep_again(self, silo: str, form: dict[str, dict[str, Any]]) -> None:
        """Take up a reply that is `there`, when it has been checked; `form` is that of its fields."""
        self.arrivals[silo] = Arrival.from_record({**self._store.facts(silo), "fields": form})
        self.seals.pop(silo, None)

    def keep_seal(self, silo: str, seal: dict[str, Any]) -> None:
        """Have what a silo stated with a failure on disk: the ask may stop the run before it is completed."""
        append_line(self.folder / _SEALS, {"silo": silo, "seal": seal})
        self.seals[silo] = seal

    def read_seals(self) -> None:
        """Take up what silos stated with failures before a crash or a stop."""
        drop_partial_line(self.folder / _SEALS)
        self.seals = {line["silo"]: line["seal"] for line in read_lines(self.folder / _SEALS)}

    @property
    def there(self) -> set[str]:
        """The silos whose replies are on disk with their checksums.

        Replies of a version without these to an ask that it did not complete are asked for again:
        they cannot be verified.
        """
        return set(self._store)

    def content(self, silo: str) -> bytes:
        """Read a reply as it came: the only way to one on disk, and it verifies length and checksum."""
        arrival = self.arrivals.get(silo)
        return self._store.read(silo, arrival.checksum if arrival else "")

    def read(self, silo: str) -> Fields:
        """Read what a reply says from disk."""
        content = self.content(silo)
        try:
            return Fields(decode(content))
        except BadMessage as error:
            raise RunError(f"{self.folder}: the reply of {silo!r} cannot be read: {error}") from None

    def record(self) -> dict[str, Any]:
        """All that is known of the ask but the replies themselves."""
        return {
            "number": self.number,
            "step": self.step,
            "timed": self.timed,
            "silos": self.silos,
            "seconds": round(self.seconds, 6),
            "sent": {name: self.sent[name] for name in self.silos if name in self.sent},
            "received": {name: self.received[name] for name in self.silos if name in self.received},
            "arrivals": {name: vars(arrival) for name, arrival in self.arrivals.items()},
            "failures": {name: vars(failure) for name, failure in self.failures.items()},
            **({"seals": self.seals} if self.seals else {}),
        }


def replies_in(folder: Path) -> dict[str, bytes]:
    """Return all replies in the folder of an ask, as they came, by silo."""
    if (folder / "done.json").exists():
        entry = Entry.read_done(folder)
        return {silo: entry.content(silo) for silo in sorted(entry.arrivals)}
    entry = Entry(folder, 0, "", [])
    return {silo: entry.content(silo) for silo in sorted(entry.there)}


class Replies(Mapping[str, Fields]):
    """The usable replies of one ask by silo, read from disk one at a time.

    Parameters
    ----------
    entry : Entry
        The ask, as the journal has it.
    gathered : object, default None
        What took them in as they came, if the method gave something (`silos.ask(gather=…)`).

    Attributes
    ----------
    failures : dict of Failure
        Who gave no usable answer, and why.

    Examples
    --------
    A method gets them from `silos.ask`:

    >>> def sizes(silos):
    ...     return {name: reply.integer("size") for name, reply in silos.ask("count").items()}
    """

    def __init__(self, entry: Entry, gathered: object = None) -> None:
        self._entry = entry
        self.gathered = gathered
        self._names = dict.fromkeys(name for name in entry.silos if name in entry.arrivals)
        self.failures: dict[str, Failure] = entry.failures

    def __getitem__(self, silo: str) -> Fields:
        if silo not in self._names:
            raise KeyError(silo)
        return self._entry.read(silo)

    def __contains__(self, silo: object) -> bool:
        return silo in self._names  # without a look at the disk

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Mark:
    """How far a method with many rounds has come: the number of the last ask, its state, its findings."""

    number: int
    #: The number of the last ask of the meeting before the first round.
    met: int
    state: Message
    findings: dict[str, Any]
    rng: dict[str, Any]
    #: Whether there was no time for another round.
    over: bool = False


class Journal:
    """All asks of a run, in order; those before the last mark are gone.

    `asks.jsonl` beside the journal keeps one line for every completed ask of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with explain_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._log = folder.with_name("asks.jsonl")
        drop_partial_line(self._log)
        self._logged: set[int] = set()
        #: The seal of the last reply of each silo.
        self.seals: dict[str, Seal] = {}
        for line in read_lines(self._log):
            self._logged.add(line["number"])
            for name, arrival in line.get("arrivals", {}).items():
                self.seals[name] = Seal.read(arrival.get("seal")) or Seal(line["number"])
            for name, seal in line.get("seals", {}).items():
                self.seals[name] = Seal.read(seal) or Seal(line["number"])
        #: What every line of the log says besides the ask.
        self.about: dict[str, Any] = {}
        self.last_mark = self._read_mark()
        self._drop_marked()

    def close(self, entry: Entry) -> None:
        """Note that an ask is completed; nothing happens if that was noted before."""
        record = entry.record()
        if not entry.done:
            write_json(entry.folder / "done.json", record, indent=None)
            entry.done = True
        if entry.number not in self._logged:
            append_line(self._log, {**record, **self.about})
            self._logged.add(entry.number)

    def mark(self, mark: Mark) -> None:
        """Keep a method's state; the asks up to here will not be replayed, so their replies may go."""
        meta = {
            "number": mark.number,
            "met": mark.met,
            "findings": mark.findings,
            "rng": mark.rng,
            "over": mark.over,
        }
        content = encode({**mark.state, "meta": json.dumps(meta)})
        write(self._mark_path, f"{checksum(content)}\n".encode(), content)
        self.last_mark = mark
        self._drop_marked()

    @property
    def _mark_path(self) -> Path:
        return self.folder / "mark.safetensors"

    def _read_mark(self) -> Mark | None:
        if not self._mark_path.exists():
            return None
        try:
            told, _, content = self._mark_path.read_bytes().partition(b"\n")
            if told.decode() != checksum(content):
                raise BadMessage("its checksum differs")
            state = decode(content, own=True)
            meta = json.loads(str(state.pop("meta")))
            return Mark(
                meta["number"], meta["met"], state, meta["findings"], meta["rng"], meta.get("over", False)
            )
        except (BadMessage, KeyError, ValueError, TypeError):
            raise RunError(f"{self._mark_path}: is damaged; start a new run") from None

    def _drop_marked(self) -> None:
        if self.last_mark is not None:
            self.drop(self.last_mark.met, self.last_mark.number)

    def drop(self, met: int, number: int) -> None:
        """Delete the replies to asks up to this one.

        Those up to `met` are how coordinator and silos met: a resumed run meets again, from disk.
        """
        for path in self.folder.glob("[0-9]*-*"):
            if met < int(path.name[:5]) <= number:
                shutil.rmtree(path)

    @property
    def last_number(self) -> int:
        """The number of the last ask in the journal, completed or not; 0 if there is none."""
        return max((int(path.name[:5]) for path in self.folder.glob("[0-9]*-*")), default=0)

    def entry(self, number: int, step: str, silos: Iterable[str], timed: bool = True) -> Entry:
        """The entry for an ask, existing or new; `timed`: whether it counts on the simulated clock."""
        silos = list(silos)
        folder = self.folder / f"{number:05d}-{step}"
        others = [path for path in self.folder.glob(f"{number:05d}-*") if path != folder]
        if others:
            raise RunError(
                f"{others[0]}: the journal says that ask {number} was {others[0].name[6:]!r}, "
                f"the method now asks for {step!r}; the method or its settings changed: start a new run"
            )
        path = folder / "done.json"
        if path.exists():
            entry = Entry.read_done(folder)
            if entry.silos != silos:
                raise RunError(f"{path}: was sent to other silos than those asked now; start a new run")
            return entry
        with explain_write_errors(folder):
            folder.mkdir(exist_ok=True)
        for leftover in folder.glob("*.part"):
            leftover.unlink()
        entry = Entry(folder, number, step, silos, timed)
        entry.read_seals()
        return entry


def _failure(record: Mapping[str, str]) -> Failure:
    return Failure(FailureKind(record["kind"]), record["text"])
