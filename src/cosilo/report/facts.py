"""Everything a report shows, as plain values: a run in, no HTML and no sentence out.

Two runs can be compared part by part: `results` is the same for the same settings and seed, on every engine
and any number of workers; `traffic` and `timing` also depend on crashes and machines.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cosilo.errors import RunError
from cosilo.report.exchange import Exchange, exchange
from cosilo.report.pace import Pace, members, pace
from cosilo.report.results import Results, results
from cosilo.report.simulated import Simulated, simulated
from cosilo.report.targets import Targets, targets
from cosilo.report.timing import Timing, timing
from cosilo.report.traffic import Traffic, traffic
from cosilo.runs.durable_files import read_json
from cosilo.runs.run import Run
from cosilo.simulated_time.clock import Clock

#: What `About` has a place of its own for; every other key of run.json is shown as a setting.
_KNOWN = {"cosilo", "method", "seed", "silos", "pool", "pool_size", "created", "status", "clock", "members"}


@dataclass(frozen=True)
class Recipe:
    """The file a run was started from, with the values as they were used."""

    source: str
    values: Mapping[str, Any]
    is_demo: bool


@dataclass(frozen=True)
class About:
    """What makes a run that run."""

    folder: str
    method: str
    parameters: Mapping[str, Any]
    seed: int
    created: str
    status: str
    version: str
    pool: str | None
    pool_size: int
    others: Mapping[str, Any]
    recipe: Recipe | None

    @property
    def rounds(self) -> int:
        """How often the method exchanges; 1 if it has no such parameter."""
        rounds = self.parameters.get("rounds", 1)
        return rounds if isinstance(rounds, int) and rounds > 0 else 1

    @property
    def command(self) -> str | None:
        """What repeats the run on the command line, if it came from there."""
        if self.recipe is None:
            return None
        if self.recipe.is_demo:
            return f"cosilo demo --seed {self.seed}"
        return f"cosilo run {self.recipe.source}"


@dataclass(frozen=True)
class Facts:
    """All of a report."""

    about: About
    results: Results
    traffic: Traffic
    timing: Timing
    targets: Targets
    exchange: Exchange
    pace: Pace | None
    #: The members of every silo that is an institution.
    members: Mapping[str, tuple[str, ...]]
    simulated: Simulated | None


def gather(run: Run, clock: Clock | None = None) -> Facts:
    """Read a finished run; one that is not finished, or not whole, is a RunError.

    Simulated time is told by `clock`, or by the run's own one.
    """
    result = run.result
    try:
        about = _about(run)
        clock = clock or run.clock
        stages, travelled = tuple(result["scores"]), exchange(result)
        return Facts(
            about,
            results(run, result),
            traffic(run, len(travelled.rounds) or about.rounds),
            timing(run.events(), run.asks()),
            targets(result, run.about["silos"]),
            travelled,
            pace(result),
            members(run.about),
            None if clock is None else simulated(clock, run.moments(clock), stages),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise RunError(
            f"{run.folder}: its files are not those of a finished run ({type(error).__name__}: {error}); "
            "restore them or start a new run"
        ) from error


def _about(run: Run) -> About:
    about = run.about
    parameters = {key: value for key, value in about["method"].items() if key != "use"}
    return About(
        folder=run.folder.resolve().name,
        method=run.method,
        parameters=parameters,
        seed=about["seed"],
        created=about["created"],
        status=run.status,
        version=str(about.get("cosilo", "unknown")),
        pool=about.get("pool"),
        pool_size=about.get("pool_size", 0),
        others={key: value for key, value in about.items() if key not in _KNOWN},
        recipe=_recipe(run),
    )


def _recipe(run: Run) -> Recipe | None:
    path = run.folder / "recipe.json"
    if not path.exists():
        return None
    recipe = read_json(path)
    values = recipe["values"]
    demo = tomllib.loads(resources.files("cosilo").joinpath("recipes/demo.toml").read_text("utf-8"))
    return Recipe(recipe["source"], values, is_demo={**demo, "seed": values.get("seed")} == values)
