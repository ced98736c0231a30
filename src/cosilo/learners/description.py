"""What decides how a learner learns, as plain values: two with the same description learn the same.

A run keeps the descriptions of its learners, so that it is not continued, or shown, with others. Code that
comes with a version is described by its name; one's own by a hash of what it does, so that comments and line
breaks do not count.
"""

import functools
import hashlib
import json
import platform
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosilo.learners.base import Learner

#: A longer list, text or table is described by a hash.
_LONG = 1000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass
class Description:
    """What a thing is, as JSON can hold it, and the versions of the packages that it is made of."""

    value: Any
    versions: dict[str, str]


def describe(thing: object) -> Description:
    """Describe a learner, or anything that is part of one.

    What it has learnt is left out: names that end with an underscore, as in scikit-learn.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> found = describe(DecisionTreeClassifier(max_depth=3))
    >>> found.value["use"], found.value["max_depth"], "sklearn" in found.versions
    ('sklearn.tree._classes.DecisionTreeClassifier', 3, True)
    """
    writer = _Writer()
    value = writer.of(thing)
    if isinstance(value, dict) and value.keys() == {"use", "model"}:  # an adapter adds nothing of its own
        value = value["model"]
    return Description(value, {name: writer.versions[name] for name in sorted(writer.versions)})


