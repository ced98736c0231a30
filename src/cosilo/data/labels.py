"""Labels as class names, the one form in which silos compare their classes, and back."""

import math
from collections.abc import Iterable, Sequence
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


def in_type_of(labels: Any, classes: Sequence[str]) -> NDArray[Any]:
    """Class names as labels of the type that these labels have; names where that type has no such label.

    >>> in_type_of([3.0, 4.0], ["3", "4", "5"]), in_type_of([3, 4], ["3", "4", "other"])
    (array([3., 4., 5.]), array(['3', '4', 'other'], dtype='<U5'))
    """
    names, given = np.array(classes), np.asarray(labels)
    if given.dtype.kind == "O":  # numbers and texts in a column of objects
        given = np.asarray(given.tolist())
    try:
        values = names == "True" if given.dtype.kind == "b" else names.astype(given.dtype)
    except (ValueError, OverflowError):
        return names
    return values if class_names(values).tolist() == list(classes) else names


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct names in their natural order: numbers by value and before words.

    >>> in_order(["b", "10", "9", "a", "b"])
    ('9', '10', 'a', 'b')
    """

    def key(name: str) -> tuple[bool, float, str]:
        try:
            number = float(name)
        except ValueError:
            number = math.nan
        # "nan" is a word: it has no place among numbers.
        return (False, number, name) if math.isfinite(number) else (True, 0.0, name)

    return tuple(sorted(set(names), key=key))
