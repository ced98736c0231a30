"""Labels as class names, the one form in which silos compare their classes, and back."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import DataError

#: What a missing value becomes when somebody makes text of it.
_GAPS = {"", "nan", "NaN", "<NA>", "NaT"}


def class_names(labels: Any, where: str = "labels", gaps: bool = False) -> NDArray[np.str_]:
    """Labels as class names, in the one form that they have in Python and from files alike.

    3, 3.0, "3" and "3.0" are all the class "3"; True is "True" and not "1"; text has no space around it. A
    missing label is an error, whose line begins with `where`; with `gaps` it is the empty name.

    >>> class_names([3.0, 4.0]).tolist(), class_names(["3.0 ", "007"]).tolist()
    (['3', '4'], ['3', '007'])
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise DataError(
            f"{where}: labels of shape {array.shape}; wants one class per instance, in one dimension: "
            "a single column (y[:, 0], frame['y']), or of one-hot rows y.argmax(axis=1)"
        )
    if array.dtype.kind in "iub":
        return array.astype(np.str_)
    known: dict[Any, str] = {}
    names = []
    for value in array.tolist():
        key = (type(value), value)
        if key not in known:
            known[key] = _name(value)
        names.append(known[key])
    holes = [] if gaps else [place for place, name in enumerate(names) if not name]
    if holes:
        raise DataError(
            f"{where}: {len(holes)} of {len(names)} labels are missing, the first in row {holes[0] + 1}; "
            "fill them or drop those rows"
        )
    return np.array(names, dtype=np.str_)


def _name(value: Any) -> str:
    """The name of one label; nothing if it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip()
    number, point, rest = text.partition(".")
    if point and number.lstrip("-").isdigit() and not rest.strip("0"):  # as files write whole numbers
        return number
    return "" if text in _GAPS else text


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
