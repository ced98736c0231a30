"""`cosilo labels`, and the files that labels are written to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosilo.cli.printing import new_table, say, show
from cosilo.errors import ConfigError, RunError
from cosilo.text import cause, cell

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

ENDINGS = (".csv", ".parquet")
#: How many labels are shown.
_FIRST = 10


def labels(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory; at a silo, its own folder of a run.")
    ],
    silo: Annotated[str, typer.Argument(help="The silo whose target was labelled.")],
    file: Annotated[Path | None, typer.Option("--out", help="A .csv or .parquet file to write.")] = None,
) -> None:
    """Write the labels that a run found for a silo's unlabelled target points, or show the first ones."""
    from cosilo.config.target_labels import read_labels
    from cosilo.runs.run import record_in

    if file is not None:
        known_ending(file)
    found = read_labels(record_in(folder, silo))
    if file is not None:
        write_labels(found, file)
        return
    show(_first(found))
    counts = found["label"].value_counts()
    say(f"{len(found)} labels: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def known_ending(path: Path) -> None:
    """Raise unless labels can be written in the form that the file's ending means."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"--out {path}: got the ending {path.suffix!r}; wants {' or '.join(ENDINGS)}")


def write_labels(found: "pd.DataFrame", path: Path) -> None:
    """Write one row for each point, in their order, and say so; a CSV file holds no formulas."""
    from cosilo.data.extra import import_extra

    try:
        if path.suffix.lower() == ".csv":
            texts = found.select_dtypes(include=["object", "string"]).columns
            harmless = {name: found[name].map(_harmless) for name in texts}
            found.assign(**harmless).to_csv(path, index=False)
        else:
            import_extra("pyarrow", "writing Parquet")
            found.to_parquet(path, index=False)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({cause(error)})") from error
    say(f"{len(found)} labels: {path}")


def _harmless(value: object) -> object:
    """A text as no formula; what is missing stays missing."""
    return cell(value) if isinstance(value, str) else value


def _first(found: "pd.DataFrame") -> "Table":
    """The first rows."""
    import pandas as pd

    table = new_table(*map(str, found.columns))
    shown = found.head(_FIRST).astype(object)
    shown["confidence"] = [
        "unknown" if pd.isna(value) else f"{value:.3f}" for value in found["confidence"].head(_FIRST)
    ]
    for row in shown.itertuples(index=False):
        table.add_row(*map(str, row))
    return table
