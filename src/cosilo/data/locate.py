"""Where the files of a named dataset are: `$COSILO_DATA`, the user's cache, or the Hugging Face hub."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cosilo.data.extra import import_extra
from cosilo.errors import DataError
from cosilo.text import cause

_PATIENCE = 10.0
"""Seconds in which the hub has to show a sign of life."""


@dataclass(frozen=True)
class Hub:
    """A file of a dataset repository on the Hugging Face hub."""

    repo: str
    file: str


def user_cache() -> Path:
    """The folder cosilo may write downloads and decoded arrays to; not created here."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache")).expanduser() / "cosilo"


def folders(name: str) -> tuple[Path, ...]:
    """The folders in which dataset `name` is looked for, in this order."""
    given = os.environ.get("COSILO_DATA")
    return (*((Path(given).expanduser() / name,) if given else ()), user_cache() / name)


def find(name: str, split: str, options: Sequence[tuple[str, ...]], hub: Hub | None) -> tuple[Path, ...]:
    """The files of one split: the first option that lies complete in a folder, else the hub's file.

    An option is a set of files that belong together, such as images and labels.
    """
    for folder in folders(name):
        for option in options:
            paths = tuple(folder / file for file in option)
            if all(path.is_file() for path in paths):
                return paths
    if hub is None:
        raise _absent(name, split, options, "")
    try:
        return (_download(hub),)
    except DataError as error:
        raise _absent(name, split, options, f" and on the Hugging Face hub ({error})") from error


def _download(hub: Hub) -> Path:
    library, utils, constants = (
        import_extra(module, f"the download of {hub.repo}")
        for module in ("huggingface_hub", "huggingface_hub.utils", "huggingface_hub.constants")
    )
    # Earlier downloads are used as they are: no waiting, and the same data every day.
    before = library.try_to_load_from_cache(hub.repo, hub.file, repo_type="dataset")
    if isinstance(before, str):
        return Path(before)
    # The client raises its own errors and those of its HTTP library, which is not the same one in all
    # versions. Whatever it is, the dataset was not found, and the line says why.
    try:
        # Offline, the client would try again for half a minute and print a warning each time.
        utils.get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
    except Exception as error:
        raise DataError(f"{hub.repo}: offline, and not downloaded before") from error
    try:
        return Path(library.hf_hub_download(hub.repo, hub.file, repo_type="dataset"))
    except Exception as error:
        raise DataError(f"{hub.repo}: {cause(error)}") from error


def _absent(name: str, split: str, options: Sequence[tuple[str, ...]], elsewhere: str) -> DataError:
    looked = []
    for folder in folders(name):
        there = [file for option in options for file in option if (folder / file).is_file()]
        looked.append(f"{folder}" + (f" (which has only {', '.join(there)})" if there else ""))
    # The first option is the original form and a short name for the Parquet file comes next; further ones
    # are accepted but would only make the line long.
    wanted = ", or ".join(" and ".join(option) for option in options[:2])
    unset = "" if os.environ.get("COSILO_DATA") else f"; or set COSILO_DATA to the folder that holds {name}/"
    return DataError(
        f"dataset {name!r} ({split}) not found: looked in {', '.join(looked)}{elsewhere}; "
        f"put {wanted} into {folders(name)[0]}{unset}"
    )
