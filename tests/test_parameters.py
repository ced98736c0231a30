"""Parameters of public classes: a mistake in Python is one line, and in settings it has its key there."""

import pytest
from pydantic import BaseModel, ValidationError

from cosilo import Clock, CoFED, ConfigError, Link, Privacy, Training
from cosilo.parameters import Parameters


class Bell(Parameters):
    rings: int = 3
    tune: tuple[float, float] | float = 440.0


class Church(BaseModel):
    bell: Bell


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"rings": "often"}, "Bell.rings: got 'often'; wants a whole number"),
        ({"ring": 3}, "Bell.ring: there is no such parameter (did you mean 'rings'?); wants rings, tune"),
        ({"tune": "low"}, "Bell.tune: got 'low'; wants a pair of numbers or a number"),
    ],
)
def test_one_line_that_names_class_and_parameter(given, line):
    with pytest.raises(ConfigError) as error:
        Bell(**given)
    assert str(error.value) == line


def test_two_mistakes_are_two_lines():
    with pytest.raises(ConfigError) as error:
        Bell(rings="a", ring=1)
    assert len(str(error.value).splitlines()) == 2


def test_parameters_have_names():
    with pytest.raises(ConfigError, match="Bell: wants its parameters by name"):
        Bell(3)


def test_inside_settings_the_mistake_is_one_of_the_settings():
    with pytest.raises(ValidationError) as error:
        Church.model_validate({"bell": {"rings": "often"}})
    assert error.value.errors()[0]["loc"] == ("bell", "rings")


@pytest.mark.parametrize("kind", [CoFED, Clock, Link, Privacy, Training])
def test_what_users_make_is_explained(kind):
    with pytest.raises(ConfigError, match=f"{kind.__name__}.nonsense: there is no such parameter"):
        kind(nonsense=1)
