"""Columns of labels and texts as they stand in files: complete, and as names."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.labels import class_names
from cosilo.errors import DataError


def as_names(values: NDArray[Any], where: str, gaps: bool = False) -> NDArray[np.object_]:
    """Labels as class names.

    >>> as_names(np.array([3.0, 4.0]), "y").tolist()
    ['3', '4']
    """
    return class_names(values, where, gaps).astype(object)


def complete(values: NDArray[Any], where: str, what: str) -> None:
    """Raise if some are missing; `what` they are is said in the error."""
    import pandas as pd

    missing = np.flatnonzero(pd.isna(values))
    if len(missing):
        raise DataError(
            f"{where}: {len(missing)} of {len(values)} {what} are missing, the first in row "
            f"{missing[0] + 1}; fill them or drop those rows"
        )
