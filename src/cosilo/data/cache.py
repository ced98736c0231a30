"""Arrays that took long to decode, kept in the user's cache and mapped into memory when read back."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.locate import user_cache

SLOW = 3.0
"""Seconds of decoding from which on the result is worth its place on the disk."""


def cached(name: str, source: Path, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """What `make` decodes from `source`, from the cache if the source has not changed since.

    Size and time of change tell whether it has. The array is copy-on-write: changing it changes no file.
    """
    stat = source.stat()
    path = user_cache() / "decoded" / f"{name}-{stat.st_size}-{stat.st_mtime_ns}.npy"
    # A missing, truncated or useless file is not an error: the source still exists.
    with suppress(OSError, ValueError, EOFError):
        return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
    begun = monotonic()
    array = make()
    if monotonic() - begun > SLOW:
        with suppress(OSError):  # a full or read-only disk only costs time at the next load
            _write(path, array)
    return array


def _write(path: Path, array: NDArray[Any]) -> None:
    """Write a temporary file and rename it, so that no reader sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
