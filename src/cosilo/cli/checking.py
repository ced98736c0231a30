"""`cosilo check`: what is in a file, and whether it can be run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cosilo.cli.arguments import RecipeFile, Sets
from cosilo.cli.printing import new_table, say, show, tell
from cosilo.errors import ConfigError
from cosilo.text import listing

if TYPE_CHECKING:
    from rich.table import Table

    from cosilo.coordination.institution import Institution
    from cosilo.federation.federation import Federation
    from cosilo.silo.silo import Silo

#: Keys of the coordinator's file that no silo's has: they tell them apart if another one is misspelt.
_AGREED = {"method", "vocabulary", "coordinator"}


def check(file: RecipeFile, set_: Sets = None) -> None:
    """Validate a recipe: files, columns, tasks, pool, policies; every learner is tried out on a few rows.

    The file of a silo that joins others, and that of their coordinator, can be checked too.
    """
    from cosilo.config import recipe_file

    values = recipe_file.read(file, set_ or [])
    whose = None if set_ else _party(values)
    if whose == "federation":
        _check_federation(file)
    elif whose == "silo":
        _check_silo(file)
    else:
        _check_recipe(file, values)


def refuse_party(values: Mapping[str, object], file: Path) -> None:
    """Say what runs the file of a silo or a coordinator: it is no recipe."""
    runs = {
        "federation": f"`cosilo up {file}` runs it on this machine, `cosilo submit` between organisations",
        "silo": f"`cosilo join KIT {file}` takes part with it",
    }
    whose = _party(values)
    if whose is not None:
        raise ConfigError(f"{file}: is the file of a {whose}, not a recipe; {runs[whose]}")


def show_silo(silo: "Silo | Institution") -> None:
    """What a silo is to others: how much it has is for its owner."""
    import numpy as np

    from cosilo.silo.silo import Silo

    classes, shares = listing(silo.task.classes), ", ".join(sorted(silo.shares)) or "nothing"
    training, test = silo.counts
    counts = f"{training} training instances" + (f", {test} to test by" if test else "")
    say(f"silo {silo.name}: {counts}, classes {classes}; may leave: {shares}")
    if isinstance(silo, Silo) and silo.pool is not None:
        labels = "" if silo.pool_labels is None else f", classes {', '.join(np.unique(silo.pool_labels))}"
        say(f"pool: size {len(silo.pool)}, fingerprint {silo.pool_fingerprint}{labels}")
    if isinstance(silo, Silo) and silo.privacy is not None:
        for line in silo.privacy_lines(set(silo.shares)):
            say(f"privacy: {line}")


def _party(values: Mapping[str, object]) -> str | None:
    """Whose file it is, if it is no recipe."""
    if "members" in values or ("name" in values and values.keys() & _AGREED):
        return "federation"
    return "silo" if "name" in values else None


def _check_federation(file: Path) -> None:
    from cosilo.engines.flare.party_files import read_federation

    settings = read_federation(file)
    where = settings.coordinator
    say(f"federation {settings.name}: {listing(settings.members)}; method {settings.method.use}")
    say(f"coordinator at {where.host}:{where.port}\nready to provision")


def _check_silo(file: Path) -> None:
    from cosilo.engines.flare.party_files import read_silo
    from cosilo.silo.smoke_test import smoke_test

    silo = read_silo(file)
    show_silo(silo)
    problems = [line for one in _with_members(silo) if (line := smoke_test(one)) is not None]
    if problems:
        raise ConfigError("\n".join(problems))
    say("ready to join")


def _check_recipe(file: Path, values: Mapping[str, object]) -> None:
    from cosilo.config import build

    federation = build.federation(values, build.Source(str(file), file.parent))
    problems = federation.check()
    for line in federation.notes():
        tell(f"look at {line}", style="yellow")
    if problems:
        raise ConfigError("\n".join(problems))
    show(_overview(federation, str(file)))
    labelled = "not labelled" if federation.pool_labels is None else "labelled"
    pool = "none" if federation.pool is None else f"{len(federation.pool)} instances, {labelled}"
    say(f"method {federation.method.name}; pool {pool}, fingerprint {federation.pool_fingerprint}")
    say("ready to run")


def _with_members(silo: "Silo | Institution") -> "list[Silo]":
    """The silo, or those that it has data from."""
    from cosilo.silo.silo import Silo

    return [silo] if isinstance(silo, Silo) else silo.silos


def _overview(federation: "Federation", title: str) -> "Table":
    """A row for each silo, and below an institution those of its members."""
    from cosilo.coordination.institution import Institution

    table = new_table("silo", "training\n+ test", "task", "learner", "shares", title=title)
    for silo in federation.silos:
        table.add_row(*_cells(silo))
        for member in silo.silos if isinstance(silo, Institution) else ():
            name, *cells = _cells(member)
            table.add_row(f"  {name}", *cells)
    return table


def _cells(silo: "Silo | Institution") -> tuple[str, ...]:
    from cosilo.coordination.institution import Institution
    from cosilo.silo.silo import Silo

    classes, learner = ", ".join(silo.task.classes), "" if silo.learner is None else silo.learner.name
    if isinstance(silo, Silo) and silo.has_target:
        classes += f"; wants {', '.join(silo.wanted.classes)}"
    if isinstance(silo, Institution):
        learner = f"({len(silo.silos)} member{'s' if len(silo.silos) > 1 else ''})"
    shares = ", ".join(sorted(silo.shares))
    if isinstance(silo, Silo) and silo.privacy is not None:
        shares += f"; ε = {silo.privacy.epsilon:g}"
    training, test = silo.counts
    return silo.name, f"{training} + {test}", classes, learner, shares
