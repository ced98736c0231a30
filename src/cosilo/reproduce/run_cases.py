"""Run a reproduction: case after case, each a comparison that continues where it stopped."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosilo.comparison.compare import check, read_comparison, run_plan
from cosilo.comparison.plan import Plan, has_plan
from cosilo.config.reproduces import Size
from cosilo.coordination.run_loop import Engine, SideBySide
from cosilo.errors import ConfigError, CosiloError, RunError
from cosilo.report.summary import numbers
from cosilo.reproduce.library import Reproduction, digest
from cosilo.reproduce.measures import (
    finished_seeds,
    measure,
    measure_curves,
    measure_goals,
    measure_silos,
    unknown_silos,
)
from cosilo.reproduce.record import RECORD_FILE, ReproductionRecord, commit, folder_of, machine, write_record
from cosilo.runs.comparison import Comparison
from cosilo.version import __version__


def run_reproduction(
    one: Reproduction,
    size: Size,
    seeds: int | Sequence[int],
    parent: Path,
    tell: Callable[[str], None] = lambda line: None,
    engine: Engine | str = "local",
) -> ReproductionRecord:
    """Run what is not finished yet; everything is checked before.

    All cases run on a seed before the next; where runs go side by side, the seeds of a case go together.
    Whenever a case is through with these, the record is written: what is cut short has a record of what was
    finished, and a record grows with the seeds. `seeds`: how many, from the recipe's own on, or which.
    """
    folder = folder_of(parent, one.name, size)
    plans = one.plans(size, seeds, folder)
    _check(one, plans, folder)
    failed = []
    record = None
    every = sorted({seed for plan in plans.values() for seed in plan.seeds})
    for together in [every] if isinstance(engine, SideBySide) else [[seed] for seed in every]:
        for case, plan in plans.items():
            mine = [seed for seed in together if seed in plan.seeds]
            if not mine:
                continue
            before = f"{one.name}, {case}: " if len(plans) > 1 else f"{one.name}: "
            done = run_plan(
                plan,
                folder / case,
                lambda line, before=before: tell(before + line),  # type: ignore[misc]
                mine,
                engine,
            )
            failed += [
                f"{case}, {method}, seed {seed}: {failure.story}"
                for (method, seed), failure in done.failures.items()
            ]
            found = {
                name: read_comparison(folder / name) for name in one.about.case if has_plan(folder / name)
            }
            if finished_seeds(found):
                record = _record(one, size, found)
                write_record(record, folder / RECORD_FILE)
    if failed:
        raise RunError("\n".join([*failed, "the same command continues with it"]))
    assert record is not None  # without a failure, runs are finished
    return record


def measure_again(one: Reproduction, old: ReproductionRecord, folder: Path) -> ReproductionRecord:
    """The record of the runs in a folder, by what is measured now; where they come from stays."""
    found = {path.parent.name: read_comparison(path.parent) for path in folder.glob("*/comparison.json")}
    if not finished_seeds(found):
        return old
    stays = {key: getattr(old, key) for key in ("machine", "commit", "version", "date")}
    return replace(_record(one, old.size, found), **stays)


def _record(one: Reproduction, size: Size, found: Mapping[str, Comparison]) -> ReproductionRecord:
    spent = _minutes(found)
    return ReproductionRecord(
        name=one.name,
        size=size,
        seeds=finished_seeds(found),
        values=measure(found, one.about),
        minutes=round(sum(spent.values()), 1),
        spent=spent,
        machine=machine(),
        commit=commit(),
        version=__version__,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        scale=_scale(found),
        recipes={case: digest(comparison.values) for case, comparison in found.items() if comparison.runs},
        silos=measure_silos(found, one.about),
        curves=measure_curves(found, one.about),
        goals=measure_goals(found, one.about),
        unequal={case: list(comparison.unequal) for case, comparison in found.items() if comparison.runs},
    )


def _check(one: Reproduction, plans: Mapping[str, Plan], folder: Path) -> None:
    problems = []
    for case, plan in plans.items():
        try:
            check(plan, folder / case)
            names = [silo.name for silo in plan.members(plan.seeds[0])[0]]
            problems += unknown_silos(case, plan, names, one.about)
        except CosiloError as error:
            problems += str(error).splitlines()
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))


def _minutes(found: Mapping[str, Comparison]) -> dict[str, float]:
    """What the finished runs of each case and seed took."""
    spent: defaultdict[str, float] = defaultdict(float)
    for case, comparison in found.items():
        for (_, seed), run in comparison.runs.items():
            spent[f"{case} {seed}"] += numbers(run).seconds / 60
    return {cell: round(minutes, 2) for cell, minutes in spent.items()}


def _scale(found: Mapping[str, Comparison]) -> str:
    """How many silos the runs have, over all cases; those of institutions are what was trained."""
    abouts: list[dict[str, Any]] = [run.about for one in found.values() for run in one.runs.values()]
    texts = {(len(about["silos"]), sum(map(len, about.get("members", {}).values()))) for about in abouts}
    return " or ".join(
        f"{silos} silos" if not members else f"{members} silos in {silos} institutions"
        for silos, members in sorted(texts)
    )
