"""What `cosilo` hands over: all of it can be imported, and all of it is described, parameter by parameter."""

import ast
import inspect
import re
import subprocess
import sys

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import cosilo
from cosilo import METHODS, CosiloError, Method, Silos

EMPTY = inspect.Parameter.empty


def described(thing) -> dict[str, tuple[str, str]]:
    """The type and the words about each parameter, as a docstring in numpydoc's form has them."""
    found = re.search(r"^Parameters\n-{10}\n(.*?)(?=\n\n\S|\Z)", inspect.getdoc(thing), re.S | re.M)
    entries = re.findall(r"^(\**\w+) : ([^\n]+)\n((?:    [^\n]+\n?)+)", found[1] if found else "", re.M)
    return {name: (kind, " ".join(words.split())) for name, kind, words in entries}


def parameters(thing) -> dict[str, object]:
    """Each parameter of a constructor or function, with its default."""
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        fields = thing.model_fields.items()
        return {
            name: EMPTY if field.default is PydanticUndefined else field.default for name, field in fields
        }
    if getattr(thing, "_is_protocol", False):
        return {}
    found = [one for one in inspect.signature(thing).parameters.values() if one.name != "self"]
    return {("**" if one.kind is one.VAR_KEYWORD else "") + one.name: one.default for one in found}


PUBLIC = {name: getattr(cosilo, name) for name in cosilo.__all__}
DESCRIBED = {
    name: thing
    for name, thing in PUBLIC.items()
    if inspect.isfunction(thing)
    or (inspect.isclass(thing) and not issubclass(thing, Exception) and thing.__module__.startswith("cosilo"))
} | {"Silos.ask": Silos.ask, "Federation.run": cosilo.Federation.run}


def test_there_is_something_to_look_at():
    assert {"Silo", "Federation", "CoFED", "step", "Training", "Run"} <= set(DESCRIBED)
    assert all(PUBLIC[kind.__name__] is kind for kind in METHODS.values())


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_parameter_is_described(name):
    said, there = described(DESCRIBED[name]), parameters(DESCRIBED[name])
    assert sorted(said) == sorted(there)
    for parameter, default in there.items():
        kind, words = said[parameter]
        assert words.endswith("."), parameter
        _, has, default_said = kind.rpartition("default ")
        assert bool(has) == (default is not EMPTY and not parameter.startswith("**")), parameter
        try:
            literal = ast.literal_eval(default_said)
        except (ValueError, SyntaxError):
            continue  # a call, such as CoFED()
        if not callable(default):
            assert literal == default or (literal == {} and default is not None), parameter


@pytest.mark.parametrize("name", DESCRIBED)
def test_everything_has_an_example_that_runs(name):
    # The examples themselves are run as doctests.
    examples = re.search(r"^Examples\n-{8}\n(.*)", inspect.getdoc(DESCRIBED[name]), re.S | re.M)
    assert examples
    assert ">>> " in examples[1]


@pytest.mark.parametrize("name", METHODS)
def test_an_inherited_parameter_means_the_same(name):
    kind = METHODS[name]
    for base in kind.__mro__[1:]:
        if issubclass(base, Method) and base is not Method:
            for parameter, (_, words) in described(base).items():
                if parameter not in vars(kind).get("__annotations__", {}):  # unless it takes less
                    assert described(kind)[parameter][1] == words


def test_errors_say_what_they_are():
    for thing in PUBLIC.values():
        if inspect.isclass(thing) and issubclass(thing, Exception):
            assert issubclass(thing, CosiloError)
            assert inspect.getdoc(thing) != inspect.getdoc(Exception)


def test_all_names_can_be_imported_at_once():
    done = subprocess.run(
        [sys.executable, "-c", "from cosilo import *; print(Silo, step, LOCAL, CosiloError, Message)"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'cosilo' has no attribute 'Sillo'"):
        cosilo.Sillo  # noqa: B018
    assert set(cosilo.__all__) <= set(dir(cosilo))
