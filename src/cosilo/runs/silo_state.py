"""What a silo is after a step, as one file of its record: reply, notes, scores, and where its models are.

```
state-00007    a line of JSON with a checksum, then the notes, then the reply
reply-00007    the reply instead, if it is large: the journal gives this file another name
model-00003/   trial-00003/   spare-00007/   what learners saved in a step; written once, and named by states
```

That the state appears completes the step. Making a file takes many times as long as writing over one, so the
next state is written over the one before the last.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cosilo.errors import RunError
from cosilo.protocol.message import Fields
from cosilo.protocol.stage import Measure, Score, Stage
from cosilo.protocol.wire import decode
from cosilo.runs.durable_files import as_line, checksum, checksum_of_file, from_line, write

#: From this many bytes on, a reply has a file to itself: it is given another name instead of being copied.
LARGE = 2**16
#: The file that the next state is written over.
SPARE_FILE = "state.old"
#: A state may be replaced between looking for it and reading it: how often to look.
_TRIES = 10


@dataclass(frozen=True)
class SiloState:
    """What a silo is after a step."""

    #: Of the coordinator's ask.
    number: int
    #: A checksum of the ask.
    asked: str
    #: The SHA-256 of the reply.
    reply: str
    #: Whether the reply has a file to itself.
    large: bool
    #: By stage and measure.
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: The folders of its models: "model", "trial" and "spare", as the silo has them, and "local", the model
    #: of local training.
    models: Mapping[str, str] = field(default_factory=dict)
    #: The checksum of each of their files.
    files: Mapping[str, str] = field(default_factory=dict)
    #: What a method left beside the model, encoded.
    notes: bytes = b""
    #: The reply itself, unless it is large.
    content: bytes = b""

    @property
    def trained(self) -> bool:
        """Whether the silo has a model."""
        return "model" in self.models

    @property
    def file_name(self) -> str:
        """What its file is called."""
        return f"state-{self.number:05d}"

    @property
    def reply_name(self) -> str:
        """What the file of its reply is called, if that is large."""
        return f"reply-{self.number:05d}"

    def without_content(self) -> "SiloState":
        """The same without notes and reply, which may be large."""
        return replace(self, notes=b"", content=b"")

    def noted(self) -> Fields:
        """What a method left beside the model."""
        return Fields(decode(self.notes))

    def all_scores(self) -> dict[Stage, dict[Measure, Score]]:
        """The scores, by stage and measure."""
        return {
            Stage.parse(stage): {Measure(measure): Score(**score) for measure, score in scores.items()}
            for stage, scores in self.scores.items()
        }

    def check_files(self, folder: Path) -> None:
        """Raise unless all files of its models are as they were written."""
        for name, whole in self.files.items():
            file = folder / name
            if not file.exists() or checksum_of_file(file) != whole:
                raise RunError(f"{file}: is damaged (its checksum differs); restore it or start a new run")

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all, over a file that is no longer needed."""
        head = {**vars(self), "notes": len(self.notes), "rest": checksum(self.notes, self.content)}
        del head["content"]
        line = as_line(head).encode()
        write(folder / self.file_name, line, self.notes, self.content, over=folder / SPARE_FILE)


def read_state(path: Path) -> SiloState:
    """What `write` wrote; anything else is an error of one line."""
    try:
        line, _, rest = path.read_bytes().partition(b"\n")
        head = from_line(line)
        if checksum(rest) != head.pop("rest"):
            raise ValueError("its checksum differs")
        size = head.pop("notes")
        return SiloState(**head, notes=rest[:size], content=rest[size:])
    except FileNotFoundError:
        raise RunError(f"{path}: is missing; start a new run") from None
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{path}: is damaged (its checksum differs); restore it or start a new run") from None


def last_state(record: Path) -> SiloState | None:
    """The state after the last completed step. The record stays as it is: a run may be at work in it."""
    for _ in range(_TRIES):
        last = max(record.glob("state-[0-9]*[0-9]"), key=lambda path: int(path.name[6:]), default=None)
        if last is None:
            return None
        try:
            return read_state(last)
        except RunError:
            if last.exists():
                raise
    raise RunError(f"{record}: changes faster than it can be read; look again when the run is over")
