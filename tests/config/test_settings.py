"""What a recipe has to say, and what it may not."""

import pytest

from cosilo.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "either [[silo]] tables or one [simulation]"),
        ("[[silo]]\nname = 'a'", "recipe.toml: silo.a: wants one of path and dataset"),
        ("silo = 3", "recipe.toml: silo: got 3; wants a list"),
        ("[simulation]\ndataset = 'digits'", "recipe.toml: simulation.split: is missing"),
    ],
)
def test_an_incomplete_recipe(folder, text, line, make):
    with pytest.raises(ConfigError) as error:
        make(folder, text)
    assert line in str(error.value)
