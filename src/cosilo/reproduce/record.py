"""What is kept of a reproduction: every value by seed, and where it comes from."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from cosilo.config.reproduces import Size
from cosilo.errors import RunError
from cosilo.runs.durable_files import read_json, write_json
from cosilo.text import listing
from cosilo.version import __version__

#: What the file of a record is called, in the folder of its reproduction.
RECORD_FILE = "record.json"


def folder_of(parent: Path, name: str, size: Size) -> Path:
    """The folder of a reproduction's runs and record.

    >>> folder_of(Path("reproductions"), "cofed_cifar", "laptop").name
    'cofed_cifar-laptop'
    """
    return parent / f"{name}-{size}"


@dataclass(frozen=True)
class ReproductionRecord:
    """The outcome of one reproduction in one size."""

    name: str
    size: Size
    seeds: list[int]
    #: By path (case.method.measure): a value for each seed.
    values: dict[str, list[float | None]]
    #: Working time of all runs together.
    minutes: float
    machine: str
    #: The commit of the code, and its version.
    commit: str
    version: str
    date: str
    #: How large a run is, in words.
    scale: str
    #: By case: what tells its recipe from others.
    recipes: dict[str, str] = field(default_factory=dict)
    #: Of the paths that are means over silos: for each seed the values by silo.
    silos: dict[str, list[dict[str, float] | None]] = field(default_factory=dict)
    #: By line of a curve: its points, for each seed; none where a run is not finished.
    curves: dict[str, list[list[tuple[float, float]]]] = field(default_factory=dict)
    #: The minutes by case and seed, such as "iid 200".
    spent: dict[str, float] = field(default_factory=dict)
    #: By case and seed: the accuracy that methods are timed to, where they are.
    goals: dict[str, float] = field(default_factory=dict)
    #: By case: a line for each thing that the methods are not equal in.
    unequal: dict[str, list[str]] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether a run of it is finished on any seed."""
        return any(value is not None for value in self.values.get(path, ()))

    @property
    def file(self) -> str:
        """What its file is called beside those of other reproductions."""
        return f"{self.name}-{self.size}.json"


def joined(old: ReproductionRecord, new: ReproductionRecord) -> ReproductionRecord:
    """What two records of one reproduction in one size say together: cases and seeds may have been run apart.

    Of a case with another recipe than before only the new values count; otherwise they count where both have
    some.
    """
    seeds = sorted({*old.seeds, *new.seeds})
    outdated = {case for case, recipe in new.recipes.items() if old.recipes.get(case) != recipe}

    def rows(one: Mapping[str, list[Any]], other: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        found = {}
        for path in dict.fromkeys([*one, *other]):
            was = {} if _case(path) in outdated else dict(zip(old.seeds, one.get(path, ()), strict=False))
            now = dict(zip(new.seeds, other.get(path, ()), strict=False))
            found[path] = [was.get(seed) if now.get(seed) in (None, []) else now[seed] for seed in seeds]
        return found

    left = {
        cell: minutes
        for cell, minutes in old.spent.items()
        if cell not in new.spent and cell.split()[0] not in outdated
    }
    spent = {**left, **new.spent}
    return replace(
        new,
        seeds=seeds,
        values=rows(old.values, new.values),
        silos=rows(old.silos, new.silos),
        curves={
            line: [points or [] for points in found]
            for line, found in rows(old.curves, new.curves).items()
            if any(found)
        },
        recipes={**old.recipes, **new.recipes},
        minutes=round(sum(spent.values()), 1),
        spent=spent,
        goals={cell: old.goals[cell] for cell in left if cell in old.goals} | new.goals,
        unequal={**old.unequal, **new.unequal},
        machine=_both(old.machine, new.machine) if left else new.machine,
        commit=_both(old.commit, new.commit) if left else new.commit,
        scale=_both(old.scale, new.scale) if left else new.scale,
    )


def _case(path: str) -> str:
    return path.partition(".")[0]


def _both(one: str, other: str) -> str:
    """Two words for the page, if they differ.

    >>> _both("100 silos", "50 silos"), _both("abc1234, def5678", "def5678")
    ('100 silos, 50 silos', 'abc1234, def5678')
    """
    return ", ".join(dict.fromkeys([*one.split(", "), *other.split(", ")]))


def write_record(record: ReproductionRecord, path: Path) -> None:
    """Keep a record."""
    write_json(path, asdict(record), checked=False)


def read_record(path: Path) -> ReproductionRecord:
    """A record from its file."""
    found: dict[str, Any] = read_json(path)
    if other := set(found) ^ {one.name for one in fields(ReproductionRecord)}:
        raise RunError(
            f"{path}: is not the record of a reproduction; delete it and reproduce it again, which keeps "
            f"finished runs (other than in this version: {listing(sorted(other))})"
        )
    return ReproductionRecord(**found)


def machine() -> str:
    """Number of cores and name of the processor, as far as they are known."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} × {name}"


def commit() -> str:
    """The commit of this code, with a + if files were changed since; outside a repository, the version."""
    here = Path(__file__).parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here))
        return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return __version__
