"""Everything a report shows, as plain values: a run in, no HTML and no sentence out.

Two runs can be compared part by part: `results` is the same for the same settings and seed, on every engine
and any number of workers; `traffic` and `timing` also depend on crashes and machines.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cosilo.errors import BadMessage, RunError
from cosilo.privacy.account_text import Account, read_account
from cosilo.protocol.findings import Findings
from cosilo.report.metrics import Metrics, metrics
from cosilo.report.parts import kinds
from cosilo.report.results import Results, results
from cosilo.report.simulated import Simulated, simulated
from cosilo.report.targets import Targets, targets
from cosilo.report.timing import Timing, timing
from cosilo.report.traffic import Traffic, traffic
from cosilo.runs.durable_files import read_json
from cosilo.runs.run import RunDirectory
from cosilo.simulated_time.clock import Clock

#: The keys of run.json that `About` has fields for; every other key is shown as a setting.
_KNOWN = {
    "cosilo",
    "method",
    "seed",
    "silos",
    "pool",
    "pool_size",
    "created",
    "status",
    "clock",
    "members",
    "code",
    "protocol",
    "contract",
    "salt",  # whoever has it can guess what its digests stand for
}


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
    #: The run's contract in one line, and whether seals under it are signed; None: of an earlier version.
    contract: str | None = None

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
    #: What the method found out beside scores.
    findings: tuple[Findings, ...]
    #: How many rounds there were; None if the method has none.
    rounds: int | None
    #: The round after which the clock's budget had no time for another, if it hadn't.
    stopped_after: int | None
    #: The members of every silo that is an institution.
    members: Mapping[str, tuple[str, ...]]
    simulated: Simulated | None
    #: What silos promise their records, of those that do and whose record is here.
    accounts: Mapping[str, Account]
    #: What silos share of their models' quality beside accuracies.
    metrics: Metrics


def gather(run: RunDirectory, clock: Clock | None = None) -> Facts:
    """Read a finished run; an unfinished or damaged one is a RunError.

    Simulated time is taken from `clock`, or else from the run's own clock.
    """
    result = run.result
    try:
        about = _about(run)
        clock = clock or run.clock
        findings = tuple(found for kind in kinds() if (found := run.findings(kind)) is not None)
        stopped_after = result.get("stopped_after")
        rounds = stopped_after or _rounds(findings, about.parameters)
        scores = results(run, result)
        return Facts(
            about,
            scores,
            traffic(run, rounds or 1),
            timing(run.events(), run.asks()),
            targets(result, run.about["silos"]),
            findings,
            rounds,
            stopped_after,
            _members(run.about),
            None if clock is None else simulated(clock, run.moments(clock), scores.stages),
            _accounts(run),
            metrics(run),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, BadMessage) as error:
        raise RunError(
            f"{run.folder}: its files are not those of a finished run ({type(error).__name__}: {error}); "
            "restore them or start a new run"
        ) from error


def _rounds(findings: Sequence[Findings], parameters: Mapping[str, object]) -> int | None:
    """As many as the method found that there were, or as many as it was told."""
    for found in findings:
        if found.rounds_done is not None:
            return found.rounds_done
    told = parameters.get("rounds")
    return told if isinstance(told, int) else None


def _accounts(run: RunDirectory) -> dict[str, Account]:
    found = {name: read_account(run.folder / "silos" / name) for name in run.about["silos"]}
    return {name: account for name, account in found.items() if account is not None}


def _members(about: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    found = about.get("members") or {}
    return {str(name): tuple(map(str, inside)) for name, inside in found.items() if inside}


def _about(run: RunDirectory) -> About:
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
        contract=run.contract_line,
    )


def _recipe(run: RunDirectory) -> Recipe | None:
    path = run.folder / "recipe.json"
    if not path.exists():
        return None
    recipe = read_json(path)
    values = recipe["values"]
    demo = tomllib.loads(resources.files("cosilo").joinpath("recipes/demo.toml").read_text("utf-8"))
    return Recipe(recipe["source"], values, is_demo={**demo, "seed": values.get("seed")} == values)
