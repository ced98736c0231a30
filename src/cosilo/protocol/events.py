"""What happens in a run, for anything that wants to watch: logs, progress bars, live views."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias


class Happening(StrEnum):
    """What may happen."""

    START = "start"
    RESUME = "resume"
    #: A step is asked for: `ask`, `step`, `silos`.
    ASK = "ask"
    #: A usable reply came: `ask`, `step`, `silo`, `seconds`.
    REPLY = "reply"
    #: A silo failed: `ask`, `step`, `silo`, `kind`, `text`.
    FAILURE = "failure"
    #: The method has something to say about the run so far: `text`.
    WARNING = "warning"
    #: All have answered: `ask`, `step`, `seconds`.
    ANSWERED = "answered"
    #: The run cannot continue: `text`.
    STOP = "stop"
    #: The run waits for its next job: a silo is back.
    HELD = "held"
    FINISH = "finish"


@dataclass(frozen=True)
class Event:
    """One thing that happened in a run, as observers are told.

    Parameters
    ----------
    what : Happening
        What it is: start, resume, ask, reply, failure, warning, answered, stop, held or finish.
    facts : mapping, default {}
        What is to be said about it: the number of the ask, its step, the silo and so on.

    Examples
    --------
    >>> def print_failures(event: Event) -> None:
    ...     if event.what is Happening.FAILURE:
    ...         print(event.facts["text"])
    >>> print_failures(Event(Happening.FAILURE, {"silo": "a", "text": "silo 'a': is not connected"}))
    silo 'a': is not connected
    """

    what: Happening
    facts: Mapping[str, object] = field(default_factory=dict)


#: Called with every event, in order, in the coordinator's process.
Observer: TypeAlias = Callable[[Event], None]
