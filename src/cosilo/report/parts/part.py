"""What one kind of findings adds to the page of a run: cards, and columns of the table of silos."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Literal

from markupsafe import Markup

from cosilo.protocol.findings import Findings
from cosilo.report.results import Results


@dataclass(frozen=True)
class Column:
    """A column of a table; one of names heads its rows."""

    title: str
    kind: Literal["name", "number", "text"] = "number"


#: A text, or a text with a smaller one below it.
Cell = str | tuple[str, str]


@dataclass(frozen=True)
class Table:
    """Exact numbers below a figure, or instead of one."""

    #: What it is, for those who do not see it.
    label: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    #: What opens it, if it is closed at first.
    summary: str = ""
    #: With more rows than this it scrolls in a box of its own.
    longest: int = 12


@dataclass(frozen=True)
class Card:
    """A figure, a table or both, under a title, with a sentence on how to read it."""

    title: str
    caption: str = ""
    svg: Markup = field(default_factory=Markup)
    table: Table | None = None


@dataclass(frozen=True)
class SiloColumn:
    """A column of the table of silos; a silo without a value has a dash there."""

    title: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class ReportPart:
    """Cards by their id in the page, columns, and what stands at the top of the page, below the verdict."""

    cards: Mapping[str, Card] = field(default_factory=dict)
    columns: Sequence[SiloColumn] = ()
    notes: Sequence[str] = ()


@singledispatch
def show(found: Findings, results: Results) -> ReportPart:
    """What the page shows of a method's findings; `cosilo.report.parts` has one function for each kind."""
    raise NotImplementedError(f"no part of a report shows {type(found).__name__}")


def kinds() -> list[type[Findings]]:
    """The kinds of findings that have a part."""
    return [kind for kind in show.registry if issubclass(kind, Findings)]
