"""Messages: named arrays and scalars, each of a declared kind; the only thing that crosses a boundary.

On the wire and on disk a message is one safetensors buffer: arrays as tensors, scalars as JSON in its
metadata. Nothing in it can run.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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
    """What the coordinator knows about a silo and holds its replies against."""

    classes: int
    pool: int


def check(message: Message, shares: Mapping[str, str], expected: Expected | None = None) -> None:
    """Hold a reply against the fields its step declares, and every field against its kind."""
    extra = [field for field in message if field not in shares]
    if extra:
        raise BadMessage(f"field {extra[0]!r} was not declared; declared are {sorted(shares) or 'none'}")
    for field, kind in shares.items():
        if field not in message:
            raise BadMessage(f"field {field!r} is missing")
        problem = _problem(message[field], kind, expected)
        if problem:
            raise BadMessage(f"field {field!r}: {problem}")


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
