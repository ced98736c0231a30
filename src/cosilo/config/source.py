"""Where settings came from, for paths and for errors."""

import inspect
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


#: The folders of recipes and silos' files so far, whose modules are their owners' own code.
_OWN: set[Path] = set()


def allow_imports_beside(source: Source) -> None:
    """Let imports find the user's own learners and methods in the folder of the recipe."""
    folder = source.folder.resolve()
    _OWN.add(folder)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def is_own_function(thing: object) -> bool:
    """Whether something is a function that is written in a file beside the recipe, not installed there."""
    if not inspect.isfunction(thing):
        return False
    file = Path(inspect.getfile(thing)).resolve()
    beside = [file.relative_to(folder) for folder in _OWN if file.is_relative_to(folder)]
    return any(not {"site-packages", "dist-packages"} & set(path.parts) for path in beside)


@contextmanager
def naming_key(key: str) -> Iterator[None]:
    """Put the key in front of an error in the data that it names."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise ConfigError(f"{key}: {error}") from error
