"""The labels of a public pool, for methods that learn from it: checked, and drawn from in proportion."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances
from cosilo.data.labels import class_names
from cosilo.errors import DataError


def as_pool_labels(labels: Any, pool: Instances, where: str) -> NDArray[np.str_]:
    """One class name per pool instance, or an error; `where` names the pool's owner.

    >>> as_pool_labels([3, 4], np.zeros((2, 1)), "the federation's pool").tolist()
    ['3', '4']
    """
    names = class_names(labels, where, gaps=True)
    if len(names) != len(pool):
        raise DataError(f"{where}: {len(pool)} instances but {len(names)} labels; wants one each")
    if len(names) == 0:
        raise DataError(f"{where}: is empty; wants instances with labels")
    holes = np.flatnonzero(names == "")
    if len(holes):
        raise DataError(
            f"{where}: {len(holes)} of {len(names)} labels are missing, the first is that of instance "
            f"{holes[0]}; fill them or drop those instances"
        )
    return names
