"""Where settings came from."""

import sys
from pathlib import Path

import pytest

from cosilo.config.source import Source, allow_imports_beside, naming_key, read_recipe
from cosilo.errors import ConfigError, DataError, RunError
from cosilo.runs.durable_files import write_json


def test_relative_paths_start_in_the_folder_of_the_recipe():
    source = Source("r.toml", Path("/data"))
    assert source.path(Path("north.csv")) == Path("/data/north.csv")
    assert source.path(Path("/other/north.csv")) == Path("/other/north.csv")


def test_a_runs_recipe_is_read_back_or_one_line_says_why_not(tmp_path):
    with pytest.raises(RunError, match="was started from Python; do this instead"):
        read_recipe(tmp_path, "do this instead")
    write_json(tmp_path / "recipe.json", {"source": "r.toml"})
    with pytest.raises(RunError, match=r"recipe\.json: is damaged"):
        read_recipe(tmp_path, "")
    write_json(tmp_path / "recipe.json", {"source": "r.toml", "folder": "/data", "values": {"seed": 1}})
    assert read_recipe(tmp_path, "") == ({"seed": 1}, Source("r.toml", Path("/data")))


def test_imports_are_found_beside_the_recipe_and_after_all_others(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = list(sys.path)
    for _ in range(2):
        allow_imports_beside(Source("r.toml", tmp_path))
    assert sys.path == [*before, str(tmp_path.resolve())]


@pytest.mark.parametrize("kind", [ConfigError, DataError])
def test_an_error_is_told_with_its_key(kind):
    with pytest.raises(ConfigError, match=r"^silo\.0\.path: is not there"), naming_key("silo.0.path"):
        raise kind("is not there")
