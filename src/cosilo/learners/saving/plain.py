"""Plain Python things that skops would lose, such as containers with other keys than texts, as lists."""

import re
from collections import Counter, OrderedDict, defaultdict, deque
from copy import deepcopy
from pathlib import Path
from typing import Any

from cosilo.errors import LearnerError
from cosilo.learners.saving.form import Form

_MAPPINGS = {kind.__name__: kind for kind in (dict, OrderedDict, Counter, defaultdict)}


def _is_odd_mapping(thing: Any) -> bool:
    """Whether skops would lose its keys, which it keeps as texts, or cannot read it again."""
    if type(thing) is defaultdict:
        return True
    if type(thing) not in _MAPPINGS.values():
        return False
    sorts = {type(key) for key in thing}
    return bool(sorts - {str}) and (len(sorts) > 1 or sorts.pop().__name__ not in ("int", "int64", "int32"))


def _write_mapping(thing: Any, path: Path) -> Any:
    pairs = [[key, value] for key, value in thing.items()]
    return [type(thing).__name__, getattr(thing, "default_factory", None), pairs]


def _read_mapping(path: Path, about: Any, template: Any) -> Any:
    name, factory, pairs = about
    made: dict[Any, Any] = defaultdict(factory) if name == "defaultdict" else _MAPPINGS[name]()
    for key, value in pairs:
        made[key] = value
    return made


# ---------------------------------------------------------------------- whatever else pickle would keep

_KNOWN_TO_SKOPS = {"sklearn", "scipy", "numpy", "builtins", "datetime", "pathlib", "decimal", "fractions"}


def _reduces_itself(thing: Any) -> bool:
    """Whether an object of others' packages says itself how it is taken apart, or has slots."""
    cls = type(thing)
    if isinstance(thing, type) or cls.__module__.partition(".")[0] in _KNOWN_TO_SKOPS:
        return False
    slots = any("__slots__" in vars(kind) for kind in cls.__mro__) and not hasattr(thing, "__dict__")
    return (_says_how(cls) or slots) and not isinstance(thing, BaseException | tuple | list | dict | set)


def _says_how(cls: Any) -> bool:
    plain: Any = object
    return cls.__reduce__ is not plain.__reduce__ or cls.__reduce_ex__ is not plain.__reduce_ex__


def _write_reduced(thing: Any, path: Path) -> Any:
    if not _says_how(type(thing)):
        return [type(thing), None, thing.__getstate__()]
    said = thing.__reduce_ex__(2)
    if isinstance(said, str) or any(said[3:]):
        raise LearnerError(f"it holds a {type(thing).__name__}, which only pickle takes apart")
    return [said[0], list(said[1]), said[2] if len(said) > 2 else None]


def _read_reduced(path: Path, about: Any, template: Any) -> Any:
    make, arguments, state = about
    made = make.__new__(make) if arguments is None else make(*arguments)
    if state is None:
        return made
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return made
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        object.__setattr__(made, name, value)
    return made


# ---------------------------------------------------------------------- what keeps itself


def keeps_itself(thing: Any) -> bool:
    """Whether an object has the methods save(folder) and load(folder)."""
    return not isinstance(thing, type) and all(
        callable(getattr(type(thing), method, None)) for method in ("save", "load")
    )


def _write_own(thing: Any, path: Path) -> None:
    if getattr(thing, "__sklearn_is_fitted__", lambda: True)():
        path.mkdir()
        thing.save(path)


def _read_own(path: Path, about: Any, template: Any) -> Any:
    thing = deepcopy(template)
    if not path.exists():
        return thing
    returned = thing.load(path)  # a classmethod hands over a new object
    return returned if isinstance(returned, type(thing)) else thing


FORMS: dict[str, Form] = {
    "own": Form(keeps_itself, "", _write_own, _read_own, True),
    "mapping": Form(_is_odd_mapping, None, _write_mapping, _read_mapping),
    "deque": Form(
        lambda thing: type(thing) is deque,
        None,
        lambda thing, path: [list(thing), thing.maxlen],
        lambda path, about, template: deque(*about),
    ),
    "pattern": Form(
        lambda thing: isinstance(thing, re.Pattern),
        None,
        lambda thing, path: [thing.pattern, thing.flags],
        lambda path, about, template: re.compile(*about),
    ),
    "reduced": Form(_reduces_itself, None, _write_reduced, _read_reduced),
}
