"""`cosilo.compare`: several methods on several seeds, from Python."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosilo.comparison import compare as recipes
from cosilo.comparison.fairness import unequal
from cosilo.config import recipe_file
from cosilo.config.source import Source
from cosilo.errors import ConfigError, CosiloError, SiloFailed
from cosilo.federation.federation import Federation
from cosilo.methods import METHODS
from cosilo.methods.base import Method
from cosilo.report import write_comparison
from cosilo.report.comparison_verdict import verdict
from cosilo.report.link import Link
from cosilo.report.summary import summarise
from cosilo.runs.comparison import Comparison, FailedRun, MethodAndSeed
from cosilo.runs.run import RunDirectory
from cosilo.runs.run_folders import new_folder_name
from cosilo.text import guess, listing

if TYPE_CHECKING:
    import pandas as pd


class ComparedRuns(Comparison):
    """A comparison as its owner uses it: the runs, a frame, a report, and what a notebook shows."""

    def __repr__(self) -> str:
        failed = f"; {self._failed()}" if self.failures else ""
        return f"<ComparedRuns {self.folder}: {listing(self.methods)}; seeds {listing(self.seeds)}{failed}>"

    def _failed(self) -> str:
        return f"{len(self.failures)} of {len(self.failures) + len(self.runs)} runs failed"

    def _warn(self) -> None:
        """Warn of runs that failed; nobody has to ask for that."""
        if self.failures:
            (name, seed), first = next(iter(self.failures.items()))
            text = f"{self._failed()}, the first: {name}, seed {seed}: {first.story.splitlines()[0]}"
            warnings.warn(text, SiloFailed, stacklevel=3)

    def to_frame(self) -> "pd.DataFrame":
        """What came of it, one row for each method, seed and silo, with the columns of `Run.to_frame`."""
        import pandas as pd

        from cosilo.federation.run import Run

        frames = {cell: Run(run.folder).to_frame() for cell, run in self.runs.items()}
        return pd.concat(frames, names=["method", "seed"]) if frames else pd.DataFrame()

    def report(self) -> Link:
        """Write the report, one HTML file that opens offline, into its folder."""
        return Link(write_comparison(self))

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, and a row for each method."""
        summary = summarise(self)
        rows = "".join(
            f"<tr><td>{escape(row.name)}</td><td>{row.accuracy.percent if row.accuracy else '–'}</td>"
            f"<td>{row.relative.ratio if row.relative else '–'}</td><td>{len(row.failed) or ''}</td></tr>"
            for row in summary.rows
        )
        heads = "".join(f"<th>{head}</th>" for head in ("method", "accuracy", "relative accuracy", "failed"))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        lines = "".join(f"\n<p>{escape(line)}</p>" for line in self.unequal)
        return f"<p>{escape(verdict(summary))}</p>\n{table}{lines}"


def compare(
    what: "str | Path | Mapping[str, Any] | Federation",
    methods: Sequence[str | Method],
    seeds: int = 3,
    folder: str | Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> ComparedRuns:
    """Run several methods on several seeds of the same silos.

    Parameters
    ----------
    what : str, Path, mapping or Federation
        A recipe, the values of one, or a federation whose silos and pool are used.
    methods : sequence of str or Method
        Names of methods, or of tables `[compare.NAME]` in the recipe; with a federation also methods with
        parameters of your choice.
    seeds : int, default 3
        How many, from the recipe's or the federation's own on.
    folder : str or Path, default None
        Where the runs are kept, and what is there is not run again; None: a new folder in `runs/`.
    tell : callable, default nothing
        Gets a line for each thing that the methods are not equal in, and one before each run.

    Returns
    -------
    ComparedRuns
        `runs` by method and seed, `unequal` (a line for each thing that the methods are not equal in),
        `to_frame()`, `report()`; a notebook shows the verdict, a table and these lines.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from cosilo import CoFED, Silo
    >>> silos = [Silo(name, np.eye(20), ["well", "ill"] * 10, GaussianNB()) for name in ("a", "b")]
    >>> federation = Federation(silos, pool=np.eye(20))
    >>> found = compare(federation, ["local", CoFED(alpha=0.5)], seeds=1, folder=tempfile.mkdtemp())
    >>> sorted(found.runs)
    [('cofed', 0), ('local', 0)]
    """
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise ConfigError(f'methods: got {methods!r}; wants a list, such as ["cofed", "local"]')
    if not isinstance(what, str | Path | Mapping | Federation):
        kind = type(what).__name__
        raise ConfigError(f"compare: got {kind}; wants the path of a recipe, its values, or a Federation")
    found = _of(what, methods, seeds, folder, tell)
    found._warn()
    return found


def _of(
    what: "str | Path | Mapping[str, Any] | Federation",
    methods: Sequence[str | Method],
    seeds: int,
    folder: str | Path | None,
    tell: Callable[[str], None],
) -> ComparedRuns:
    if isinstance(what, Federation):
        return _of_federation(what, methods, seeds, folder, tell)
    names = [one if isinstance(one, str) else "" for one in methods]
    if not all(names):
        raise ConfigError("methods: a recipe is compared by names; parameters go to [compare.NAME] in it")
    if isinstance(what, Mapping):
        values, source = dict(what), Source("recipe", Path.cwd())
    else:
        values, source = recipe_file.read(Path(what)), Source(str(what), Path(what).parent)
    return ComparedRuns(**vars(recipes.compare(values, source, names, seeds, folder, tell)))


def _of_federation(
    federation: Federation,
    methods: Sequence[str | Method],
    seeds: int,
    folder: str | Path | None,
    tell: Callable[[str], None],
) -> ComparedRuns:
    place = new_folder_name(Path("runs"), "compare") if folder is None else Path(folder)
    if seeds < 1:
        raise ConfigError(f"seeds: got {seeds}; wants at least 1")
    made = _named(methods)
    instances = 0 if federation.pool is None else len(federation.pool)
    lines = unequal({name: method.effort(federation.silos, instances) for name, method in made.items()})
    for line in lines:
        tell(line)
    numbers = tuple(range(federation.seed, federation.seed + seeds))
    runs: dict[MethodAndSeed, RunDirectory] = {}
    failures: dict[MethodAndSeed, FailedRun] = {}
    for seed in numbers:
        for name, method in made.items():
            tell(f"{name}, seed {seed}")
            try:
                one = federation.but(method=method, seed=seed)
                runs[name, seed] = one.run(place / f"{name}-seed{seed}")
            except CosiloError as error:
                failures[name, seed] = FailedRun(str(error), str(error))
    parameters = {name: method.model_dump(mode="json") for name, method in made.items()}
    clock = federation.clock
    return ComparedRuns(place, "Python", {}, parameters, numbers, clock, None, tuple(lines), runs, failures)


def _named(methods: Sequence[str | Method]) -> dict[str, Method]:
    """The methods by name; several of one kind are told apart by numbers."""
    found: dict[str, Method] = {}
    for one in methods:
        if isinstance(one, str) and one not in METHODS:
            wants = f"{guess(one, list(METHODS))}; wants some of {listing(METHODS)}"
            raise ConfigError(f"methods: there is no method {one!r}{wants}")
        method = METHODS[one]() if isinstance(one, str) else one
        name, number = method.name, 1
        while name in found:
            number += 1
            name = f"{method.name}-{number}"
        found[name] = method
    if not found:
        raise ConfigError(f"methods: got none; wants some of {listing(METHODS)}")
    return found