@dataclass
class _Writer:
    versions: dict[str, str] = field(
        default_factory=lambda: {
            "python": ".".join(platform.python_version_tuple()[:2]),
            "numpy": np.__version__,
        }
    )
    #: What is being described: something inside that refers to it is not followed.
    _open: dict[int, object] = field(default_factory=dict)

    def of(self, value: Any) -> Any:
        """The value as JSON can hold it."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else str(value)
        if isinstance(value, str):
            return value if len(value) <= _LONG else _hash(value)
        if isinstance(value, np.generic):
            return self.of(value.item())
        if isinstance(value, bytes):
            return _hash(value)
        if id(value) in self._open:
            return "…"
        self._open[id(value)] = value
        try:
            return self._inside(value)
        finally:
            del self._open[id(value)]

    def _inside(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) or _is_tensor(value):
            return self._array(value)
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | np.ufunc):
            return self._code(value)
        if isinstance(value, types.MethodType):
            return {"method": value.__func__.__qualname__, "of": self.of(value.__self__)}
        if isinstance(value, functools.partial):
            return {"partial": self.of(value.func), "with": [self.of(value.args), self.of(value.keywords)]}
        if isinstance(value, types.ModuleType):
            return value.__name__
        if isinstance(value, Mapping):
            return _short({str(key): self.of(item) for key, item in value.items()})
        if isinstance(value, set | frozenset):
            return _short(sorted((self.of(item) for item in value), key=json.dumps))
        if isinstance(value, list | tuple):
            named = value and all(
                isinstance(item, tuple) and len(item) > 1 and isinstance(item[0], str) for item in value
            )
            if named:  # the steps of a pipeline
                rest = {item[0]: item[1] if len(item) == 2 else item[1:] for item in value}
                if len(rest) == len(value):
                    return _short({name: self.of(item) for name, item in rest.items()})
            return _short([self.of(item) for item in value])
        return self._object(value)

    def _array(self, value: Any) -> str:
        array = np.asarray(value.detach().cpu() if _is_tensor(value) else value)
        if array.dtype.hasobject:
            return f"array {array.shape} {_hash(repr(array.tolist()))}"
        return f"array {array.dtype.str} {array.shape} {_hash(np.ascontiguousarray(array).tobytes())}"

    def _object(self, value: Any) -> Any:
        kind = self._code(type(value))
        if callable(getattr(value, "get_params", None)) and not isinstance(value, type):
            try:
                state: Any = value.get_params(deep=False)
            except Exception:  # looks like an estimator but does not keep scikit-learn's rules
                state = vars(value)
        elif hasattr(value, "__dict__"):
            state = vars(value)
        else:
            state = value.__getstate__()
        if isinstance(state, dict):
            kept = {key: item for key, item in state.items() if not str(key).endswith("_")}
            if isinstance(value, Learner):  # what follows from the rest
                kept = {
                    key: item
                    for key, item in kept.items()
                    if not key.startswith("_") and key not in {"name", *Learner.__annotations__}
                }
            return {"use": kind, **{str(key): self.of(item) for key, item in kept.items()}}
        return {"use": kind, "is": _ADDRESS.sub("", repr(value)) if state is None else self.of(state)}

    # ------------------------------------------------------------------ code

    def _code(self, thing: Any) -> str:
        """The name of a class or function, and a hash of what it does if that is of one's own making."""
        name = f"{getattr(thing, '__module__', None) or 'builtins'}.{_name(thing)}"
        if self._known(thing):
            return name
        digest = hashlib.blake2b(digest_size=8)
        self._add(thing, digest, set())
        return f"{name} {digest.hexdigest()}"

    def _known(self, thing: Any) -> bool:
        """Whether it comes with a version, which is then noted."""
        top = (getattr(thing, "__module__", None) or "builtins").partition(".")[0]
        if top in sys.stdlib_module_names and top != "__main__":
            return True
        version = getattr(sys.modules.get(top), "__version__", None)
        if isinstance(version, str):
            self.versions[top] = version
        return isinstance(version, str)

    def _add(self, thing: Any, digest: Any, seen: set[int]) -> None:
        """Add what a class or function of one's own does, and what it uses of the kind."""
        thing = getattr(thing, "__wrapped__", thing)
        if id(thing) in seen:
            return
        seen.add(id(thing))
        digest.update(_name(thing).encode())
        if isinstance(thing, type):
            for base in thing.__bases__:
                if not self._known(base):
                    self._add(base, digest, seen)
            for key, item in sorted(vars(thing).items()):
                self._member(key, item, digest, seen)
        elif isinstance(thing, types.FunctionType):
            defaults = [thing.__defaults__, thing.__kwdefaults__]
            cells = [cell.cell_contents for cell in thing.__closure__ or () if _is_full(cell)]
            digest.update(json.dumps(self.of([defaults, cells])).encode())
            self._add_code(thing.__code__, thing.__globals__, digest, seen)

    def _member(self, key: str, item: Any, digest: Any, seen: set[int]) -> None:
        """Add a method or an attribute of a class."""
        parts = [item.fget, item.fset] if isinstance(item, property) else [getattr(item, "__func__", item)]
        for part in parts:
            if isinstance(part, types.FunctionType | type) and not self._known(part):
                self._add(part, digest, seen)
            elif not key.startswith("__") and isinstance(part, bool | int | float | str | tuple):
                digest.update(f"{key} {json.dumps(self.of(part))}".encode())

    def _add_code(self, code: types.CodeType, names: Mapping[str, Any], digest: Any, seen: set[int]) -> None:
        digest.update(code.co_code)
        digest.update(repr([code.co_names, code.co_varnames]).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant, names, digest, seen)
            elif isinstance(constant, frozenset):
                digest.update(repr(sorted(map(repr, constant))).encode())
            else:
                digest.update(repr(constant).encode())
        for name in code.co_names:
            used = names.get(name)
            if isinstance(used, types.FunctionType | type) and not self._known(used):
                self._add(used, digest, seen)
            elif name.isupper() and isinstance(used, bool | int | float | str | tuple):  # a constant
                digest.update(json.dumps(self.of(used)).encode())


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", type(thing).__name__))


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_full(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _hash(content: str | bytes) -> str:
    raw = content.encode() if isinstance(content, str) else content
    return f"#{hashlib.blake2b(raw, digest_size=8).hexdigest()}"


def _short(value: Any) -> Any:
    text = json.dumps(value)
    return value if len(value) <= 50 or len(text) <= _LONG else _hash(text)
