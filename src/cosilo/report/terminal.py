"""The table of a comparison, for a terminal."""

from rich.table import Column, Table
from rich.text import Text

from cosilo.report.summary import Summary
from cosilo.report.words import seconds, size


def table(summary: Summary) -> Table:
    """One row for each method; columns that no method has anything for are left out."""
    relative = ["relative\naccuracy"] if summary.baselines else []
    joint = ["joint\naccuracy"] if any(row.joint for row in summary.rows) else []
    labels = ["labelling\naccuracy"] if any(row.labelling for row in summary.rows) else []
    names = ["federated\naccuracy", *relative, *labels, *joint, "left\na silo", "time of\na run"]
    found = Table(Column("method", no_wrap=True), *[Column(name, justify="right") for name in names])
    for row in summary.rows:
        cells = [row.accuracy.percent if row.accuracy else "–"]
        if relative:
            cells.append(row.relative.ratio if row.relative else "–")
        if labels:
            cells.append(row.labelling.percent if row.labelling else "–")
        if joint:
            cells.append(row.joint.percent if row.joint else "–")
        cells.append(size(row.left.mean) if row.left else "–")
        cells.append(seconds(row.seconds.mean) if row.seconds else "–")
        found.add_row(Text(row.name), *cells)
        for seed in row.failed:
            found.add_row(Text(f"  seed {seed} failed", style="red"))
    return found
