"""What a carrier is: it takes asks to silos and brings answers back; it knows no method."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Procedure
from cosilo.protocol.seal import Seal


class FailureKind(StrEnum):
    """Why a silo gave no usable answer."""

    #: Its policy does not allow what was asked.
    REFUSED = "refused"
    #: Its learner failed.
    LEARNER = "learner"
    #: The step failed for another reason.
    ERROR = "error"
    #: It took longer than its timeout.
    TIMEOUT = "timeout"
    #: It is not connected, or its process died.
    LOST = "lost"
    #: It sent something that is not a reply.
    UNREADABLE = "unreadable"
    #: Its reply failed a check of the coordinator.
    REJECTED = "rejected"


@dataclass(frozen=True)
class Failure:
    """Why a silo gave no usable answer: one line, safe to leave the silo."""

    kind: FailureKind
    text: str


@dataclass(frozen=True)
class Answer:
    """What came back from one silo, and the processor's seconds that its step took without judging."""

    silo: str
    content: bytes | Failure
    #: 0 if nothing was computed: a step that failed, or was done before.
    seconds: float = 0.0
    #: The file that holds just the content, if that is large and the silo's record is on this machine.
    file: Path | None = None
    #: What the silo states about this answer and its audit log; None if it did not answer by itself.
    seal: Seal | None = None


@dataclass(frozen=True)
class Ask:
    """One request to one silo: the coordinator's number for it, the step, and the encoded message."""

    number: int
    step: str
    body: bytes
    #: The hash of the run's contract.
    contract: str = ""
    #: The seal of the last reply that the coordinator has from this silo: a record that ends before is old.
    last: Seal | None = None


#: The ask to a silo, by name; a message for all is the same object in each.
Asks: TypeAlias = Callable[[str], Ask]


class Carrier(Protocol):
    """Carries messages between the coordinator and the silos of one run."""

    def open(self, procedure: Procedure, contract: Contract, folder: Path) -> None:
        """Make the silos ready; silo NAME keeps its record in `folder`/NAME, wherever the silo is."""

    def call(self, silos: Sequence[str], asks: Asks, timeout: float | None) -> Iterator[Answer]:
        """Ask the silos for a step; answers come in any order, exactly one for each silo."""

    def close(self) -> None:
        """Release everything that `open` made."""
