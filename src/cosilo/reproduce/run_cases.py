"""Run a reproduction: case after case, each a comparison that continues where it stopped."""

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cosilo.comparison.compare import check, run_plan
from cosilo.comparison.plan import Plan
from cosilo.config.reproduces import Size
from cosilo.errors import ConfigError, CosiloError, RunError
from cosilo.report.summary import numbers
from cosilo.reproduce.library import Reproduction
from cosilo.reproduce.measures import measure, unknown_silos
from cosilo.reproduce.record import RECORD_FILE, ReproductionRecord, commit, folder_of, machine, write_record
from cosilo.runs.comparison import Comparison
from cosilo.version import __version__


def run_reproduction(
    one: Reproduction,
    size: Size,
    seeds: int,
    parent: Path,
    tell: Callable[[str], None] = lambda line: None,
) -> ReproductionRecord:
    """Run what is not finished yet, and write the record; everything is checked before anything is run."""
    folder = folder_of(parent, one.name, size)
    plans = one.plans(size, seeds, folder)
    _check(one, plans, folder)
    found: dict[str, Comparison] = {}
    for case, plan in plans.items():
        before = f"{one.name}, {case}: " if len(plans) > 1 else f"{one.name}: "
        found[case] = run_plan(plan, folder / case, lambda line, before=before: tell(before + line))  # type: ignore[misc]
    failed = [
        f"{case}, {cell[0]}, seed {cell[1]}: {failure.story}"
        for case, comparison in found.items()
        for cell, failure in comparison.failures.items()
    ]
    if failed:
        raise RunError("\n".join([*failed, "the same command continues with it"]))
    record = ReproductionRecord(
        name=one.name,
        size=size,
        seeds=list(next(iter(plans.values())).seeds),
        values=measure(found, one.about),
        minutes=round(_seconds(found) / 60, 1),
        machine=machine(),
        commit=commit(),
        version=__version__,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        scale=_scale(found),
    )
    write_record(record, folder / RECORD_FILE)
    return record


def _check(one: Reproduction, plans: Mapping[str, Plan], folder: Path) -> None:
    problems = []
    for case, plan in plans.items():
        try:
            check(plan, folder / case)
            names = [silo.name for silo in plan.members(plan.seeds[0])[0]]
            problems += unknown_silos(plan, names, one.about)
        except CosiloError as error:
            problems += str(error).splitlines()
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))


def _seconds(found: Mapping[str, Comparison]) -> float:
    runs = [run for comparison in found.values() for run in comparison.runs.values()]
    return sum(numbers(run).seconds for run in runs)


def _scale(found: Mapping[str, Comparison]) -> str:
    """How many silos the runs have, over all cases."""
    abouts: list[dict[str, Any]] = [run.about for one in found.values() for run in one.runs.values()]
    silos = sorted({len(about["silos"]) for about in abouts})
    return f"{' or '.join(map(str, silos))} silos"
