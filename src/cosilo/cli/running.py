"""The commands that run a recipe here: demo, run, compare; and resume, which goes on with what they began."""

import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cosilo.cli.arguments import Address, EngineName, RecipeFile, RunFolder, Sets
from cosilo.cli.checking import refuse_party
from cosilo.cli.printing import say, show, tell
from cosilo.errors import ConfigError, RunError, SiloFailed

if TYPE_CHECKING:
    from cosilo.comparison.plan import Plan
    from cosilo.config.source import Source
    from cosilo.coordination.run_loop import Engine

Tracker = Literal["mlflow", "tensorboard", "wandb"]
Track = Annotated[
    Tracker | None, typer.Option("--track", help="Also hand the results to a tracker (extra tracking).")
]


def _method_names(incomplete: str) -> list[str]:
    """For the shell: the methods that may come next in a list with commas."""
    from cosilo.methods import METHODS

    before, comma, start = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in METHODS if name.startswith(start) and name not in taken]


def demo(
    seed: Annotated[int, typer.Option(help="Another seed, another split of the digits.")] = 0,
    folder: Annotated[Path | None, typer.Option("--dir", help="The run directory.")] = None,
) -> None:
    """Twelve silos with eight kinds of models and different tasks learn from each other; takes seconds."""
    from cosilo.config import recipe_file
    from cosilo.config.source import Source
    from cosilo.recipes import RECIPES

    values = recipe_file.read(RECIPES / "demo.toml", [f"seed={seed}"])
    show(
        "Twelve silos, each with its own classifier, its own classes and a few handwritten digits, "
        "label one public pool. Those labels are all that the others learn from; the vote comes back.\n"
    )
    _run(values, Source("demo.toml", Path.cwd()), folder)


def run(
    file: RecipeFile,
    set_: Sets = None,
    folder: Annotated[Path | None, typer.Option("--dir", help="The run directory.")] = None,
    engine: EngineName = "local",
    address: Address = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve the run's page on this machine meanwhile.")
    ] = False,
    track: Track = None,
) -> None:
    """Run a recipe; ends with a table and a report."""
    from cosilo.config import recipe_file
    from cosilo.config.source import Source

    chosen = chosen_engine(engine, address)
    values = recipe_file.read(file, set_ or [])
    refuse_party(values, file)
    _run(values, Source(str(file), file.parent), folder, chosen, watch=watch, track=track)


def compare(
    file: RecipeFile,
    methods: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help=r"The methods, or names of \[compare.NAME].",
            autocompletion=_method_names,
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from the recipe's own on.")] = 3,
    set_: Sets = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="The comparison's directory; one that is there goes on.")
    ] = None,
    engine: EngineName = "local",
    address: Address = None,
    track: Track = None,
) -> None:
    """Run several methods on several seeds of a recipe; ends with a table and a report of mean ± spread."""
    from cosilo.comparison.compare import default_folder, plan_for
    from cosilo.config import recipe_file
    from cosilo.config.source import Source

    chosen, source = chosen_engine(engine, address), Source(str(file), file.parent)
    values = recipe_file.read(file, set_ or [])
    refuse_party(values, file)
    folder = default_folder(values, source) if folder is None else folder
    names = [name.strip() for name in methods.split(",")]
    _compare(plan_for(values, source, names, seeds, folder), folder, chosen, track)


def resume(folder: RunFolder, engine: EngineName = "local", address: Address = None) -> None:
    """Continue a run or a comparison that was interrupted; completed steps are not repeated."""
    from cosilo.cli.results import show_run
    from cosilo.comparison.plan import has_plan, read_plan
    from cosilo.config.source import read_recipe
    from cosilo.engines.flare import runs as between
    from cosilo.runs.run import RunDirectory

    chosen = chosen_engine(engine, address)
    if has_plan(folder):
        _compare(read_plan(folder), folder, chosen)
        return
    if between.is_between_organisations(folder):
        show_run(between.resume(folder, tell))
        return
    stopped = RunDirectory(folder)
    values, source = read_recipe(folder, f"call the federation's run({str(folder)!r}) again")
    if stopped.status == "finished":
        say("the run is finished already")
        if not any((folder / "silos").glob("*/identity.json")):
            show_run(stopped)  # of a version that did not keep what silos were: there is nothing to compare
            return
    _run(values, source, folder, chosen)


def chosen_engine(engine: str, address: str | None) -> "Engine | str":
    """The engine of a command's options."""
    if engine == "ray":
        from cosilo.engines.ray import need_ray
        from cosilo.engines.ray.engine import RayEngine

        need_ray()
        return RayEngine(address)
    if address is not None:
        raise ConfigError(f"--address {address}: is for --engine ray; got --engine {engine}")
    return engine


def _resume(folder: Path, engine: "Engine | str") -> str:
    """The command that goes on where a run or a comparison stopped."""
    if isinstance(engine, str):
        return f"cosilo resume {folder}" + ("" if engine == "local" else f" --engine {engine}")
    address = getattr(engine, "address", None)
    return f"cosilo resume {folder} --engine ray" + (f" --address {address}" if address else "")


def _run(
    values: dict[str, Any],
    source: "Source",
    folder: Path | None,
    engine: "Engine | str" = "local",
    *,
    watch: bool = False,
    track: Tracker | None = None,
) -> None:
    from cosilo.cli.results import show_run
    from cosilo.config import build, settings
    from cosilo.runs.run import RunDirectory
    from cosilo.runs.run_folders import new_folder_name

    federation = build.federation(values, source, engine=engine)
    if folder is None:
        parent = source.path(settings.validate(values, source.name).runs)
        folder = new_folder_name(parent, federation.method.name)
    try:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", SiloFailed)  # the end of the table says so
            if watch:
                from cosilo.report.live_server import LiveServer

                server = stack.enter_context(LiveServer(folder))
                tell(f"watch: {server.address}")
                stack.callback(time.sleep, 2.0)  # an open page gets to the report
            finished = federation.run(folder)
    except KeyboardInterrupt:
        tell(f"\nstopped; completed steps are kept: {_resume(folder, engine)}")
        raise typer.Exit(130) from None
    except RunError as error:
        if (folder / "run.json").exists() and RunDirectory(folder).status == "stopped":
            raise RunError(f"{error}\ncompleted steps are kept: {_resume(folder, engine)}") from error
        raise
    show_run(finished)
    if track is not None:
        from cosilo.tracking.tracking import track_run

        say(f"{track}: {track_run(finished, track)}")


def _compare(
    plan: "Plan", folder: Path, engine: "Engine | str" = "local", track: Tracker | None = None
) -> None:
    from cosilo.cli.results import show_comparison
    from cosilo.comparison.compare import run_plan
    from cosilo.comparison.plan import has_plan

    try:
        found = run_plan(plan, folder, tell, engine=engine)
    except KeyboardInterrupt:
        kept = f"; completed steps are kept: {_resume(folder, engine)}" if has_plan(folder) else ""
        tell(f"\nstopped{kept}")
        raise typer.Exit(130) from None
    show_comparison(found)
    if track is not None:
        from cosilo.tracking.tracking import track_comparison

        say(f"{track}: {track_comparison(found, track)}")
    if found.failures:
        lines = [f"{name}, seed {seed}: {one.story}" for (name, seed), one in found.failures.items()]
        raise RunError("\n".join([*lines, f"completed steps are kept: {_resume(folder, engine)}"]))
