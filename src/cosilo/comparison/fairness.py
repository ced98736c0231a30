"""What compared methods are not equal in: nothing is refused, but a reader is told."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cosilo.methods.effort import Effort
from cosilo.text import listing


class _Part(NamedTuple):
    """What methods should be equal in."""

    read: Callable[[Effort], float | None]
    write: Callable[[float], str]
    #: By what share values may differ and still be called equal.
    near: float = 0.0


_PARTS = {
    "models uploaded in a round": _Part(lambda one: one.uploads, "{:g}".format),
    # Silos differ in size, and epochs are whole.
    "epochs of a silo's training in all": _Part(
        lambda one: one.epochs, lambda value: f"{value:.0f}" if value >= 100 else f"{value:.2g}", near=0.05
    ),
    "rounds between judgements": _Part(lambda one: one.judged_every, "{:g}".format),
    "share of a silo's labelled data that is never trained on": _Part(
        lambda one: one.held_out, lambda value: f"{value:.0%}"
    ),
}


def unequal(efforts: Mapping[str, Effort]) -> list[str]:
    """One line for each part in which methods differ; methods that do not have it are left out.

    >>> unequal({"fedavg": Effort(uploads=25), "fedbe": Effort(uploads=25), "dofed_spp": Effort(uploads=10)})
    ['Not equal: models uploaded in a round: 25 (fedavg, fedbe), 10 (dofed_spp)']
    """
    lines = []
    for text, part in _PARTS.items():
        there = {name: value for name, effort in efforts.items() if (value := part.read(effort)) is not None}
        groups: dict[str, list[str]] = {}
        for name, value in there.items():
            groups.setdefault(part.write(value), []).append(name)
        if len(groups) > 1 and max(there.values()) > (1 + part.near) * min(there.values()):
            said = ", ".join(f"{value} ({listing(names, 20)})" for value, names in groups.items())
            lines.append(f"Not equal: {text}: {said}")
    return lines
