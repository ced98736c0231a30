"""What `cosilo check` shows: a row for each silo, and below an institution those of its members."""

from rich.table import Table

from cosilo.coordination.institution import Institution
from cosilo.federation.federation import Federation
from cosilo.protocol.participant import Participant
from cosilo.silo.silo import Silo


def overview(federation: Federation, title: str) -> Table:
    """All silos with what they have and what they share."""
    table = Table("silo", "instances", "task", "learner", "shares", title=title)
    for silo in federation.silos:
        table.add_row(*_cells(silo))
        for member in silo.silos if isinstance(silo, Institution) else ():
            name, *cells = _cells(member)
            table.add_row(f"  {name}", *cells)
    return table


def _cells(silo: Participant) -> tuple[str, ...]:
    classes, learner = ", ".join(silo.task.classes), "" if silo.learner is None else silo.learner.name
    if isinstance(silo, Silo) and silo.data.target is not None:
        classes += f"; wants {', '.join(silo.wanted.classes)}"
    if isinstance(silo, Institution):
        learner = f"({len(silo.silos)} member{'s' if len(silo.silos) > 1 else ''})"
    return silo.name, str(silo.size), classes, learner, ", ".join(sorted(silo.shares))
