"""What is wrong with settings: a line for each mistake, with its source, its key, and what is wanted."""

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from cosilo.config.split_settings import SPLITS
from cosilo.errors import ConfigError
from cosilo.parameters import Parameters, wanted
from cosilo.text import guess, listing

P = TypeVar("P", bound=Parameters)


def checked(kind: type[P], values: Mapping[str, Any], source: str, prefix: str) -> P:
    """Parameters made of the values of a table, or one line for each mistake in it."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, source, kind, prefix)) from None


def explain(
    error: ValidationError,
    source: str,
    model: type[BaseModel],
    prefix: str = "",
    names: Sequence[str] = (),
) -> str:
    """A validation error as lines that name the source, the key, what it got and what it wants.

    Silos are called by their names, if these are given.
    """
    problems: dict[str, list[str]] = {}  # by key: a union has one for each of its members
    for problem in error.errors():
        path = [part for part in problem["loc"] if not _is_branch(part)]
        parts = [*([prefix] if prefix else []), *path]
        if names and len(parts) > 1 and parts[0] == "silo" and isinstance(parts[1], int):
            parts[1] = names[parts[1]]
        key = ".".join(map(str, parts))
        if problem["type"] == "extra_forbidden":
            known = _keys(model, path[:-1])
            text = f"there is no such key{guess(str(path[-1]), known)}; wants one of {listing(known, 20)}"
        elif problem["type"] == "missing":
            text = "is missing"
        else:
            got = problem["input"]
            if problem["type"] == "split" and isinstance(got, dict):
                got = got.get("use")
            shown = "" if isinstance(got, dict | list | BaseModel) else f"got {got!r}; "
            text = f"{shown}wants {wanted(problem)}"
            if key in problems:
                text = f"or {wanted(problem)}"
        problems.setdefault(key, []).append(text)
    return "\n".join(
        f"{source}: {key + ': ' if key else ''}{' '.join(texts)}"
        for key, texts in problems.items()
        if not _is_inherited(key, problems)
    )


def _is_inherited(key: str, problems: Mapping[str, object]) -> bool:
    """Whether what is wrong with a silo was said of `[defaults]` already."""
    table, _, rest = key.partition(".")
    return table == "silo" and f"defaults.{rest.partition('.')[2]}" in problems


def _is_branch(part: Any) -> bool:
    """Whether a place in an error is pydantic's name for a member of a union, and not a key."""
    names = SPLITS | {"own", "float", "int", "str", "bool"}
    return isinstance(part, str) and (part in names or "[" in part or part.startswith("constrained-"))


def _keys(model: Any, path: Sequence[Any]) -> list[str]:
    """The keys that may stand at `path` inside a model."""
    models = [model]
    for part in path:
        inner = [_field(m, part) if isinstance(part, str) else m for m in models]
        models = [m for annotation in inner for m in _models(annotation)]
    return sorted({name for m in models for name in m.model_fields})


def _field(model: Any, name: str) -> Any:
    field = model.model_fields.get(name)
    return None if field is None else field.annotation


def _models(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType, list, Annotated):
        return [m for inner in get_args(annotation) for m in _models(inner)]
    return []
