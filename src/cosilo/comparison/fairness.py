"""What compared methods are not equal in: nothing is refused, but a reader is told."""

from collections.abc import Callable, Mapping

from cosilo.methods.effort import Effort
from cosilo.text import listing

#: What is said of each part of an effort, and how its values are written.
_PARTS: dict[str, tuple[Callable[[Effort], float | None], Callable[[float], str]]] = {
    "models uploaded in a round": (lambda one: one.uploads, "{:g}".format),
    "epochs of a silo's training in all": (lambda one: one.epochs, "{:.2g}".format),
    "judged once in so many rounds": (lambda one: one.judged_every, "{:g}".format),
    "share of a silo's training data that is never trained on": (
        lambda one: one.held_out,
        lambda value: f"{value:.0%}",
    ),
}


def unequal(efforts: Mapping[str, Effort]) -> list[str]:
    """One line for each part in which methods differ; methods that do not have it are left out.

    >>> unequal({"fedavg": Effort(uploads=25), "fedbe": Effort(uploads=25), "dofed_spp": Effort(uploads=10)})
    ['Not equal: models uploaded in a round: 25 (fedavg, fedbe), 10 (dofed_spp)']
    """
    lines = []
    for text, (read, write) in _PARTS.items():
        groups: dict[str, list[str]] = {}
        for name, effort in efforts.items():
            value = read(effort)
            if value is not None:
                groups.setdefault(write(value), []).append(name)
        if len(groups) > 1:
            said = ", ".join(f"{value} ({listing(names, 20)})" for value, names in groups.items())
            lines.append(f"Not equal: {text}: {said}")
    return lines
