"""Labels as class names: the one form in which silos compare their classes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_names(labels: Any) -> NDArray[np.str_]:
    """Labels as class names: 3, 3.0 and "3" are all the class "3".

    >>> class_names([3.0, 4.0]).tolist(), class_names([True, False]).tolist()
    (['3', '4'], ['True', 'False'])
    """
    array = np.asarray(labels)
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == array.astype(np.int64)).all():
        array = array.astype(np.int64)
    return array.astype(np.str_)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct names in their natural order: numbers by value and before words.

    >>> in_order(["b", "10", "9", "a", "b"])
    ('9', '10', 'a', 'b')
    """

    def key(name: str) -> tuple[bool, float, str]:
        try:
            return (False, float(name), name)
        except ValueError:
            return (True, 0.0, name)

    return tuple(sorted(set(names), key=key))
