"""Missing values: where instances have them. What to do about them is their owner's choice."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, is_frame


def columns_with_holes(X: Instances) -> list[str]:
    """What has missing values, in words: names of columns, numbers of columns, or just that there are some.

    >>> columns_with_holes(np.array([[1.0, np.nan], [2.0, 3.0]])), columns_with_holes(np.ones((2, 2)))
    (['column 1'], [])
    """
    if is_frame(X):
        return [repr(str(name)) for name, holed in X.isna().any().items() if holed]
    if X.dtype.kind != "f" or not X.size or not np.isnan(X.min()):  # NaN if there is one
        return []
    if X.ndim > 2:
        return ["instances"]
    return [f"column {place}" for place in np.flatnonzero(np.isnan(X).any(axis=0))]


def rows_with_holes(X: Instances, most: int) -> NDArray[np.int64]:
    """Some instances with missing values, of each column that has any."""
    if is_frame(X):
        table = X.isna().to_numpy()
    else:
        table = np.isnan(X.reshape(len(X), -1)) if X.dtype.kind == "f" else np.zeros((len(X), 1), bool)
    found: list[Any] = [
        np.flatnonzero(table[:, place])[:most] for place in np.flatnonzero(table.any(axis=0))[:200]
    ]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def filled(X: Instances) -> Instances:
    """The same instances with something in every hole: 0, or a value that the column has."""
    if not is_frame(X):
        return np.nan_to_num(X) if X.dtype.kind == "f" else X
    there = {name: X[name].dropna() for name in X.columns}
    fillings = {name: 0 if column.empty else column.iloc[0] for name, column in there.items()}
    return X.fillna(fillings)
