"""What left each silo, from its own audit log, held against what the coordinator received."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cosilo.runs.run import Run


@dataclass(frozen=True)
class Field:
    """A field of a step's replies, over all silos."""

    step: str
    name: str
    kind: str
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
    #: Whether this is the silo's own log; if it is elsewhere, this is what the coordinator received.
    own_log: bool
    #: In the order of `Traffic.fields`; None where the silo never sent that field.
    cells: tuple[Cell | None, ...]
    messages: int
    #: All bytes of these messages; without the frames if the silo's own log is not here.
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
    #: Messages the coordinator has that the log does not know; anything but 0 is an alarm.
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
        """The silos whose model and whole log are here: those of which both costs are known."""
        return tuple(sent for sent in self.silos if sent.model is not None and sent.own_log)


#: Ask number, step, fields as logged, bytes of the whole message if known.
_Message = tuple[int, str, Mapping[str, Mapping[str, Any]], int | None]
_Key = tuple[str, str, str]


def traffic(run: Run, result: Mapping[str, Any], rounds: int) -> Traffic:
    """Count messages, fields and bytes."""
    names: list[str] = run.about["silos"]
    models = run.model_bytes()
    logs = {name: run.audit(name) for name in names}
    asks = run.asks()
    received = {name: list(_received(asks, name)) for name in names}
    split = {name: _split(log) for name, log in logs.items()}
    messages = {name: split[name][0] if logs[name] else received[name] for name in names}
    keys = _keys([message for name in names for message in messages[name]])
    cells = {name: _cells(messages[name]) for name in names}
    forms: dict[_Key, dict[str, None]] = {key: {} for key in keys}
    for name in names:
        for _, step, fields, _ in messages[name]:
            for field, about in fields.items():
                forms[step, field, about["kind"]][about["form"]] = None
    return Traffic(
        fields=tuple(
            _field(key, tuple(forms[key]), [cells[name].get(key) for name in names]) for key in keys
        ),
        silos=tuple(
            _sent(
                name,
                logs[name],
                messages[name],
                split[name][1],
                tuple(cells[name].get(key) for key in keys),
                {number for number, *_ in received[name]},
                models.get(name) or None,
            )
            for name in names
        ),
        rounds=rounds,
    )


def _received(asks: Sequence[Mapping[str, Any]], name: str) -> Iterator[_Message]:
    for ask in asks:
        if name in ask["arrivals"]:
            yield ask["number"], ask["step"], ask["arrivals"][name]["fields"], None


def _split(log: Sequence[Mapping[str, Any]]) -> tuple[list[_Message], list[_Message]]:
    """Messages that left for the first time, and repeats.

    A repeat is a message that was logged before with the same content. The log's own flag says only that
    there is an older line for that ask, which may be a failure line: then this is the first message.
    """
    first: list[_Message] = []
    again: list[_Message] = []
    seen: set[str] = set()
    for entry in log:
        if "failure" in entry:
            continue
        message = (entry["ask"], entry["step"], entry["fields"], entry["bytes"])
        key = json.dumps(message, sort_keys=True)
        (again if key in seen else first).append(message)
        seen.add(key)
    return first, again


def _keys(messages: Sequence[_Message]) -> list[_Key]:
    """Every field there is, in the order in which asks go out."""
    place: dict[_Key, int] = {}
    for number, step, fields, _ in messages:
        for field, about in fields.items():
            key = (step, field, about["kind"])
            place[key] = min(number, place.get(key, number))
    return sorted(place, key=lambda key: place[key])


def _cells(messages: Sequence[_Message]) -> dict[_Key, Cell]:
    cells: dict[_Key, Cell] = {}
    for _, step, fields, _ in messages:
        for field, about in fields.items():
            key = (step, field, about["kind"])
            old = cells.get(key, Cell(0, 0))
            cells[key] = Cell(old.messages + 1, old.bytes + about["bytes"])
    return cells


def _field(key: _Key, forms: tuple[str, ...], cells: Sequence[Cell | None]) -> Field:
    there = [cell for cell in cells if cell]
    messages, size = sum(cell.messages for cell in there), sum(cell.bytes for cell in there)
    return Field(*key, forms, len(there), messages, size)


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
    sizes = [size for *_, size in messages if size is not None]
    left = {number for number, *_ in messages}
    return Sent(
        silo=name,
        own_log=bool(log),
        cells=cells,
        messages=len(messages),
        total=sum(sizes) if log else in_fields,
        frames=sum(sizes) - in_fields if log else None,
        repeats=Cell(len(repeats), sum(size or 0 for *_, size in repeats)),
        lines=tuple((entry["step"], entry["failure"]) for entry in log if "failure" in entry),
        model=model,
        not_accepted=len(left - accepted) if log else 0,
        not_logged=len(accepted - left) if log else 0,
    )
