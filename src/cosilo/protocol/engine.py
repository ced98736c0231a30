"""What an engine is: it carries asks to silos and brings answers back; it knows no method."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cosilo.methods.base import Method
from cosilo.runs.journal import Failure


@dataclass(frozen=True)
class Answer:
    """What came back from one silo, and the seconds it took."""

    silo: str
    content: bytes | Failure
    seconds: float


class Engine(Protocol):
    """Carries messages between the coordinator and the silos of one run."""

    def open(self, method: Method, seed: int, folder: Path) -> None:
        """Make the silos ready; silo NAME keeps its record in `folder`/NAME, wherever the silo is."""

    def call(
        self,
        number: int,
        step: str,
        silos: Sequence[str],
        body: Callable[[str], bytes],
        timeout: float | None,
    ) -> Iterator[Answer]:
        """Ask the silos for a step; answers come in any order, exactly one for each silo.

        `body` gives the encoded message of a silo; a message for all is the same object for each.
        """

    def close(self) -> None:
        """Let go of everything `open` made."""
