"""The command line: every mistake is one line, never a traceback."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import typer.exceptions
from rich.console import Console
from rich.table import Column, Table

import cosilo
from cosilo.cli.labels import first_labels, known_ending, per_class, read_labels, write_labels
from cosilo.cli.organisations import add_commands, check_party, refuse_party
from cosilo.cli.overview import overview
from cosilo.cli.reproduce import add_command as add_reproduce
from cosilo.comparison.compare import Comparison, carry_out, default_folder, opened, plan_for
from cosilo.comparison.plan import Plan, has_plan, read_plan
from cosilo.config import build, settings
from cosilo.engines.flare.runs import is_between
from cosilo.engines.flare.runs import resume as resume_between
from cosilo.errors import ConfigError, CosiloError, RunError
from cosilo.methods import METHODS
from cosilo.recipes import RECIPES
from cosilo.runs.run import Run, new_folder_name, runs_in

Engine = Literal["local", "flare"]
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
out = Console()
err = Console(stderr=True)

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe: method.alpha=0.5."),
]
RecipeFile = Annotated[Path, typer.Argument(metavar="FILE.toml", help="A recipe.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or that of a comparison.")]


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"cosilo {cosilo.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def cosilo_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Organisations improve each other's classifiers; data, models and training stay where they are."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Another seed, another split of the digits.")] = 0,
    folder: Annotated[Path | None, typer.Option("--dir", help="The run directory.")] = None,
) -> None:
    """Eight silos with eight different models and tasks learn from each other; takes seconds."""
    recipe = RECIPES / "demo.toml"
    values = settings.read(recipe, [f"seed={seed}"])
    out.print(
        "Eight silos, each with its own kind of classifier, its own classes and a few handwritten digits, "
        "label one public pool. Those labels are all that the others learn from; the vote comes back.\n"
    )
    _run(values, build.Source("demo.toml", Path.cwd()), folder)


@app.command()
def run(
    file: RecipeFile,
    set_: Sets = None,
    folder: Annotated[Path | None, typer.Option("--dir", help="The run directory.")] = None,
    engine: Annotated[
        Engine, typer.Option(help="Where: here, or on the simulator of NVIDIA FLARE.")
    ] = "local",
) -> None:
    """Run a recipe; ends with a table and a report."""
    values = settings.read(file, set_ or [])
    refuse_party(values, file)
    _run(values, build.Source(str(file), file.parent), folder, engine)


@app.command()
def compare(
    file: RecipeFile,
    methods: Annotated[str, typer.Option(metavar="A,B,…", help="The methods, or names of [compare.NAME].")],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from the recipe's own on.")] = 3,
    set_: Sets = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="The comparison's directory; one that is there goes on.")
    ] = None,
) -> None:
    """Run several methods on several seeds of a recipe; ends with a table and a report of mean ± spread."""
    source = build.Source(str(file), file.parent)
    values = settings.read(file, set_ or [])
    refuse_party(values, file)
    folder = default_folder(values, source) if folder is None else folder
    names = [name.strip() for name in methods.split(",")]
    _compare(plan_for(values, source, names, seeds, folder), folder)


@app.command()
def check(file: RecipeFile, set_: Sets = None) -> None:
    """Validate a recipe without training: files, columns, tasks, pool, learners, share policies.

    The file of a silo that joins others, and that of their coordinator, can be checked too.
    """
    if not set_ and check_party(file):
        return
    source = build.Source(str(file), file.parent)
    federation = build.federation(settings.read(file, set_ or []), source)
    problems = federation.check()
    if problems:
        raise ConfigError("\n".join(problems))
    out.print(overview(federation, str(file)))
    labelled = "not labelled" if federation.pool_labels is None else "labelled"
    pool = "none" if federation.pool is None else f"{len(federation.pool)} instances, {labelled}"
    out.print(f"method {federation.method.name}; pool {pool}, fingerprint {federation.pool_fingerprint}")
    out.print("ready to run")


@app.command()
def resume(folder: RunFolder) -> None:
    """Continue a run or a comparison that was interrupted; completed steps are not repeated."""
    if has_plan(folder):
        _compare(read_plan(folder), folder)
        return
    if is_between(folder):
        show(resume_between(folder, lambda line: err.print(line, highlight=False, soft_wrap=True)))
        return
    stopped = Run(folder)
    values, source = build.read_recipe(folder, f"call the federation's run({str(folder)!r}) again")
    if stopped.status == "finished":
        out.print("the run is finished already")
    _run(values, source, folder)


@app.command()
def report(folder: RunFolder) -> None:
    """Write the report of a finished run, or of a comparison as far as it is, again."""
    from cosilo.report import write_comparison, write_report

    path = write_comparison(opened(folder)) if has_plan(folder) else write_report(Run(folder))
    out.print(f"report: {path}", soft_wrap=True)


@app.command()
def labels(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    silo: Annotated[str, typer.Argument(help="The silo whose target was labelled.")],
    file: Annotated[Path | None, typer.Option("--out", help="A .csv or .parquet file to write.")] = None,
) -> None:
    """Write the labels that a run found for a silo's unlabelled target points, or show the first ones."""
    if file is not None:
        known_ending(file)
    found = read_labels(folder, silo)
    if file is not None:
        write_labels(found, file)
        out.print(f"{len(found)} labels: {file}", soft_wrap=True)
        return
    out.print(first_labels(found))
    out.print(per_class(found), soft_wrap=True)


