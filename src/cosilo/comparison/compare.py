"""Several methods on several seeds of one recipe: everything is checked first, then run, one after the other.

On a cluster with room for several runs they go side by side.

```
comparison.json   the recipe, the methods, the seeds     comparison.html   the report
METHOD-seedN/     one run each, as `cosilo run` makes it
```

A comparison that was interrupted continues where it stopped, and a finished one can grow: runs that exist
are only opened. A run that fails does not keep the others from running.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosilo.comparison.fairness import unequal
from cosilo.comparison.plan import Plan, has_plan, make_plan, merge_plans, read_plan, write_plan
from cosilo.config import build
from cosilo.config.build import Source
from cosilo.config.settings import validate
from cosilo.coordination.run_loop import Engine, SideBySide
from cosilo.errors import ConfigError, CosiloError, RunError, SiloFailed
from cosilo.protocol.events import Observer
from cosilo.runs.comparison import Comparison, FailedRun, MethodAndSeed
from cosilo.runs.locks import locked
from cosilo.runs.run import RunDirectory
from cosilo.runs.run_folders import new_folder_name
from cosilo.text import listing


def compare(
    values: Mapping[str, Any],
    source: Source,
    methods: Sequence[str],
    seeds: int = 3,
    folder: str | Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Run every method on `seeds` seeds of a recipe, from the recipe's own seed on.

    A folder with a comparison of the same recipe is continued; new methods and seeds are added to it.
    `tell` gets one line for each thing that the methods are not equal in, and one before each run.

    >>> import tempfile
    >>> learners = [{"use": "sklearn.naive_bayes.GaussianNB"}, {"use": "sklearn.tree.DecisionTreeClassifier"}]
    >>> split = {"use": "iid", "silos": 2, "size": 100}
    >>> simulation = {"dataset": "digits", "split": split, "learners": learners}
    >>> values = {"simulation": simulation, "pool": {"rest": True, "size": 200}}
    >>> folder = tempfile.mkdtemp()
    >>> found = compare(values, Source("example", Path()), ["local", "cofed"], 1, folder, tell=print)
    local, seed 0 (1 of 2)
    cofed, seed 0 (2 of 2)
    >>> sorted(found.runs["cofed", 0].relative_accuracy())
    ['silo-1', 'silo-2']
    """
    place = default_folder(values, source) if folder is None else Path(folder)
    return run_plan(plan_for(values, source, methods, seeds, place), place, tell)


def default_folder(values: Mapping[str, Any], source: Source) -> Path:
    """A new folder beside the runs of the recipe."""
    return new_folder_name(source.path(validate(values, source.name).runs), "compare")


def plan_for(
    values: Mapping[str, Any],
    source: Source,
    methods: Sequence[str],
    seeds: int | Sequence[int],
    folder: Path,
) -> Plan:
    """What is to be compared, with what the folder's comparison has already."""
    plan = make_plan(values, source, methods, seeds)
    return merge_plans(folder, read_plan(folder), plan) if has_plan(folder) else plan


def run_plan(
    plan: Plan,
    folder: Path,
    tell: Callable[[str], None] = lambda line: None,
    only: Sequence[int] | None = None,
    engine: Engine | str = "local",
) -> Comparison:
    """Check all of a plan, then run what is not finished; `only`: some of its seeds, the others later."""
    seeds = plan.seeds if only is None else tuple(only)
    own = {".lock", "comparison.json.part"}  # what a crash may have left
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file; wants a folder for the comparison")
    if not has_plan(folder) and folder.exists() and any(e.name not in own for e in folder.iterdir()):
        raise RunError(f"{folder}: is not empty and not a comparison; choose another directory")
    plan = replace(plan, unequal=tuple(check(replace(plan, seeds=seeds), folder)))
    for line in plan.unequal:
        tell(line)
    with locked(folder):
        write_plan(folder, plan)
        return _run(plan, seeds, folder, tell, engine)


def read_comparison(folder: Path) -> Comparison:
    """A comparison as it is on disk, finished or not; nothing is run."""
    plan = read_plan(folder)
    runs, failures = {}, {}
    for cell in plan.cells:
        path = _place(folder, cell)
        if _finished(path):
            runs[cell] = RunDirectory(path)
        else:
            text = _reason(path) or "it is not finished; `cosilo resume` continues it"
            failures[cell] = FailedRun(text, text)
    return plan.comparison(folder, runs, failures)


# ---------------------------------------------------------------------- before anything is computed


