"""Which types a file of a fitted object may name: those of known libraries, and of the silo's own learner.

Loading makes what a file names, so a whole package cannot be trusted: builtins has eval, scikit-learn's test
helpers run scripts. So: classes that really live in these packages, the functions of these modules, and these
single names; beside that the packages that the silo's own learner comes from, and the classes of those that
its modules import.
"""

import functools
import importlib
import sys
import types
from typing import Any

from cosilo.learners.saving.contents import everything, is_function

_CLASSES = ("sklearn", "scipy", "numpy.dtypes", "numpy.random", "numpy.ma")
_FUNCTIONS = ("sklearn.metrics", "sklearn.utils.validation", "scipy._lib.array_api_compat")
_NAMES = frozenset(
    [
        *(f"builtins.{name}" for name in ("bool", "bytes", "complex", "dict", "float", "frozenset", "int")),
        *(f"builtins.{name}" for name in ("list", "range", "set", "str", "tuple")),
        *("collections.Counter", "collections.OrderedDict", "functools.partial", "numpy.dtype"),
        *(f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")),
        *(f"pathlib.{name}" for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")),
        *("random.Random", "decimal.Decimal", "fractions.Fraction", "uuid.UUID"),
        "cosilo.learners.saving.parts.Part",
    ]
)
_LIBRARIES = ("sklearn", "scipy", "numpy")
_TEST_HELPERS = {"tests", "testing", "_testing", "_testutils"}
# A template that holds a path or a partial does not open all of pathlib or functools.
_NOT_OPENED = {"numpy", "cosilo", *sys.stdlib_module_names}


class Trust:
    """What a template trusts: the types of everything inside it, and the packages they come from."""

    def __init__(self, template: Any) -> None:
        own = _kinds(template)
        self._own = {f"{_module(thing)}.{thing.__name__}" for thing in own}
        homes = {_module(kind) for kind in own if isinstance(kind, type)}
        #: The modules whose functions are trusted, and the packages whose classes are.
        self._homes = {home for home in homes if _root(home) not in _NOT_OPENED}
        imported = {root for home in self._homes if not _inside(home, _LIBRARIES) for root in _imports(home)}
        self._packages = tuple({_root(home) for home in self._homes} | imported)

    def allows(self, kind: str) -> bool:
        """Whether a dotted name is a class of a known or the template's package, or such a function."""
        if kind in _NAMES or kind in self._own:
            return True
        module, _, attribute = kind.rpartition(".")
        library = _inside(module, _LIBRARIES)
        helper = library and bool(_TEST_HELPERS & set(module.split(".")))
        if helper or not (library or _inside(module, self._packages)):
            return False  # before anything is imported
        try:
            thing = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            return False
        # Modules also hold what they import (subprocess, os …): a thing counts for the module it was made in.
        home = _module(thing)
        if isinstance(thing, type):
            return _inside(home, (*_CLASSES, *self._packages))
        return callable(thing) and (home in self._homes or _inside(home, _FUNCTIONS))


def _kinds(template: Any) -> set[Any]:
    """The classes of everything inside a template, and the classes and functions that are its values."""
    found: set[Any] = set()
    waiting = [template]
    while waiting:
        for value in everything(waiting.pop()):
            if isinstance(value, type) or is_function(value):
                found.add(value)
            elif isinstance(value, types.ModuleType | functools.partial):
                continue
            else:
                found.update(type(value).__mro__)
                if callable(getattr(value, "get_params", None)) and not hasattr(value, "__dict__"):
                    waiting.append(value.get_params(deep=False))
    return found


def _imports(module: str) -> set[str]:
    """The packages that a module imports for itself."""
    held = vars(sys.modules[module]).values() if module in sys.modules else ()
    roots = {
        _root(value.__name__ if isinstance(value, types.ModuleType) else _module(value))
        for value in held
        if isinstance(value, types.ModuleType | type) or is_function(value)
    }
    return roots - _NOT_OPENED


def _inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def _module(thing: Any) -> str:
    return str(getattr(thing, "__module__", None) or "builtins")


def _root(module: str) -> str:
    return module.partition(".")[0]
