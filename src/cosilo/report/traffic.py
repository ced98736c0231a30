"""What left each silo, from its own audit log, compared with what the coordinator received."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cosilo.runs.audit import outgoing
from cosilo.runs.run import RunDirectory


@dataclass(frozen=True)
class Field:
    """A field of a step's replies, over all silos."""

    step: str
    name: str
    kind: str
    #: What it means, as the method that asks for it says.
    about: str
    forms: tuple[str, ...]
    silos: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Cell:
    """What one silo sent of one field."""

    messages: int
    bytes: int


@dataclass(frozen=True)
class Sent:
    """All that left one silo."""

    silo: str
    #: Whether this comes from the silo's own log; if that is elsewhere, from what the coordinator received.
    own_log: bool
    #: In the order of `Traffic.fields`; None where the silo never sent that field.
    cells: tuple[Cell | None, ...]
    messages: int
    #: All bytes of these messages; without the frames if nothing here says how large the messages were.
    total: int
    #: What the messages hold besides their fields: names and forms of fields, empty acknowledgements.
    frames: int | None
    #: Messages that were sent a second time after a crash, and their bytes; not in the numbers above.
    repeats: Cell
    #: Failure lines that left, as (step, text).
    lines: tuple[tuple[str, str], ...]
    #: What the model weighs on disk; None if it is not here or was never trained.
    model: int | None
    #: Messages that left but are not among those the coordinator accepted: late, rejected or lost.
    not_accepted: int
    #: Messages the coordinator has that are not in the log; anything but 0 is an alarm.
    not_logged: int


@dataclass(frozen=True)
class Traffic:
    """What left all silos."""

    fields: tuple[Field, ...]
    silos: tuple[Sent, ...]
    rounds: int

    @property
    def total(self) -> int:
        """All bytes that left all silos."""
        return sum(sent.total for sent in self.silos)

    @property
    def weighed(self) -> tuple[Sent, ...]:
        """The silos whose model and complete log are on this machine, so that both costs are known."""
        return tuple(sent for sent in self.silos if sent.model is not None and sent.own_log)


@dataclass(frozen=True)
class _Logged:
    """A field of a message, as a log describes it."""

    name: str
    kind: str
    form: str
    bytes: int
    about: str


@dataclass(frozen=True)
class _Message:
    ask: int
    step: str
    fields: tuple[_Logged, ...]
    #: Of the whole message; None in runs of older versions where the silo's own log is elsewhere.
    bytes: int | None

    def by_key(self) -> Iterator[tuple["_Key", _Logged]]:
        """Its fields, each with what tells it from others."""
        for field in self.fields:
            yield (self.step, field.name, field.kind), field


#: Step, field, kind.
_Key = tuple[str, str, str]


def traffic(run: RunDirectory, rounds: int) -> Traffic:
    """Count messages, fields and bytes."""
    names: list[str] = run.about["silos"]
    models = run.model_bytes()
    logs = {name: outgoing(run.audit_path(name)) for name in names}
    asks = run.asks()
    received = {name: list(_received(asks, name)) for name in names}
    split = {name: _split(log) for name, log in logs.items()}
    messages = {name: split[name][0] if logs[name] else received[name] for name in names}
    cells = {name: _cells(messages[name]) for name in names}
    described = _described([message for name in names for message in messages[name]])
    return Traffic(
        fields=tuple(
            _field(key, fields, [cells[name].get(key) for name in names]) for key, fields in described.items()
        ),
        silos=tuple(
            _sent(
                name,
                logs[name],
                messages[name],
                split[name][1],
                tuple(cells[name].get(key) for key in described),
                {message.ask for message in received[name]},
                models.get(name) or None,
            )
            for name in names
        ),
        rounds=rounds,
    )


def _received(asks: Sequence[Mapping[str, Any]], name: str) -> Iterator[_Message]:
    for ask in asks:
        if name in ask["arrivals"]:
            fields, size = _logged(ask["arrivals"][name]["fields"]), ask.get("received", {}).get(name)
            yield _Message(ask["number"], ask["step"], fields, size)


def _logged(fields: Mapping[str, Mapping[str, Any]]) -> tuple[_Logged, ...]:
    return tuple(_Logged(name, **field) for name, field in fields.items())


def _split(log: Sequence[Mapping[str, Any]]) -> tuple[list[_Message], list[_Message]]:
    """Messages that left for the first time, and repeats.

    A repeat is a message that was logged before with the same content, its fields in any order: a reply that
    is read back from disk has them by name. The log's own flag says only that there is an older line for that
    ask, which may be a failure line: then this is the first message.
    """
    first: list[_Message] = []
    again: list[_Message] = []
    seen = set()
    for entry in log:
        if "failure" in entry:
            continue
        message = _Message(entry["ask"], entry["step"], _logged(entry["fields"]), entry["bytes"])
        content = (message.ask, message.step, frozenset(message.fields), message.bytes)
        (again if content in seen else first).append(message)
        seen.add(content)
    return first, again


def _described(messages: Sequence[_Message]) -> dict[_Key, list[_Logged]]:
    """All that logs say of every field, the fields in the order in which asks go out."""
    found: dict[_Key, list[_Logged]] = {}
    for message in sorted(messages, key=lambda message: message.ask):
        for key, field in message.by_key():
            found.setdefault(key, []).append(field)
    return found


def _cells(messages: Sequence[_Message]) -> dict[_Key, Cell]:
    cells: dict[_Key, Cell] = {}
    for message in messages:
        for key, field in message.by_key():
            old = cells.get(key, Cell(0, 0))
            cells[key] = Cell(old.messages + 1, old.bytes + field.bytes)
    return cells


def _field(key: _Key, described: Sequence[_Logged], cells: Sequence[Cell | None]) -> Field:
    there = [cell for cell in cells if cell]
    messages, size = sum(cell.messages for cell in there), sum(cell.bytes for cell in there)
    forms = tuple(dict.fromkeys(field.form for field in described))
    return Field(*key, described[0].about, forms, len(there), messages, size)


def _sent(
    name: str,
    log: Sequence[Mapping[str, Any]],
    messages: Sequence[_Message],
    repeats: Sequence[_Message],
    cells: tuple[Cell | None, ...],
    accepted: set[int],
    model: int | None,
) -> Sent:
    in_fields = sum(cell.bytes for cell in cells if cell)
    sizes = [message.bytes for message in messages if message.bytes is not None]
    whole = len(sizes) == len(messages)
    left = {message.ask for message in messages}
    return Sent(
        silo=name,
        own_log=bool(log),
        cells=cells,
        messages=len(messages),
        total=sum(sizes) if whole else in_fields,
        frames=sum(sizes) - in_fields if whole else None,
        repeats=Cell(len(repeats), sum(message.bytes or 0 for message in repeats)),
        lines=tuple((entry["step"], entry["failure"]) for entry in log if "failure" in entry),
        model=model,
        not_accepted=len(left - accepted) if log else 0,
        not_logged=len(accepted - left) if log else 0,
    )
