"""The checksums of a kit's files, in the kit: FLARE's own files, keys and certificates have none.

```
manifest.json    the SHA-256 of every file in startup and local, of the authority's own files
```

Not listed is what every start writes again, and what has a checksum of its own. It tells damage by
accident: anyone who can change a kit can change the list too.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from cosilo.errors import ConfigError, RunError
from cosilo.runs.durable_files import read_json, write_json

_FILE = "manifest.json"
_FOLDERS = ("startup", "local")
#: Written again at every start, or of a request that was not answered yet, or with a checksum.
_NOT_LISTED = {
    "local/resources.json",
    "local/authorization.json",
    "local/cosilo.json",
    "local/admitted.json",
    "startup/new.key",
}


def write_manifest(kit: Path) -> None:
    """Write the list of a kit as it is now: where it is made, and where something comes into it."""
    files = {name: _digest(kit / name) for name in _names(kit)}
    write_json(kit / _FILE, {"files": files})


def drop_manifest(kit: Path) -> None:
    """Delete the list of a kit whose files are about to change, so that a crash leaves no wrong one."""
    (kit / _FILE).unlink(missing_ok=True)


def adopt_kit(kit: Path) -> None:
    """Write the list of a kit that has none: one that an earlier version made."""
    if not (kit / _FILE).exists():
        write_manifest(kit)


def check_kit(kit: Path, *names: str) -> None:
    """Raise unless the files of a kit, or those of these names, are as they were when it was made.

    A kit without a list is taken as it is.
    """
    path = kit / _FILE
    if not path.exists():
        return
    try:
        files = read_json(path)["files"]
    except RunError:
        raise ConfigError(
            f"{path}: is damaged (its checksum differs); delete it: the next start writes it again"
        ) from None
    for name in names or files:
        if name not in files:
            continue
        what = None
        if not (kit / name).exists():
            what = "is missing"
        elif _digest(kit / name) != files[name]:
            what = "is damaged (its checksum differs)"
        if what is not None:
            raise ConfigError(
                f"{kit / name}: {what}; restore it from a copy, or, if it was changed on purpose, "
                f"delete {path}"
            )


def _names(kit: Path) -> Iterator[str]:
    """The files that are listed, relative to the kit."""
    folders = [kit / folder for folder in _FOLDERS if (kit / folder).is_dir()] or [kit]
    for folder in folders:
        for path in sorted(folder.iterdir()):
            name = path.relative_to(kit).as_posix()
            if path.is_file() and name not in {*_NOT_LISTED, _FILE} and path.suffix != ".part":
                yield name


def _digest(path: Path) -> str:
    # One-way: private keys are among the files.
    return sha256(path.read_bytes()).hexdigest()
