"""Messages: named arrays and scalars, each of a declared kind; the only thing that crosses a boundary.

On the wire and on disk a message is one safetensors buffer: arrays as tensors, scalars as JSON in its
metadata. Nothing in it can run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from cosilo.errors import BadMessage, ConfigError

#: Arrays that belong together under one field, such as the weights of a model.
Group: TypeAlias = Mapping[str, NDArray[Any]]
Value: TypeAlias = NDArray[Any] | Group | bool | int | float | str | list[str]
Message: TypeAlias = Mapping[str, Value]

#: What a field may be. A silo's share policy is a set of these; "task" is what a silo must say to join.
KINDS = {
    "task": "names of the silo's classes, fingerprint of its pool, what it is willing to share",
    "labels": "one class per pool instance, or an abstention",
    "logits": "scores per pool instance and class",
    "weights": "parameters of a model",
    "similarity": "how useful other silos' models are to this one",
    "metrics": "accuracies and losses, as single numbers",
    "size": "how many training instances the silo has",
}


#: How an institution makes one value of those that its members sent.
Merge: TypeAlias = Callable[[Sequence[Any]], Value]


@dataclass(frozen=True)
class Shared:
    """One field of a step's reply, as `@step` declares it.

    Parameters
    ----------
    kind : str
        What it is, one of `KINDS` (labels, logits, weights, similarity, metrics, size): a silo's policy
        allows kinds.
    about : str, default ""
        What audit logs and reports say about it; the kind's own description if it is empty.
    merge : callable, default None
        How an institution makes one value of its members', such as `sum`; None: institutions cannot do the
        step.
    optional : bool, default False
        Whether a reply may leave it out.

    Examples
    --------
    >>> Shared("size", "training instances", merge=sum).merge([20, 30])
    50
    """

    kind: str
    about: str = ""
    merge: Merge | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"a field is declared as {self.kind!r}; wants one of {', '.join(KINDS)}")
        if not self.about:
            object.__setattr__(self, "about", KINDS[self.kind])


class Fields(Mapping[str, Value]):
    """The fields of a received message, each read as the type it must have.

    Parameters
    ----------
    values : mapping of str to Value
        What was received: arrays, groups of named arrays, numbers, texts, names.

    Examples
    --------
    >>> reply = Fields({"size": 3, "votes": np.array([1, -1])})
    >>> reply.integer("size"), reply.array("votes").tolist()
    (3, [1, -1])
    """

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def __getitem__(self, field: str) -> Value:
        return self._values[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._values)!r})"

    def array(self, field: str) -> NDArray[Any]:
        """A field that is one array."""
        value = self._there(field)
        return value if isinstance(value, np.ndarray) else _wrong(field, value, "an array")

    def group(self, field: str) -> dict[str, NDArray[Any]]:
        """A field that is named arrays, such as the weights of a model."""
        value = self._there(field)
        return dict(value) if isinstance(value, Mapping) else _wrong(field, value, "named arrays")

    def number(self, field: str) -> float:
        """A field that is a number."""
        value = self._there(field)
        good = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if good else _wrong(field, value, "a number")  # type: ignore[arg-type]

    def integer(self, field: str) -> int:
        """A field that is a whole number."""
        value = self._there(field)
        good = isinstance(value, int) and not isinstance(value, bool)
        return value if good else _wrong(field, value, "a whole number")  # type: ignore[return-value]

    def flag(self, field: str) -> bool:
        """A field that is true or false."""
        value = self._there(field)
        return value if isinstance(value, bool) else _wrong(field, value, "true or false")

    def text(self, field: str) -> str:
        """A field that is a text."""
        value = self._there(field)
        return value if isinstance(value, str) else _wrong(field, value, "a text")

    def names(self, field: str) -> list[str]:
        """A field that is a list of names."""
        value = self._there(field)
        if isinstance(value, list) and _is_names(value):
            return list(value)
        return _wrong(field, value, "a list of names")

    def _there(self, field: str) -> Value:
        if field not in self._values:
            raise BadMessage(f"field {field!r} is missing")
        return self._values[field]


class State(Fields, MutableMapping[str, Value]):
    """Fields that can be written: what a method knows between two rounds.

    Parameters
    ----------
    values : mapping of str to Value, default None
        What it begins with; None: nothing.

    Examples
    --------
    >>> state = State({"round": 1})
    >>> state["round"] = state.integer("round") + 1
    >>> state
    State({'round': 2})
    """

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self._values: dict[str, Value] = dict(values or {})

    def __setitem__(self, field: str, value: Value) -> None:
        self._values[field] = value

    def __delitem__(self, field: str) -> None:
        del self._values[field]


def _wrong(field: str, value: Value, wants: str) -> NoReturn:
    raise BadMessage(f"field {field!r} is a {type(value).__name__}; wants {wants}")


def policy(shares: Iterable[str], where: str) -> frozenset[str]:
    """The kinds that may leave a silo, checked; `where` names it."""
    kinds = frozenset([shares] if isinstance(shares, str) else shares)
    for kind in sorted(kinds - set(KINDS)):
        wants = ", ".join(k for k in KINDS if k != "task")
        raise ConfigError(f"{where}: shares {kind!r}; wants some of {wants}")
    return kinds - {"task"}


def encode(message: Message) -> bytes:
    """One buffer for the whole message.

    >>> decode(encode({"votes": np.array([1, -1], np.int8), "round": 2}))
    {'round': 2, 'votes': array([ 1, -1], dtype=int8)}
    >>> decode(encode({"weights": {"layer.bias": np.zeros(2)}}))
    {'weights': {'layer.bias': array([0., 0.])}}
    """
    arrays: dict[str, NDArray[Any]] = {}
    scalars: dict[str, Any] = {}
    for field, value in message.items():
        if "/" in field:
            raise BadMessage(f"field {field!r}: a name may not contain '/'")
        if isinstance(value, np.ndarray):
            arrays[field] = _numbers(field, value)
        elif isinstance(value, Mapping) and all(isinstance(v, np.ndarray) for v in value.values()):
            arrays |= {f"{field}/{name}": _numbers(f"{field}/{name}", array) for name, array in value.items()}
        elif isinstance(value, bool | int | float | str) or _is_names(value):
            scalars[field] = value
        else:
            kind = type(value).__name__
            raise BadMessage(f"field {field!r} is a {kind}; messages hold arrays, numbers, strings and names")
    return save(arrays, metadata={"scalars": json.dumps(scalars)})


def decode(buffer: bytes) -> dict[str, Value]:
    """What `encode` wrote; a buffer that is anything else is a BadMessage."""
    try:
        size = int.from_bytes(buffer[:8], "little")
        header = json.loads(buffer[8 : 8 + size])
        scalars = json.loads(header["__metadata__"]["scalars"])
        arrays = load(buffer)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadMessage(
            f"got {len(buffer)} bytes that are not a message ({type(error).__name__})"
        ) from error
    if not isinstance(scalars, dict):
        raise BadMessage("the scalars of a message are not named")
    message: dict[str, Value] = dict(scalars)
    groups: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in sorted(arrays.items()):  # safetensors gives them in any order
        field, slash, inner = name.partition("/")
        if slash:
            groups.setdefault(field, {})[inner] = array
        else:
            message[field] = array
    return {**message, **groups}


def _numbers(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise BadMessage(f"field {name!r} is an array of {array.dtype}; messages hold numbers only")
    return array if array.flags.c_contiguous else array.copy(order="C")


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True)
class Expected:
    """What the coordinator knows about a silo and checks its replies against."""

    classes: int
    pool: int


def check(message: Message, fields: Mapping[str, Shared], expected: Expected | None = None) -> None:
    """Check a reply against the fields that its step declares, and every field against its kind."""
    extra = [name for name in message if name not in fields]
    if extra:
        raise BadMessage(f"field {extra[0]!r} was not declared; declared are {sorted(fields) or 'none'}")
    for name, field in fields.items():
        if name not in message:
            if field.optional:
                continue
            raise BadMessage(f"field {name!r} is missing")
        problem = _problem(message[name], field.kind, expected)
        if problem:
            raise BadMessage(f"field {name!r}: {problem}")


def describe(message: Message, fields: Mapping[str, Shared]) -> dict[str, dict[str, Any]]:
    """Shared by field: kind, form, bytes and meaning, for audit logs and reports."""
    described = {}
    for name, value in message.items():
        if isinstance(value, Mapping):
            numbers = sum(array.size for array in value.values())
            form = f"{len(value)} arrays, {numbers} numbers"
        elif isinstance(value, np.ndarray):
            form = f"{value.dtype}{list(value.shape)}"
        else:
            form = type(value).__name__
        kind, about = fields[name].kind, fields[name].about
        described[name] = {"kind": kind, "form": form, "bytes": _bytes(value), "about": about}
    return described


def payload(message: Message) -> int:
    """The bytes of all fields together; what frames them is not counted.

    >>> payload({"weights": {"a": np.zeros(3, np.float32)}, "round": 10})
    14
    """
    return sum(_bytes(value) for value in message.values())


def _bytes(value: Value) -> int:
    if isinstance(value, Mapping):
        return sum(int(array.nbytes) for array in value.values())
    return int(value.nbytes) if isinstance(value, np.ndarray) else len(json.dumps(value).encode())


def _problem(value: Value, kind: str, expected: Expected | None) -> str | None:
    if kind == "task":
        return None if isinstance(value, str) or _is_names(value) else "wants names"
    if kind == "labels":
        return _labels_problem(value, expected)
    if kind == "size":
        return None if _is_count(value) else f"got {value!r}; wants a whole number of at least 1"
    if kind == "metrics":
        good = isinstance(value, int | float) and np.isfinite(value)
        return None if good else f"got {value!r}; wants one finite number"
    group = value if kind == "weights" and isinstance(value, Mapping) else {"": value}
    for name, array in group.items():
        if not isinstance(array, np.ndarray):
            return f"got {type(array).__name__}; wants an array"
        if not np.isfinite(array).all():
            return f"{name} holds NaN or infinity".strip()
    return None


def _is_count(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _labels_problem(value: Value, expected: Expected | None) -> str | None:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "i" or value.ndim != 1:
        got = f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        return f"got {got}; wants one whole number per pool instance"
    if expected is None:
        return None
    if len(value) != expected.pool:
        return f"got {len(value)} labels; the pool has {expected.pool} instances"
    if len(value) and (value.min() < -1 or value.max() >= expected.classes):
        at = int(np.flatnonzero((value < -1) | (value >= expected.classes))[0])
        return (
            f"label {value[at]} of instance {at} is outside the task; "
            f"wants 0 … {expected.classes - 1}, or -1 for an abstention"
        )
    return None
