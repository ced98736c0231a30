"""Messages: named arrays and scalars, each of a declared kind; the only thing that crosses a boundary.

On the wire and on disk a message is one buffer (`wire`). Nothing in it can run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import BadMessage, ConfigError
from cosilo.protocol.forms import (
    Count,
    Expected,
    Form,
    Labels,
    Number,
    Numbers,
    Parameters,
    TextOrNames,
    shown,
)
from cosilo.protocol.metrics import METRIC_KINDS, METRICS

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
    **METRIC_KINDS,
}
#: What a field of each kind looks like, unless it is declared with a form of its own.
FORMS: Mapping[str, Form] = {
    "task": TextOrNames(),
    "labels": Labels(),
    "logits": Numbers(),
    "weights": Parameters(),
    "similarity": Numbers(),
    "metrics": Number(),
    "size": Count(),
    **{metric.kind: metric.form for metric in METRICS.values()},
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
    exact : bool, default False
        Whether it tells how much data there is: it may leave only if the silo shares exact scores.
    form : Form, default None
        What it has to look like, where that is more than its kind says, such as `SHARE` of an accuracy; None:
        as its kind (`cosilo.protocol.forms`). A reply with another form is rejected before it is kept.

    Examples
    --------
    >>> Shared("size", "training instances", merge=sum).merge([20, 30])
    50
    """

    kind: str
    about: str = ""
    merge: Merge | None = None
    optional: bool = False
    exact: bool = False
    form: Form | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"a field is declared as {self.kind!r}; wants one of {', '.join(KINDS)}")
        if self.form is None:
            object.__setattr__(self, "form", FORMS[self.kind])
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
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
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


def check(message: Message, fields: Mapping[str, Shared], expected: Expected | None = None) -> None:
    """Check a reply against the fields that its step declares, and every field against its form."""
    extra = [name for name in message if name not in fields]
    if extra:
        raise BadMessage(f"field {shown(extra[0])} was not declared; declared are {sorted(fields) or 'none'}")
    for name, field in fields.items():
        if name not in message:
            if field.optional:
                continue
            raise BadMessage(f"field {name!r} is missing")
        assert field.form is not None  # that of its kind, at least
        if problem := field.form.problem(message[name], expected):
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
