"""Fitted objects on disk without pickle: skops, with a narrow rule for what may be instantiated."""

import functools
import importlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

from cosilo.errors import LearnerError

# skops asks about every type that it does not know to be harmless. A whole package cannot be trusted:
# builtins has eval, scikit-learn's test helpers run scripts, and loading calls what a file names. So: classes
# that really live in these packages, the functions of these modules, and these single names.
_CLASSES = ("sklearn", "scipy", "numpy.dtypes", "numpy.random", "numpy.ma")
_FUNCTIONS = ("sklearn.metrics", "sklearn.utils.validation", "scipy._lib.array_api_compat")
_NAMES = {"builtins.frozenset", "builtins.range", "collections.Counter", "functools.partial", "numpy.dtype"}
#: What a saved learner may be made of where nobody says what it is.
_LIBRARIES = ("lightgbm", "xgboost", "catboost")
_TEST_HELPERS = {"tests", "testing", "_testing", "_testutils"}
# A template that holds a path or a partial does not open all of pathlib or functools.
_NOT_OPENED = {"numpy", *sys.stdlib_module_names}


def preload() -> None:
    """Import skops now: it looks up all of scikit-learn, which takes seconds."""
    importlib.import_module("skops.io")


def write(model: Any, path: Path, template: Any) -> None:
    """Write a fitted object and check that it can be read again: after a crash it would be too late."""
    from skops.io import dump, load

    cause: Exception | None = None
    why = "what is read back is not what was written"
    try:
        dump(model, path)
        if _same(model, load(path, trusted=_vetted(path, template))):
            return
    except LearnerError as error:
        why, cause = str(error), error
    except OSError:
        raise  # the disk's fault, not the object's
    except Exception as error:
        why, cause = f"skops raised {type(error).__name__}", error
    path.unlink(missing_ok=True)
    cure = "give the class the methods save(folder) and load(folder)"
    raise LearnerError(f"{type(template).__name__} cannot be saved: {why}; {cure}") from cause


def read(path: Path, template: Any) -> Any:
    """Read a fitted object of the template's class; refuse types that such an object does not need."""
    from skops.io import load

    try:
        model = load(path, trusted=_vetted(path, template))
    except LearnerError:
        raise
    except Exception as error:
        raise LearnerError(f"{path} cannot be read: {type(error).__name__}") from error
    if type(model) is not type(template):
        raise LearnerError(f"{path} holds a {type(model).__name__}; wants a {type(template).__name__}")
    return model


def read_known(path: Path) -> Any:
    """Read an object that has to be made of well-known libraries: nothing else says what may be in it."""
    from skops.io import get_untrusted_types, load

    try:
        asked = get_untrusted_types(file=path)
        foreign = [kind for kind in asked if not (_trusted(kind, set()) or _inside(kind, _LIBRARIES))]
        if not foreign:
            return load(path, trusted=asked)
    except Exception as error:
        raise LearnerError(f"{path} cannot be read: {type(error).__name__}") from error
    raise LearnerError(f"{path} holds types that are not of a well-known library: {', '.join(foreign)}")


def _vetted(path: Path, template: Any) -> list[str]:
    """The types in a file that skops asks about, if all may be trusted; else an error names the others."""
    from skops.io import get_untrusted_types

    own, asked = _kinds(template), get_untrusted_types(file=path)
    foreign = [kind for kind in asked if not _trusted(kind, own)]
    if foreign:
        name = type(template).__name__
        raise LearnerError(f"{path.name} holds types that {name} does not use: {', '.join(foreign)}")
    return list(asked)


def _trusted(kind: str, own: set[Any]) -> bool:
    """Whether a dotted name is a class of a known package or one the template uses, or a known function."""
    if kind in _NAMES or kind in {f"{_module(thing)}.{thing.__name__}" for thing in own}:
        return True
    module, _, attribute = kind.rpartition(".")
    homes = {_module(cls) for cls in own if isinstance(cls, type)}
    homes = {home for home in homes if home.partition(".")[0] not in _NOT_OPENED}
    packages = tuple({home.partition(".")[0] for home in homes})
    library = _inside(module, ("sklearn", "scipy", "numpy"))
    if (library and _TEST_HELPERS & set(module.split("."))) or not (library or _inside(module, packages)):
        return False  # before anything is imported
    try:
        thing = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    # Modules also hold what they import (subprocess, os …): a thing counts for the module it was made in.
    home = _module(thing)
    if isinstance(thing, type):
        return _inside(home, (*_CLASSES, *packages))
    return callable(thing) and (home in homes or _inside(home, _FUNCTIONS))


def _inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def _module(thing: Any) -> str:
    return str(getattr(thing, "__module__", None) or "builtins")


def _kinds(template: Any) -> set[Any]:
    """The classes of everything inside a template, and the classes and functions that are its values."""
    found: set[Any] = set()
    seen: dict[int, Any] = {}  # keeps them alive: the id of a deleted object may be reused
    waiting = [template]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, np.ndarray):
            continue
        seen[id(value)] = value
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            found.add(value)
            continue
        found.update(type(value).__mro__)
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif isinstance(value, functools.partial):
            waiting += [value.func, value.args, value.keywords]
        elif not isinstance(value, types.ModuleType):
            waiting.append(getattr(value, "__dict__", {}))
            if callable(getattr(value, "get_params", None)):
                waiting.append(value.get_params(deep=False))
    return found


def _same(first: Any, second: Any) -> bool:
    """Whether two objects have the same state; skops loses some silently (a dict's keys True and False)."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return first.shape == second.shape and first.dtype == second.dtype and _same_array(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    if first is None or isinstance(first, _PLAIN):
        return bool(first == second or first != first)  # only NaN differs from itself
    return _same(first.__getstate__(), second.__getstate__())


_PLAIN = (
    *(str, bytes, bytearray, int, float, complex, np.generic, set, frozenset, range, slice),
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc),
)


def _same_array(first: Any, second: Any) -> bool:
    if first.dtype.names:  # field by field: the padding between fields may differ
        return all(_same_array(first[name], second[name]) for name in first.dtype.names)
    if first.dtype.hasobject:
        return _same(first.tolist(), second.tolist())
    return bool(first.tobytes() == second.tobytes())
