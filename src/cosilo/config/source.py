"""Where settings came from, for paths and for errors."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosilo.errors import ConfigError, DataError, RunError
from cosilo.runs.durable_files import read_json


@dataclass(frozen=True)
class Source:
    """Where settings came from: a name for errors, and the folder that their relative paths start in."""

    name: str
    folder: Path

    def path(self, path: Path) -> Path:
        """A path of the settings as a path of this process."""
        return path if path.is_absolute() else self.folder / path


def read_recipe(folder: Path, otherwise: str) -> tuple[dict[str, Any], Source]:
    """The recipe that a run was started from; `otherwise` is what to do if it was started from Python."""
    path = folder / "recipe.json"
    if not path.exists():
        raise RunError(f"{folder}: was started from Python; {otherwise}")
    recipe = read_json(path)
    if not isinstance(recipe, dict) or not {"source", "folder", "values"} <= set(recipe):
        raise RunError(f"{path}: is damaged; restore it or start a new run")
    return recipe["values"], Source(recipe["source"], Path(recipe["folder"]))


def allow_imports_beside(source: Source) -> None:
    """Let imports find the user's own learners and methods in the folder of the recipe."""
    folder = str(source.folder.resolve())
    if folder not in sys.path:
        sys.path.append(folder)


@contextmanager
def naming_key(key: str) -> Iterator[None]:
    """Put the key in front of an error in the data that it names."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise ConfigError(f"{key}: {error}") from error
