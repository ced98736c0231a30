"""What a finished run and a comparison look like in a terminal."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from cosilo.cli.printing import new_table, say, show
from cosilo.methods.cofed import Votes
from cosilo.report import write_comparison, write_report
from cosilo.report.averages import Average
from cosilo.report.facts import gather
from cosilo.report.formatting import percent, seconds, size
from cosilo.report.metrics import NAMES
from cosilo.report.parts.votes import in_use
from cosilo.report.phrases import verdict
from cosilo.report.results import ENDS, results
from cosilo.report.summary import Row, Summary, summarise
from cosilo.report.time_to_accuracy import time_to_accuracy
from cosilo.runs.comparison import Comparison
from cosilo.runs.run import RunDirectory

if TYPE_CHECKING:
    from rich.table import Table


def show_run(run: RunDirectory) -> None:
    """The table of a finished run, and where its report is."""
    show(run_table(run))
    relative = run.relative_accuracy()
    if relative:
        mean = f"{sum(relative.values()) / len(relative):.3f}"
        say(Text.assemble("mean relative accuracy (federated / local): ", (mean, "bold")))
        say(verdict(gather(run)))
    votes = run.findings(Votes)
    if votes and votes.voting and any(not one.taken for one in votes.voting[-1].decisions.values()):
        say(" ".join(in_use(votes.voting[-1])))
    if failed := run.failed_silos():
        say(Text(failed, style="bold yellow"))
    say(f"run:    {run.folder}")
    say(f"report: {write_report(run)}")


def run_table(run: RunDirectory) -> "Table":
    """One row for each silo, and a column for each of the two stages at which silos were asked for scores."""
    stages = [stage for stage in ("local", "federated") if stage in run.result["scores"]]
    scores, relative = {stage: run.scores(stage) for stage in stages}, run.relative_accuracy()
    failed = {failure["silo"] for failure in run.result["failures"]}
    columns = [*stages, *(["relative"] if len(stages) == 2 else [])]
    table = new_table("silo", "task", *columns, "left the silo", title=run.method)
    result, shown = run.result, results(run, run.result)
    for place, name in enumerate(silo.name for silo in shown.shown):
        if shown.many and place == ENDS:
            table.add_row(f"… {len(shown.silos) - len(shown.shown):,} between …")
        # Who told a score at one stage only took no part in the other, such as a silo that only votes.
        tells = any(name in found for found in scores.values())
        missing = "failed" if name in failed else "–" if tells else "not shared"
        cells = [Text(f"{found[name]:.1%}" if name in found else missing) for found in scores.values()]
        if len(stages) == 2:
            cells.append(_gain(relative.get(name)))
        table.add_row(name, _brief(result["tasks"].get(name, [])), *cells, f"{run.bytes_sent(name):,} B")
    return table


def _brief(classes: list[str]) -> str:
    names = " ".join(classes)
    return names if len(names) <= 24 else f"{len(classes)} classes"


def _gain(relative: float | None) -> Text:
    if relative is None:
        return Text()
    return Text(f"{relative:.3f}", style="green" if relative > 1 else "red" if relative < 1 else "")


def show_comparison(found: Comparison) -> None:
    """The table of a comparison, and where its report is."""
    show(comparison_table(summarise(found)))
    say(f"comparison: {found.folder}")
    say(f"report:     {write_comparison(found)}")


def comparison_table(summary: Summary) -> "Table":
    """One row for each method; columns that no method has anything for are left out, but accuracy."""
    columns: dict[str, Callable[[Row], str | None]] = {
        "federated\naccuracy": lambda row: row.accuracy.percent if row.accuracy else None,
        "relative\naccuracy": lambda row: row.relative.ratio if row.relative else None,
        "labelling\naccuracy": lambda row: row.labelling.percent if row.labelling else None,
        "joint\naccuracy": lambda row: row.joint.percent if row.joint else None,
        "left\na silo": lambda row: size(row.left.mean) if row.left else None,
        "time of\na run": lambda row: seconds(row.seconds.mean) if row.seconds else None,
    }
    for metric in summary.metrics:
        title = NAMES[metric].replace(" ", "\n", 1)
        columns[title] = lambda row, name=metric: _plain(row.metric(name))  # type: ignore[misc]
        columns[f"relative\n{NAMES[metric]}"] = lambda row, name=metric: _plain(row.metric_gain(name))  # type: ignore[misc]
    goal = time_to_accuracy(summary)
    if goal:
        of, to = goal.of, percent(goal.accuracy)
        columns[f"rounds to\n{to}"] = lambda row: _short(of(row.name).rounds)
        columns[f"seconds to\n{to}"] = lambda row: _short(of(row.name).seconds)
    cells = {name: [cell(row) for row in summary.rows] for name, cell in columns.items()}
    shown = {name: cells[name] for name in cells if any(cells[name]) or name.startswith("federated")}
    table = new_table("method", *shown, right=shown)
    for place, row in enumerate(summary.rows):
        table.add_row(row.name, *[column[place] or "–" for column in shown.values()])
        for seed in row.failed:
            table.add_row(Text(f"  seed {seed} failed", style="red"))
    return table


def _plain(value: Average | None) -> str | None:
    return None if value is None else value.ratio


def _short(value: Average | None) -> str | None:
    return None if value is None else value.text("{:,.1f}".format)
