"""What an object is made of: the walk that vetting and saving share."""

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def contents(value: Any) -> list[Any]:
    """What an object holds itself: attributes, items, keys and values; nothing for numbers and texts.

    >>> contents({"a": [1, 2]})
    ['a', [1, 2]]
    """
    if isinstance(value, dict):
        factory = getattr(value, "default_factory", None)  # of a defaultdict
        return [*value, *value.values(), *([] if factory is None else [factory])]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject and not value.dtype.names else []
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, type | types.ModuleType | str | bytes | int | float | None) or is_function(value):
        return []
    return [getattr(value, "__dict__", {})]


def is_function(value: Any) -> bool:
    """Whether it is a function or a method, known by its name."""
    return callable(value) and hasattr(value, "__name__")


def everything(value: Any, enter: Callable[[Any], bool] = lambda thing: True) -> Iterator[Any]:
    """An object and all that is inside it, each once; only what `enter` allows is looked into."""
    seen: dict[int, Any] = {}  # keeps them alive: the id of a deleted object may be reused
    waiting = [value]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        yield thing
        if enter(thing):
            waiting += reversed(contents(thing))
