"""The commands that only look: the methods, the runs, the report of one."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from cosilo.cli.arguments import RunFolder
from cosilo.cli.printing import new_table, say, show, tell
from cosilo.errors import RunError
from cosilo.text import near_file


def methods() -> None:
    """List the methods: what a silo has to share and to be, and their parameters."""
    from cosilo.methods import METHODS

    table = new_table("method", "a silo has to share", "takes", "parameters (default)")
    for name, kind in METHODS.items():
        method = kind()
        needs = [f"{need} ({why})" for need, why in method.needs().items()]
        takes = ["networks" if kind.needs_network else "any learner"]
        takes += [] if method.unmerged() else ["institutions"]
        fields = [f"{key} = {field.default!r}" for key, field in kind.model_fields.items()]
        table.add_row(name, "\n".join(needs) or "nothing", "\n".join(takes), "\n".join(fields) or "none")
    show(table)


def runs(parent: Annotated[Path, typer.Argument(help="The folder to look in.")] = Path("runs")) -> None:
    """List runs with their status and mean relative accuracy."""
    from cosilo.runs.run_folders import runs_in

    found = runs_in(parent, tell)
    if not found:
        _silo_runs(parent)
        return
    table = new_table("run", "method", "silos", "seed", "status", "relative accuracy", "begun")
    for one in found:
        relative = one.relative_accuracy() if one.status == "finished" else {}
        mean = f"{sum(relative.values()) / len(relative):.3f}" if relative else ""
        about = one.about
        counts = str(len(about["silos"])), str(about["seed"])
        begun = datetime.fromisoformat(about["created"]).astimezone()
        table.add_row(str(one.folder), one.method, *counts, one.status, mean, f"{begun:%Y-%m-%d %H:%M}")
    show(table)


def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run that goes on.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
) -> None:
    """Serve the page of a run on this machine while the run goes on, and its report then; Ctrl-C ends it."""
    import time
    from contextlib import suppress

    from cosilo.report.live_server import LiveServer
    from cosilo.runs.run import RunDirectory

    RunDirectory(folder)  # it has to be one
    with LiveServer(folder, port) as server, suppress(KeyboardInterrupt):
        say(f"watch: {server.address}")
        while True:
            time.sleep(1)


def _silo_runs(parent: Path) -> None:
    """The runs that a silo keeps itself: of a kit, or of its folder of runs."""
    from cosilo.runs.silo_runs import silo_runs_in

    if parent.is_file():
        raise RunError(f"{parent}: is a file; wants a folder with runs in it, or a kit")
    if not parent.is_dir() and parent != Path("runs"):  # before the first run there is no folder of runs
        raise RunError(f"{parent}: no such folder{near_file(parent)}")
    found = silo_runs_in(parent) or silo_runs_in(parent / "runs")
    if not found:
        say(f"no runs in {parent}/")
        return
    table = new_table("run", "silo", "method", "status", "before", "after", "left the silo")
    for one in found:
        scores = [one.accuracy(stage) for stage in ("local", "federated")]
        cells = ["" if score is None else f"{score:.1%}" for score in scores]
        status = "at work" if one.at_work else "over"
        name, method = str(one.about["name"]), str(one.about["method"])
        table.add_row(str(one.folder), name, method, status, *cells, f"{one.bytes_left:,} B")
    show(table)


def report(folder: RunFolder) -> None:
    """Write the report of a finished run, or of a comparison as far as it is, again; at a silo its page."""
    if (folder / "silo.json").exists() and not (folder / "run.json").exists():
        from cosilo.report.silo_page import write_silo_page
        from cosilo.runs.silo_runs import read_silo_run

        say(f"report: {write_silo_page(read_silo_run(folder))}")
        return
    from cosilo.comparison.compare import read_comparison
    from cosilo.comparison.plan import has_plan
    from cosilo.report import write_comparison, write_report
    from cosilo.runs.run import RunDirectory

    path = (
        write_comparison(read_comparison(folder)) if has_plan(folder) else write_report(RunDirectory(folder))
    )
    say(f"report: {path}")
