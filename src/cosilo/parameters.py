"""Parameters of methods, trainings, clocks: typed and frozen, and a mistake in them gets one line."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cosilo.errors import ConfigError
from cosilo.text import guess, listing

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _Explained(ModelMetaclass):
    """Calling the class explains a mistake; as a part of settings it is explained with its key there."""

    def __call__(cls, *arguments: Any, **parameters: Any) -> Any:
        try:
            return super().__call__(*arguments, **parameters)
        except ValidationError as error:
            known = sorted(getattr(cls, "model_fields", {}))
            raise ConfigError("\n".join(_lines(error, cls.__name__, known))) from error
        except TypeError as error:  # parameters have names
            raise ConfigError(f"{cls.__name__}: wants its parameters by name ({error})") from None


class Parameters(BaseModel, metaclass=_Explained):
    """The base of classes whose fields are parameters.

    >>> class Bell(Parameters):
    ...     rings: int = 3
    >>> Bell(ring=2)
    Traceback (most recent call last):
    cosilo.errors.ConfigError: Bell.ring: there is no such parameter (did you mean 'rings'?); wants rings
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


def wanted(problem: Any) -> str:
    """What a pydantic error says is wanted, in the words of a person."""
    text = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    limits = problem.get("ctx", {})
    if problem["type"] == "too_short":
        return f"at least {limits['min_length']} of them"
    if problem["type"] == "model_type":
        return "a table { … }" if limits["class_name"].endswith("Settings") else f"a {limits['class_name']}"
    for text_, number in (("at least", "ge"), ("more than", "gt"), ("at most", "le"), ("less than", "lt")):
        if number in limits:
            return f"{text_} {limits[number]:g}"
    return {
        "a valid list": "a list: [ … ]",
        "a valid tuple": "a pair of numbers",
        "a valid dictionary": "a table { … }",
        "a valid string": "a text",
        "a valid integer": "a whole number",
        "a valid number": "a number",
        "a valid boolean": "true or false",
    }.get(text.partition(",")[0], text)


def _lines(error: ValidationError, name: str, known: list[str]) -> list[str]:
    """A line for each parameter that is not as it has to be; a union has a problem for each member."""
    found: dict[str, list[str]] = {}
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        where = f"{name}{'.' if key else ''}{key}"
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            text = f"there is no such parameter{guess(key, known)}; wants {listing(known, 20)}"
        elif problem["type"] == "missing":
            text = "is missing"
        elif where in found:
            text = f"or {wanted(problem)}"
        else:
            got = f"got {problem['input']!r}; " if key else ""
            text = f"{got}wants {wanted(problem)}"
        found.setdefault(where, []).append(text)
    return [f"{key}: {' '.join(dict.fromkeys(texts))}" for key, texts in found.items()]
