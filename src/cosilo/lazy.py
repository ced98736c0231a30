"""Names of a package that are imported when they are first used, so that nobody waits for the rest."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def names_from(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package (PEP 562), given the module of the package that each name lives in.

    Keep it from type checkers, who read ordinary imports under `if TYPE_CHECKING`: to them, a package with a
    `__getattr__` has every name.

    >>> names_from("cosilo", {"Task": "protocol.task"})("Task").__name__
    'Task'
    """

    def look_up(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)  # so that this is asked once
        return found

    return look_up
