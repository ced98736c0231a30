"""Simulated time with institutions: one network inside each of them, another to the coordinator.

A simulation computes the members of an institution one after the other; in simulated time they compute at
once: an institution takes as long for an ask as the asks took that it sent its members for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cosilo.errors import DataError
from cosilo.simulated_time.clock import Clock, Link, Moment, timeline

#: The lines of an asks.jsonl.
Asks = Sequence[Mapping[str, Any]]
#: A link that takes no time.
_NO_TIME = Link(rate=1e300)


def layered(asks: Asks, members: Mapping[str, Asks], clock: Clock, seed: int) -> list[Moment]:
    """When each ask of a run was completed, in simulated seconds; see `timeline`.

    `asks` are those of the run, and `members` those of each institution (`run.asks()`, `run.asks(NAME)`). The
    clock's `up` and `down` are between institutions and the coordinator, `inside` between members and their
    institution; members, and silos without any, compute as the clock says.

    >>> def reply(seconds):
    ...     return {"seconds": seconds, "fields": {"weights": {"kind": "weights", "bytes": 100}}}
    >>> outer = {"number": 6, "step": "train", "timed": True, "silos": ["a"], "arrivals": {"a": reply(9.0)}}
    >>> inner = {"number": 7, "within": 6, "step": "train", "timed": True, "silos": ["x", "y"]}
    >>> inner["arrivals"] = {"x": reply(2.0), "y": reply(3.0)}
    >>> clock = Clock(up=Link(rate=10.0), inside=Link(rate=100.0, shared=False))
    >>> layered([outer], {"a": [inner, inner]}, clock, seed=0)  # twice 3 s + 100 / 100 s; then 100 / 10 s
    [Moment(number=6, step='train', download=0.0, compute=8.0, upload=10.0, at=18.0, timed=True)]
    """
    if not members:
        return timeline(asks, clock, seed)
    link = clock.inside or _NO_TIME
    inside = clock.model_copy(update={"up": link, "down": clock.down and link})
    spent = {
        name: _inner_seconds(members[name], inside, seed + place)
        for place, name in enumerate(sorted(members), start=1)
    }
    timed = [{**ask, "arrivals": _timed(ask, spent, clock)} for ask in asks]
    return timeline(timed, Clock(up=clock.up, down=clock.down), seed)


def _inner_seconds(asks: Asks, clock: Clock, seed: int) -> dict[int, float]:
    """How long an institution's asks took together, by the coordinator's ask that they were for."""
    found: dict[int, float] = {}
    for ask, moment in zip(asks, timeline(asks, clock, seed), strict=True):
        if "within" not in ask:
            raise DataError(f"members: ask {ask['number']} is not within one; wants run.asks(INSTITUTION)")
        seconds = moment.download + moment.compute + moment.upload
        found[ask["within"]] = found.get(ask["within"], 0.0) + seconds
    return found


def _timed(ask: Mapping[str, Any], spent: Mapping[str, Mapping[int, float]], clock: Clock) -> dict[str, Any]:
    """The arrivals of an ask with simulated seconds instead of measured ones."""
    found = {}
    for name, reply in ask["arrivals"].items():
        if name in spent:
            seconds = spent[name].get(ask["number"], 0.0)
        else:
            alone = {**ask, "arrivals": {name: reply}}
            seconds = timeline([alone], clock, seed=0)[0].compute
        found[name] = {**reply, "seconds": seconds}
    return found


def time_to(target: float, curve: Iterable[tuple[float, float]]) -> float | None:
    """Seconds until an accuracy was first reached (Table 1 of Tempo); None if it never was.

    `curve` holds seconds and accuracies, in order of time.

    >>> time_to(0.8, [(10.0, 0.7), (20.0, 0.85)]), time_to(0.9, [(10.0, 0.7), (20.0, 0.85)])
    (20.0, None)
    """
    return next((seconds for seconds, accuracy in curve if accuracy >= target), None)