@app.command()
def methods() -> None:
    """List the methods: what a silo has to share, and their parameters."""
    table = Table("method", "a silo has to share", "parameters (default)")
    for name, kind in METHODS.items():
        needs = [f"{need} ({why})" for need, why in kind().needs().items()]
        fields = [f"{key} = {field.default!r}" for key, field in kind.model_fields.items()]
        table.add_row(name, "\n".join(needs) or "nothing", "\n".join(fields) or "none")
    out.print(table)


@app.command()
def runs(parent: Annotated[Path, typer.Argument(help="The folder to look in.")] = Path("runs")) -> None:
    """List runs with their status and mean relative accuracy."""
    found = runs_in(parent)
    if not found:
        out.print(f"no runs in {parent}/")
        return
    table = Table("run", "method", "silos", "seed", "status", "relative accuracy", "created")
    for one in found:
        mean = _mean(one.relative()) if one.status == "finished" else None
        shown = "" if mean is None else f"{mean:.3f}"
        about = one.about
        cells = [
            one.method,
            str(len(about["silos"])),
            str(about["seed"]),
            one.status,
            shown,
            about["created"],
        ]
        table.add_row(str(one.folder), *cells)
    out.print(table)


def _run(values: dict[str, Any], source: build.Source, folder: Path | None, engine: Engine = "local") -> None:
    federation = build.federation(values, source)
    if folder is None:
        parent = source.path(settings.validate(values, source.name).runs)
        folder = new_folder_name(parent, federation.method.name)
    try:
        finished = federation.run(folder, engine=engine)
    except KeyboardInterrupt:
        err.print(f"\nstopped; completed steps are kept: cosilo resume {folder}", soft_wrap=True)
        raise typer.Exit(130) from None
    except RunError as error:
        if (folder / "run.json").exists() and Run(folder).status == "stopped":
            raise RunError(f"{error}\ncompleted steps are kept: cosilo resume {folder}") from error
        raise
    show(finished)


def show(finished: Run) -> None:
    """The table of a finished run, and where its report is."""
    from cosilo.report import write_report

    local, federated = finished.scores("local"), finished.scores("federated")
    relative = finished.relative()
    tasks = finished.result["tasks"]
    failed = {failure["silo"] for failure in finished.result["failures"]}
    silo_column = Column("silo", no_wrap=True)
    alone = "local" in finished.result["scores"]  # a method may leave local training out
    columns = ("task", "local", "federated", "relative") if alone else ("task", "federated")
    table = Table(silo_column, *columns, "left the silo", title=finished.method)
    for name in finished.about["silos"]:
        gain = relative.get(name)
        colour = "" if gain is None else "green" if gain > 1 else "red" if gain < 1 else ""
        shown = "" if gain is None else f"[{colour}]{gain:.3f}[/]" if colour else f"{gain:.3f}"
        cells = [_percent(federated.get(name), name in failed)]
        if alone:
            cells = [_percent(local.get(name), name in failed), *cells, shown]
        table.add_row(name, _brief(tasks.get(name, [])), *cells, f"{finished.left(name):,} B")
    out.print(table)
    for failure in finished.result["failures"]:
        out.print(f"[yellow]{failure['text']}[/]", soft_wrap=True)
    if relative:
        out.print(f"mean relative accuracy (federated / local): [bold]{_mean(relative):.3f}[/]")
    out.print(f"run:    {finished.folder}", soft_wrap=True)
    out.print(f"report: {write_report(finished)}", soft_wrap=True)


def _compare(plan: Plan, folder: Path) -> None:
    try:
        found = carry_out(plan, folder, tell=lambda line: err.print(line, highlight=False, soft_wrap=True))
    except KeyboardInterrupt:
        kept = f"; completed steps are kept: cosilo resume {folder}" if has_plan(folder) else ""
        err.print(f"\nstopped{kept}", soft_wrap=True)
        raise typer.Exit(130) from None
    show_comparison(found)
    if found.failures:
        lines = [f"{name}, seed {seed}: {one.story}" for (name, seed), one in found.failures.items()]
        raise RunError("\n".join([*lines, f"completed steps are kept: cosilo resume {folder}"]))


def show_comparison(found: Comparison) -> None:
    """The table of a comparison, and where its report is."""
    from cosilo.report import write_comparison
    from cosilo.report.summary import summarise
    from cosilo.report.terminal import table

    out.print(table(summarise(found)))
    out.print(f"comparison: {found.folder}", soft_wrap=True)
    out.print(f"report:     {write_comparison(found)}", soft_wrap=True)


def _brief(classes: list[str]) -> str:
    names = " ".join(classes)
    return names if len(names) <= 24 else f"{len(classes)} classes"


def _percent(accuracy: float | None, failed: bool) -> str:
    if accuracy is None:
        return "failed" if failed else "not shared"
    return f"{accuracy:.1%}"


def _mean(values: dict[str, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None


add_commands(app, lambda finished: show(finished))
add_reproduce(app)


def main() -> None:
    """Run the command line; a mistake is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except CosiloError as error:
        for line in str(error).splitlines():
            err.print("error:", line, style="red", soft_wrap=True, highlight=False, markup=False)
        sys.exit(2)
    except typer.exceptions.TyperException as error:
        if not error.format_message():  # no arguments at all: the help was shown
            sys.exit(0)
        err.print(
            "error:", error.format_message(), style="red", soft_wrap=True, highlight=False, markup=False
        )
        sys.exit(2)
    except typer.Abort:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
