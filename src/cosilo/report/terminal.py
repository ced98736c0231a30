"""The table of a comparison, for a terminal."""

from collections.abc import Callable

from rich.table import Column, Table
from rich.text import Text

from cosilo.report.averages import Average
from cosilo.report.phrases import percent, seconds, size
from cosilo.report.summary import Row, Summary
from cosilo.report.time_to_accuracy import soon


def table(summary: Summary) -> Table:
    """One row for each method; columns that no method has anything for are left out, but accuracy."""
    columns: dict[str, Callable[[Row], str | None]] = {
        "federated\naccuracy": lambda row: row.accuracy.percent if row.accuracy else None,
        "relative\naccuracy": lambda row: row.relative.ratio if row.relative else None,
        "labelling\naccuracy": lambda row: row.labelling.percent if row.labelling else None,
        "joint\naccuracy": lambda row: row.joint.percent if row.joint else None,
        "left\na silo": lambda row: size(row.left.mean) if row.left else None,
        "time of\na run": lambda row: seconds(row.seconds.mean) if row.seconds else None,
    }
    goal = soon(summary)
    if goal:
        of, to = goal.of, percent(goal.accuracy)
        columns[f"rounds to\n{to}"] = lambda row: _short(of(row.name).rounds)
        columns[f"seconds to\n{to}"] = lambda row: _short(of(row.name).seconds)
    cells = {name: [cell(row) for row in summary.rows] for name, cell in columns.items()}
    shown = {name: cells[name] for name in cells if any(cells[name]) or name.startswith("federated")}
    drawn = Table(Column("method", no_wrap=True), *[Column(name, justify="right") for name in shown])
    for place, row in enumerate(summary.rows):
        drawn.add_row(Text(row.name), *[column[place] or "–" for column in shown.values()])
        for seed in row.failed:
            drawn.add_row(Text(f"  seed {seed} failed", style="red"))
    return drawn


def _short(value: Average | None) -> str | None:
    return None if value is None else value.text("{:,.1f}".format)
