"""The labels that a run found for a silo's unlabelled target points, out of the silo's own record."""

from pathlib import Path

import pandas as pd
from rich.table import Table

from cosilo.config import build
from cosilo.coordination.institution import Institution
from cosilo.data.extra import needs
from cosilo.errors import ConfigError, RunError
from cosilo.runs.run import Run
from cosilo.runs.silo_record import Record
from cosilo.silo.silo import Silo
from cosilo.text import cause, guess, listing

ENDINGS = (".csv", ".parquet")
#: How many labels are shown.
_FIRST = 10


def read_labels(folder: Path, name: str) -> pd.DataFrame:
    """The labels of one silo of a finished run that was started from a recipe.

    A member of an institution is called "INSTITUTION/MEMBER".
    """
    there = list(Run(folder).result["tasks"])
    if name.partition("/")[0] not in there:
        raise RunError(f"{folder}: there is no silo {name!r}{guess(name, there)}; wants {listing(there)}")
    values, source = build.read_recipe(folder, f"run.silos[{name!r}].target_labels() has its labels there")
    silos = build.federation(values, source).silos
    known = {silo.name: silo for silo in silos if isinstance(silo, Silo)}
    for one in silos:
        if isinstance(one, Institution):
            known |= {f"{one.name}/{member.name}": member for member in one.silos}
    if name not in known:
        wants = guess(name, list(known)) or f"; wants one such as {next(iter(known))}"
        raise RunError(f"{folder}: {name!r} is no silo with data{wants}")
    silo = known[name]
    record = Record(folder / "silos" / name.replace("/", "/members/"))
    record.same_data(silo)
    record.restore(silo)
    return silo.target_labels()


def known_ending(path: Path) -> None:
    """Raise unless labels can be written in the form that the file's ending means."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"--out {path}: got the ending {path.suffix!r}; wants {' or '.join(ENDINGS)}")


def write_labels(labels: pd.DataFrame, path: Path) -> None:
    """One row for each point, in their order."""
    known_ending(path)
    try:
        if path.suffix.lower() == ".csv":
            labels.to_csv(path, index=False)
        else:
            needs("pyarrow", "writing Parquet")
            labels.to_parquet(path, index=False)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({cause(error)})") from error


def first_labels(labels: pd.DataFrame) -> Table:
    """The first rows, for the terminal."""
    table = Table("point", *labels.columns)
    for place, row in enumerate(labels.head(_FIRST).itertuples(index=False), start=1):
        label, confidence, speakers = row
        table.add_row(str(place), label, "unknown" if pd.isna(confidence) else f"{confidence:.3f}", speakers)
    return table


def per_class(labels: pd.DataFrame) -> str:
    """How many labels there are of each class."""
    counts = labels["label"].value_counts()
    return f"{len(labels)} labels: " + ", ".join(f"{count} {name}" for name, count in counts.items())
