"""New instances from a file, and whatever else the file says about them: ids, dates, names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosilo.data.folders import image_files
from cosilo.data.formats import open_parquet, read_npz
from cosilo.data.instances import Instances, is_frame
from cosilo.data.own_files import read

if TYPE_CHECKING:
    import pandas as pd


def read_new(
    path: Path, columns: Sequence[str] | None = None, text: str | None = None, label: str | None = None
) -> "tuple[Instances, pd.DataFrame]":
    """The instances of a file, and its other columns as they stand there, row by row.

    Features are `columns`, or the column of `text`; without either all columns but `label`, as an array. Of a
    folder of images the other column is the file's name, of npz they are the arrays with one value each.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "new.csv"
    ...     _ = path.write_text("id,age\\n007,39\\n008,50\\n")
    ...     X, beside = read_new(path, columns=["age"])
    >>> beside["id"].tolist()
    ['007', '008']
    """
    import pandas as pd

    if path.is_dir():
        files, _ = image_files(path)
        return read(path).X, pd.DataFrame({"file": [str(file.relative_to(path)) for file in files]})
    if path.suffix.lower() == ".npz":
        X = read(path).X
        arrays = {
            name: array
            for name, array in read_npz(path).items()
            if array.ndim == 1 and len(array) == len(X) and name not in ("y", label)
        }
        return X, pd.DataFrame(arrays, index=range(len(X)))
    there = label if label in _columns(path) else None
    X = read(path, label=there if columns is None and text is None else None, columns=columns, text=text).X
    known = {*(columns or ()), text, label} if columns or text else set(_columns(path))
    others = [name for name in _columns(path) if name not in known]
    if columns is None and text is None and is_frame(X):
        X = X.to_numpy()
    return X, _others(path, others, len(X))


def _columns(path: Path) -> list[str]:
    """The columns of a file; none if it cannot be read, which whoever reads it will say."""
    import pandas as pd

    if not path.exists():
        return []
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            return [str(name) for name in file.schema_arrow.names]
    try:
        return [str(name) for name in pd.read_csv(path, nrows=0, index_col=False).columns]
    except (OSError, ValueError):
        return []


def _others(path: Path, columns: list[str], rows: int) -> "pd.DataFrame":
    import pandas as pd

    if not columns:
        return pd.DataFrame(index=np.arange(rows))
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            return pd.DataFrame(file.read(columns=columns).to_pandas(ignore_metadata=True))
    # As they stand there: an id "007" keeps its zeros, an empty cell stays empty.
    return pd.read_csv(path, usecols=columns, dtype=str, keep_default_na=False)[columns]
