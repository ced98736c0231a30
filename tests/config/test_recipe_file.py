import pytest

from cosilo.config import recipe_file
from cosilo.errors import ConfigError


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("silo.east.label=x", "--set silo.east.label=x: there is no 'east'"),
        ("nonsense", "--set nonsense: wants key=value"),
        ("seed.inner=1", "--set seed.inner=1: 'seed' is 3 and has nothing inside"),
    ],
)
def test_an_override_that_cannot_be_is_one_line(folder, override, line, make):
    with pytest.raises(ConfigError) as error:
        make(folder, overrides=[override])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_dotted_keys_reach_tables_places_and_names():
    values = {"seed": 3, "silo": [{"name": "north"}, {"name": "south"}]}
    recipe_file.put(values, "silo.south.test", 0.5, "here")
    recipe_file.put(values, "silo.0.test", False, "here")
    recipe_file.put(values, "pool.size", 7, "here")
    assert values == {
        "seed": 3,
        "silo": [{"name": "north", "test": False}, {"name": "south", "test": 0.5}],
        "pool": {"size": 7},
    }


def test_what_is_no_recipe_file(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        recipe_file.read(tmp_path / "no.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        recipe_file.read(tmp_path)
    (tmp_path / "half.toml").write_text("seed = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        recipe_file.read(tmp_path / "half.toml")
