"""How a kind of thing is kept that skops does not keep, or keeps slowly."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Form:
    """How one kind of thing is kept: how to know it, its file, what is written there and how it is read.

    `write` returns what goes into `Part.about`. `read` gets that, and the thing in the silo's own learner
    that the part was trained from.
    """

    knows: Callable[[Any], bool]
    suffix: str | None
    write: Callable[[Any, Path], Any]
    read: Callable[[Path, Any, Any], Any]
    #: Whether it takes the silo's own learner to make it again.
    from_template: bool = False
