"""When things happened, from the event log; not among the results, as no two runs take the same time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AskTime:
    """One ask: when it went out, how long until it was answered, who took longest."""

    number: int
    step: str
    #: Seconds of work before it, since the start of the run; while it was stopped, no time passes.
    start: float
    seconds: float
    answers: int
    slowest: str | None
    slowest_seconds: float


@dataclass(frozen=True)
class Timing:
    """The clock of a run."""

    asks: tuple[AskTime, ...]
    #: Seconds at work, from start to finish.
    wall: float
    #: How often the run was resumed, and for how many seconds it had been stopped.
    resumed: int
    still: float

    @property
    def asking(self) -> float:
        """Seconds in which the coordinator waited for silos."""
        return sum(ask.seconds for ask in self.asks)

    def by_step(self) -> dict[str, tuple[int, float]]:
        """How often each step was asked for, and the seconds of all these asks."""
        found: dict[str, tuple[int, float]] = {}
        for ask in self.asks:
            count, seconds = found.get(ask.step, (0, 0.0))
            found[ask.step] = (count + 1, seconds + ask.seconds)
        return found


def timing(events: Sequence[Mapping[str, Any]], asks: Sequence[Mapping[str, Any]]) -> Timing:
    """Put the asks on the clock; one that is not in the event log starts when the one before it ended."""
    starts: dict[int, float] = {}
    worked, still, resumed = 0.0, 0.0, 0
    last = None
    for event in events:
        if event["event"] in ("start", "resume") and last is not None:
            still += max(0.0, event["at"] - last)
            resumed += 1
        elif last is not None:
            worked += max(0.0, event["at"] - last)
        last = event["at"]
        if event["event"] == "ask":
            starts[event["ask"]] = worked
    timed = []
    end = 0.0
    for ask in asks:
        start = starts.get(ask["number"], end)
        silos = {name: arrival["seconds"] for name, arrival in ask["arrivals"].items()}
        slowest = max(silos, key=lambda name: silos[name], default=None)
        timed.append(
            AskTime(
                ask["number"],
                ask["step"],
                start,
                ask["seconds"],
                len(ask["arrivals"]),
                slowest,
                silos[slowest] if slowest is not None else 0.0,
            )
        )
        end = start + ask["seconds"]
    return Timing(tuple(timed), max(worked, end), resumed, still)
