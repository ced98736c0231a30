"""Telling a library's things without importing it."""

from functools import cache
from typing import Any


def kinds(cls: type[Any]) -> frozenset[str]:
    """The full names of a class and of those it inherits from.

    >>> "builtins.int" in kinds(bool)
    True
    """
    return _names(cls.__mro__)


@cache
def _names(classes: tuple[type[Any], ...]) -> frozenset[str]:
    return frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in classes)
