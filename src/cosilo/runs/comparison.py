"""A comparison: runs of several methods on the same seeds of one recipe, in one folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from cosilo.runs.run import RunDirectory
from cosilo.simulated_time.clock import Clock

#: A method, by the name that it has in the comparison, and a seed.
MethodAndSeed: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class FailedRun:
    """A run without a result: `text` is safe to pass on, `story` is for the owner of the comparison."""

    text: str
    story: str


@dataclass(frozen=True)
class Comparison:
    """What was compared, and what came of it; each run is in `runs` or in `failures`."""

    folder: Path
    #: The recipe: what it is called, and its values.
    source: str
    values: Mapping[str, Any]
    #: The parameters of each method; `use` is among them where its name is not that of a method.
    methods: Mapping[str, Mapping[str, Any]]
    seeds: tuple[int, ...]
    #: What simulated time is told by, and the accuracy whose time is asked for.
    clock: Clock | None
    reach: float | None
    #: A line for each thing that the methods are not equal in.
    unequal: tuple[str, ...]
    runs: Mapping[MethodAndSeed, RunDirectory]
    failures: Mapping[MethodAndSeed, FailedRun]
