"""The values in a recipe file, and what is put into them by dotted keys."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosilo.errors import ConfigError
from cosilo.text import cause, guess, listing, near_file


def read(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The values in a recipe file, with `a.b=c` overrides applied."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{near_file(path)}") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; wants a recipe file (TOML)") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not in UTF-8 (byte {error.start + 1}); save it in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({cause(error)})") from None
    for override in overrides:
        _override(values, override)
    return values


def _override(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: wants key=value, such as method.alpha=0.5")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string
    put(values, key.strip(), value, f"--set {override}")


def put(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a dotted key of a recipe; `where` begins the line about a mistake."""
    *parents, last = key.split(".")
    here: Any = values
    for parent in parents:
        here = _inside(here, parent, where)
    if isinstance(here, list):
        _inside(here, last, where)
        here[int(last)] = value
    else:
        here[last] = value


def _inside(here: Any, key: str, where: str) -> Any:
    if isinstance(here, dict):
        inner = here.setdefault(key, {})
    elif isinstance(here, list):
        named = [item for item in here if isinstance(item, dict) and item.get("name") == key]
        places = [str(place) for place in range(len(here))]
        if not named and key not in places:
            there = [str(i["name"]) for i in here if isinstance(i, dict) and "name" in i] or places
            raise ConfigError(f"{where}: there is no {key!r}{guess(key, there)}; wants {listing(there)}")
        inner = named[0] if named else here[int(key)]
    else:
        inner = here
    if not isinstance(inner, dict | list):
        raise ConfigError(f"{where}: {key!r} is {inner!r} and has nothing inside to set")
    return inner
