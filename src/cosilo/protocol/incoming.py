"""What a coordinator may send with a step: the parameters of the step's function, each by its type.

A parameter that is more than its type says has a form of its own, as in
`Annotated[NDArray[Any], Array(("uint8",))]`. A form knows neither pool nor task of a silo: a step that
expects a length compares it itself.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from cosilo.errors import BadMessage
from cosilo.protocol.forms import Expected, Form, Names, Number, Numbers, Parameters, Text, shown
from cosilo.protocol.message import Message

#: Whole numbers beyond this are nothing that is counted, drawn or numbered.
_LARGEST = 2**53


@dataclass(frozen=True)
class _Whole:
    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        good = whole and -_LARGEST <= value <= _LARGEST  # type: ignore[operator]
        return None if good else f"got {shown(value)}; wants a whole number"


@dataclass(frozen=True)
class _Flag:
    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        return None if isinstance(value, bool) else f"got {shown(value)}; wants true or false"


@dataclass(frozen=True)
class _Parameter:
    form: Form | None
    optional: bool


def check_incoming(function: Callable[..., Any], message: Message) -> None:
    """Raise unless a message has the fields that a step's function takes, each of its type and finite."""
    parameters = _parameters(getattr(function, "__func__", function))
    if parameters is None:
        return  # takes whatever comes
    for name in message:
        if name not in parameters:
            raise BadMessage(f"got {shown(name)}; the step takes {', '.join(parameters) or 'nothing'}")
    for name, one in parameters.items():
        if name not in message:
            if not one.optional:
                raise BadMessage(f"got no {name!r}, which the step takes")
        elif one.form is not None and (problem := one.form.problem(message[name])):
            raise BadMessage(f"its {name!r}: {problem}")


def takes_arrays(function: Callable[..., Any]) -> bool:
    """Return whether a step's function takes anything that may be large: arrays, or whatever comes."""
    parameters = _parameters(getattr(function, "__func__", function))
    small = (_Whole, _Flag, Number, Text, Names)
    return parameters is None or not all(isinstance(one.form, small) for one in parameters.values())


@lru_cache(maxsize=512)
def _parameters(function: Callable[..., Any]) -> Mapping[str, _Parameter] | None:
    """By name, without the method and the silo, which every step gets; None if it takes any keyword."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError:  # a type that only a type checker imports
        hints = {}
    found = {}
    for place, (name, one) in enumerate(inspect.signature(function).parameters.items()):
        if one.kind is one.VAR_KEYWORD:
            return None
        if place >= 2:
            found[name] = _Parameter(_form(hints.get(name)), one.default is not one.empty)
    return found


def _form(hint: Any) -> Form | None:
    """The form that a type stands for; None: any."""
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [one for one in get_args(hint) if one is not type(None)]
        return _form(kinds[0]) if len(kinds) == 1 else None
    if get_origin(hint) is Annotated:
        kind, *about = get_args(hint)
        given = [one for one in about if hasattr(one, "problem")]
        return given[0] if given else _form(kind)
    plain: dict[Any, Form] = {int: _Whole(), float: Number(), str: Text(), bool: _Flag()}
    if hint in plain:
        return plain[hint]
    origin = get_origin(hint) or hint
    if origin is list:
        return Names()
    if origin is np.ndarray:
        return Numbers()
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Parameters()
    return None
