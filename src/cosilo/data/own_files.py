"""A silo's own data from a file: csv, Parquet, npz, or a folder of images."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.feature_columns import features
from cosilo.data.folders import read_folder
from cosilo.data.formats import open_parquet, pick_array, read_npz, read_table
from cosilo.data.frames import split_dataset
from cosilo.data.huggingface import is_saved, read_saved
from cosilo.data.instances import Instances, as_instances
from cosilo.data.label_columns import as_names, complete
from cosilo.errors import DataError
from cosilo.text import cause, guess, listing, near_file

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Table:
    """Instances from a file, and the name of each one's class; `y` is None where the file has no labels."""

    X: Instances
    y: NDArray[np.object_] | None


def read(
    path: str | PathLike[str],
    label: str | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
    gaps: bool = False,
) -> Table:
    """Read instances, and with them labels as class names: 3 and 3.0 become "3".

    A missing label is an error; with `gaps` it is the empty name.

    - `.csv`, `.parquet`: `label` names the label column, `columns` the features (default: all others; X is a
      data frame). `text` names the one column of text instead (X is an array of strings).
    - `.npz`: array `x` or `X`; labels in array `y`, or the one that `label` names.
    - `.npy`: the instances, which are mapped and not read into memory; `label` is the name of another `.npy`
      beside it.
    - a folder that `save_to_disk` of Hugging Face's `datasets` wrote (`from_huggingface`).
    - a folder: one subfolder of images per class, or images alone, which have no labels; X is (n, h, w), or
      (n, h, w, 3) if any image has colour.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,income\\n39,high\\n50,low\\n")
    ...     table = read(path, label="income")
    >>> list(table.X.columns), list(table.y)
    (['age'], ['high', 'low'])
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder{near_file(path)}")
    if path.is_dir() and is_saved(path):
        return from_huggingface(read_saved(path), label, columns, text, gaps, where=str(path))
    if path.is_dir():
        _unused(
            path,
            "is a folder, which has a class in each of its subfolders",
            label=label,
            columns=columns,
            text=text,
        )
        return Table(*read_folder(path))
    suffix = path.suffix.lower()
    if suffix in (".npz", ".npy"):
        _unused(path, "has arrays, not columns", columns=columns, text=text)
        return (_npz if suffix == ".npz" else _npy)(path, label, gaps)
    if suffix not in {".csv", ".parquet"}:
        raise DataError(
            f"{path}: unsupported file type; wants .csv, .parquet, .npz, .npy or a folder of images"
        )
    if text is not None and columns is not None:
        raise DataError(f"{path}: got text and columns; wants one of them")
    frame = (_csv if suffix == ".csv" else _parquet)(path, label, [text] if text is not None else columns)
    if frame.empty:
        raise DataError(f"{path}: has columns but no rows")
    y = None if label is None else as_names(frame.pop(label).to_numpy(), f"{path}, column {label!r}", gaps)
    if text is None:
        if not len(frame.columns):
            raise DataError(f"{path}: has the label {label!r} but no other column; wants features")
        return Table(as_instances(frame, str(path)), y)
    complete(frame[text].to_numpy(), f"{path}, column {text!r}", "texts")
    return Table(as_instances(frame[text].to_numpy(dtype=object), f"{path}, column {text!r}"), y)


def from_huggingface(
    found: Any,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
    gaps: bool = False,
    where: str = "dataset",
) -> Table:
    """The instances and labels of a Hugging Face dataset; labels of the type ClassLabel become their names.

    Parameters
    ----------
    found : datasets.Dataset
        One split.
    label : str, default None
        The column with the classes; None: the only one of the type ClassLabel.
    columns : sequence of str, default None
        The features, or what is none, with a minus; None: all others. One column of texts, images or lists
        becomes an array of these.
    text : str, default None
        The one column of texts instead.
    gaps : bool, default False
        Whether labels may be missing: the class is then the empty name.
    where : str, default "dataset"
        What it is called in errors.

    Returns
    -------
    Table
        `X` and `y`, for a `Silo`.

    Examples
    --------
    >>> from datasets import ClassLabel, Dataset, Features, Value
    >>> kinds = Features({"text": Value("string"), "label": ClassLabel(names=["bad", "good"])})
    >>> table = from_huggingface(Dataset.from_dict({"text": ["fine", "dull"], "label": [1, 0]}, kinds))
    >>> table.X.tolist(), table.y.tolist()
    (['fine', 'dull'], ['good', 'bad'])
    """
    X, y = split_dataset(found, where, label, columns, text)
    if isinstance(X, np.ndarray) and X.dtype == object:
        complete(X, where, "texts")
    names = None if y is None else as_names(y, f"{where}, labels", gaps)
    return Table(as_instances(X, where), names)


def _csv(path: Path, label: str | None, columns: Sequence[str] | None) -> "pd.DataFrame":
    import pandas as pd

    try:
        there = list(pd.read_csv(path, nrows=0, index_col=False).columns)
        wanted = _wanted(path, there, label, columns)
        # Labels are read as they stand: a class "007" keeps its name.
        kinds = {label: str} if label is not None else {}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # All columns, because with a choice of them pandas says nothing about rows that are too long.
            frame = pd.read_csv(path, dtype=kinds, low_memory=False, index_col=False)
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path}: is empty") from error
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise DataError(f"{path}: cannot be read as csv in UTF-8 ({cause(error)})") from error
    return pd.DataFrame(frame[wanted])


def _parquet(path: Path, label: str | None, columns: Sequence[str] | None) -> "pd.DataFrame":
    import pandas as pd

    with open_parquet(path) as file:
        schema = file.schema_arrow
        # A data frame's index is stored as a column, but it is not a feature.
        index = {
            name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)
        }
        wanted = _wanted(path, [name for name in schema.names if name not in index], label, columns)
        nested = [name for name in wanted if schema.field(name).type.num_fields]
        if nested:
            raise DataError(
                f"{path}: column {nested[0]!r} holds {schema.field(nested[0]).type}; "
                f"wants numbers or strings (name the columns to read)"
            )
        try:
            frame = read_table(file, wanted)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read as Parquet ({cause(error)})") from error
    return pd.DataFrame(frame[wanted])


def _wanted(path: Path, there: list[str], label: str | None, columns: Sequence[str] | None) -> list[str]:
    """The columns to read: features, then the label; or an error that lists the columns of the file."""
    found = features(there, label, columns)
    wanted = found if label is None else [*found, label]
    for name in wanted:
        if name not in there:
            comma = "; is it separated by commas?" if len(there) == 1 else ""
            raise DataError(
                f"{path}: no column {name!r}{guess(name, there)}; it has {listing(map(repr, there))}{comma}"
            )
    twice = [name for name in wanted if wanted.count(name) > 1]
    if twice:
        why = "is the label and cannot be a feature too" if twice[0] == label else "is named twice"
        raise DataError(f"{path}: column {twice[0]!r} {why}")
    return wanted


def _npz(path: Path, label: str | None, gaps: bool) -> Table:
    arrays = read_npz(path)
    name = "X" if "X" in arrays and "x" not in arrays else "x"
    X = as_instances(pick_array(path, arrays, name), f"{path}, array {name!r}")
    if not len(X):
        raise DataError(f"{path}: array {name!r} is empty")
    if label is None and "y" not in arrays:
        return Table(X, None)
    label = "y" if label is None else label
    y = as_names(pick_array(path, arrays, label), f"{path}, array {label!r}", gaps)
    if len(y) != len(X):
        raise DataError(f"{path}: {len(X)} instances in {name!r}, but {len(y)} labels in {label!r}")
    return Table(X, y)


def _npy(path: Path, label: str | None, gaps: bool) -> Table:
    X = as_instances(_mapped(path), str(path))
    if not len(X):
        raise DataError(f"{path}: is empty")
    if label is None:
        return Table(X, None)
    beside = path.with_name(label)
    if not beside.is_file():
        raise DataError(f"{path}: no labels in {beside}; wants the name of a .npy file beside it as label")
    y = as_names(np.asarray(_mapped(beside)), str(beside), gaps)
    if len(y) != len(X):
        raise DataError(f"{path}: {len(X)} instances, but {len(y)} labels in {beside}")
    return Table(X, y)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as an array ({cause(error)})") from error
    return found


def _unused(path: Path, why: str, **settings: object) -> None:
    given = [name for name, value in settings.items() if value is not None]
    if given:
        raise DataError(f"{path}: {why}; leave out {', '.join(given)}")