def check(plan: Plan, folder: Path) -> list[str]:
    """Raise for everything that would keep a run from starting, a line each; trains and writes nothing.

    Returns what the methods are not equal in, a line each.
    """
    problems: dict[str, set[int]] = {}
    differences: list[str] = []
    for seed in plan.seeds:
        try:
            members = plan.members(seed)
        except CosiloError as error:
            lines = str(error).splitlines()
        else:
            lines = _problems(plan, seed, members, folder)
            silos, pool = members
            instances = 0 if pool is None else len(pool.X)
            efforts = {name: one.effort(silos, instances) for name, one in plan.make_methods().items()}
            differences += [line for line in unequal(efforts) if line not in differences]
        for line in lines:
            problems.setdefault(line, set()).add(seed)
    if problems:
        lines = []
        for line, seeds in problems.items():
            only = "" if len(seeds) == len(plan.seeds) else f"seed {listing(sorted(seeds))}: "
            lines.append(f"{only}{line}")
        raise ConfigError("\n".join(lines))
    return [*plan.carried(), *differences]


def _problems(plan: Plan, seed: int, members: build.Members, folder: Path) -> list[str]:
    problems = []
    for method in plan.methods:
        path = _place(folder, (method, seed))
        try:
            federation = plan.federation((method, seed), members)
            problems += federation.check(learners=False)
            if (path / "run.json").exists():
                federation.open_folder(path, folder)  # raises if that is another run
        except CosiloError as error:
            problems += str(error).splitlines()
    return problems


# ---------------------------------------------------------------------- run after run


def _run(
    plan: Plan, seeds: Sequence[int], folder: Path, tell: Callable[[str], None], engine: Engine | str
) -> Comparison:
    lines = {
        (method, seed): f"{method}, seed {seed} ({number} of {len(plan.cells)})"
        for number, (method, seed) in enumerate(plan.cells, start=1)
        if seed in seeds
    }
    finished = {cell for cell in lines if _finished(_place(folder, cell))}
    rest = [cell for cell in lines if cell not in finished]
    for cell in finished:
        tell(f"{lines[cell]}: finished before")
    at_once = engine.runs_at_once(plan.settings.workers) if isinstance(engine, SideBySide) else 1
    errors: dict[MethodAndSeed, str] = {}
    if isinstance(engine, SideBySide) and min(at_once, len(rest)) > 1:
        tell(f"{at_once} runs at once: the cluster has room for the workers of so many")
        jobs = {cell: (str(folder.resolve()), *cell) for cell in rest}
        for cell, text in engine.side_by_side(run_cell, jobs, at_once):
            tell(lines[cell])
            if text is not None:
                errors[cell] = text
    else:
        members: dict[int, build.Members] = {}
        for cell in rest:
            tell(lines[cell])
            try:
                if cell[1] not in members:
                    members = {cell[1]: plan.members(cell[1])}  # the data of one seed at a time
                _run_one(plan, cell, members[cell[1]], folder, engine)
            except CosiloError as error:
                errors[cell] = str(error)
    runs, failures = {}, {}
    for cell in lines:
        path = _place(folder, cell)
        if cell in errors:
            failures[cell] = FailedRun(_reason(path) or errors[cell], errors[cell])
            continue
        runs[cell] = RunDirectory(path)
        if failed := runs[cell].failed_silos():
            tell(f"{lines[cell]}: {failed}")
    return plan.comparison(folder, runs, failures)


def _run_one(
    plan: Plan,
    cell: MethodAndSeed,
    members: build.Members,
    folder: Path,
    engine: Engine | str,
    observers: Sequence[Observer] | None = None,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SiloFailed)
        plan.federation(cell, members, engine).run(_place(folder, cell), observers=observers)


def run_cell(engine: Engine, folder: str, method: str, seed: int) -> str | None:
    """Do one run of a comparison on disk, in a process of its own; returns the text of an error, or None."""
    plan = read_plan(Path(folder))
    try:
        _run_one(plan, (method, seed), plan.members(seed), Path(folder), engine, observers=())
    except CosiloError as error:
        return str(error)
    return None


def _place(folder: Path, cell: MethodAndSeed) -> Path:
    return folder / f"{cell[0]}-seed{cell[1]}"


def _finished(path: Path) -> bool:
    return (path / "run.json").exists() and RunDirectory(path).status == "finished"


def _reason(path: Path) -> str | None:
    """Why a run stopped, from its event log: what silos keep in logs of their own is not in there."""
    if not (path / "run.json").exists() or RunDirectory(path).status not in ("stopped", "refused"):
        return None
    texts = [event["text"] for event in RunDirectory(path).events() if event["event"] == "stop"]
    return str(texts[-1]) if texts else None
