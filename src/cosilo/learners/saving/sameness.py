"""Whether two objects have the same state, to the last bit."""

import types
from typing import Any

import numpy as np

_PLAIN = (
    *(str, bytes, bytearray, int, float, complex, np.generic, set, frozenset, range, slice),
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc),
)


def same(first: Any, second: Any) -> bool:
    """Whether two objects have the same state; skops loses some silently (a dict's keys True and False)."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return first.shape == second.shape and first.dtype == second.dtype and _same_array(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if first is None or isinstance(first, _PLAIN):
        return bool(first == second or first != first)  # only NaN differs from itself
    return same(first.__getstate__(), second.__getstate__())


def _same_array(first: Any, second: Any) -> bool:
    if first.dtype.names:  # field by field: the padding between fields may differ
        return all(_same_array(first[name], second[name]) for name in first.dtype.names)
    if first.dtype.hasobject:
        return same(first.tolist(), second.tolist())
    return bool(first.tobytes() == second.tobytes())
