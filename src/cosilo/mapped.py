"""Arrays that may be larger than memory: from a size on they lie in a file that goes with the last holder.

The file is in the folder for temporary files (`TMPDIR`), and has no name: a process that is killed leaves
nothing behind.
"""

import math
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: From this many bytes on, an array is on disk.
LARGE = 2**28


def is_large(*bytes_each: int) -> bool:
    """Whether arrays of so many bytes together belong on disk."""
    return sum(bytes_each) >= LARGE


def empty(shape: int | tuple[int, ...], dtype: DTypeLike, large: bool | None = None) -> NDArray[Any]:
    """An array to be filled, in memory or on disk; `large` says where, if its own size should not.

    >>> empty((2, 3), np.int8, large=True).shape
    (2, 3)
    """
    kind, shape = np.dtype(dtype), (shape,) if isinstance(shape, int) else shape
    size = math.prod(shape) * kind.itemsize
    if not (is_large(size) if large is None else large) or not size:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile(prefix="cosilo-") as file:
        file.truncate(size)
        return np.memmap(file, kind, "r+", shape=shape).view(np.ndarray)
