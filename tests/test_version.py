"""Which cosilo this is."""

import tomllib
from pathlib import Path

import cosilo


def test_it_is_the_version_of_the_package():
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert cosilo.__version__ == project["version"]
