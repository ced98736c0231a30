"""Instances: what a learner learns from, in the three forms cosilo takes.

Numeric arrays (first axis: instances), data frames, and one-dimensional arrays of strings (text). A list of
strings becomes the last. Everything that must know the form is here.
"""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.data.frames import as_known
from cosilo.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

#: Rows that are copied at once.
_ROWS = 1 << 14

Instances: TypeAlias = Union[NDArray[Any], "pd.DataFrame"]


def is_frame(X: object) -> "TypeIs[pd.DataFrame]":
    """Whether X is a data frame. Does not import pandas: whoever has a data frame has imported it.

    >>> is_frame(np.zeros((2, 2)))
    False
    """
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def as_instances(X: Any, where: str) -> Instances:
    """Convert X to one of the forms, or say what is wrong with it; `where` names its owner in the error.

    >>> as_instances(["a text", "another"], "silo 'a'").dtype
    dtype('O')
    """
    X = as_known(X, where)
    if is_frame(X):
        frame = X.reset_index(drop=True)
        endless = [str(column) for column in frame.columns if _is_endless(frame[column])]
        if endless:
            raise DataError(
                f"{where}: column {endless[0]!r} has infinite values; replace them (a missing value is NaN)"
                + (f" (also: {', '.join(map(repr, endless[1:4]))})" if endless[1:] else "")
            )
        return frame
    try:
        array = np.asarray(X)
    except ValueError:
        raise DataError(f"{where}: the instances have different lengths; wants one width for all") from None
    if array.ndim == 0:
        raise DataError(f"{where}: got {type(X).__name__}; wants an array, a data frame or a list of strings")
    if array.dtype.kind in "OU" and array.ndim == 1:
        strange = next((i for i, x in enumerate(array) if not isinstance(x, str)), None)
        if strange is not None:
            raise DataError(f"{where}: instance {strange} is {type(array[strange]).__name__}, wants str")
        return array.astype(object)
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{where}: array of {array.dtype} with shape {array.shape}; wants numbers, or one string each"
        )
    if array.ndim == 1:
        raise DataError(f"{where}: numbers of shape {array.shape}; wants (instances, features)")
    if array.dtype.kind == "f" and array.size and not np.isfinite([array.min(), array.max()]).all():
        endless = np.isinf(array).reshape(len(array), -1).any(axis=1)
        if endless.any():
            bad = int(np.flatnonzero(endless)[0])
            raise DataError(f"{where}: instance {bad} holds infinity; replace it (a missing value is NaN)")
    return array


def _is_endless(column: "pd.Series[Any]") -> bool:
    return column.dtype.kind == "f" and bool(np.isinf(column.to_numpy(dtype=float, na_value=0.0)).any())


def take(X: Instances, index: NDArray[np.integer[Any]] | slice) -> Instances:
    """The instances at `index`; where these are larger than memory may be, they are copied to disk."""
    if is_frame(X):
        return X.iloc[index]
    if isinstance(index, slice) or X.dtype.kind == "O" or not mapped.is_large(len(index) * X[:1].nbytes):
        return X[index]
    found = mapped.empty((len(index), *X.shape[1:]), X.dtype)
    for part in blocks(len(index), _ROWS):
        found[part] = X[index[part]]
    return found


def join(first: Instances, second: Instances) -> Instances:
    """Instances of the same form, one after the other."""
    if is_frame(first) and is_frame(second):
        import pandas as pd

        return pd.concat([first, second[list(first.columns)]], ignore_index=True)
    one, other = np.asarray(first), np.asarray(second)
    if one.dtype.kind == "O" or not mapped.is_large(one.nbytes, other.nbytes):
        return np.concatenate([one, other])
    found = mapped.empty((len(one) + len(other), *one.shape[1:]), np.result_type(one, other))
    return np.concatenate([one, other], out=found)


def form(X: Instances) -> str:
    """The form in words, without the number of instances: equal forms can be learnt from together.

    >>> form(np.zeros((5, 8, 8), dtype=np.uint8)), form(np.array(["a"], dtype=object))
    ('numbers of shape (8, 8)', 'text')
    """
    if is_frame(X):
        return f"columns {', '.join(sorted(map(str, X.columns)))}"
    if X.dtype.kind == "O":
        return "text"
    return f"numbers of shape {X.shape[1:]}"


def describe_form(X: Instances) -> dict[str, Any]:
    """The form as plain values, from which `example` makes instances of the same form.

    >>> describe_form(np.zeros((5, 8, 8), dtype=np.uint8))
    {'shape': [8, 8], 'type': 'uint8'}
    """
    if is_frame(X):
        return {"columns": [[name, str(kind)] for name, kind in X.dtypes.items()]}
    if X.dtype.kind == "O":
        return {"text": True}
    return {"shape": list(X.shape[1:]), "type": str(X.dtype)}


def example(described: dict[str, Any]) -> Instances:
    """No instances at all, of the form that was described.

    >>> example({"shape": [8, 8], "type": "uint8"}).shape
    (0, 8, 8)
    """
    if "columns" in described:
        import pandas as pd

        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in described["columns"]})
    if "text" in described:
        return np.empty(0, dtype=object)
    return np.empty((0, *described["shape"]), dtype=described["type"])


def is_bytes(X: Instances) -> bool:
    """Whether X is bytes, as images are: networks scale these, and no other numbers."""
    return isinstance(X, np.ndarray) and X.dtype == np.uint8


def fingerprint(X: Instances, labels: NDArray[Any] | None = None) -> str:
    """A hash of the content: equal instances in equal order have equal fingerprints, on any machine.

    With labels, other labels are another fingerprint, and so are none.
    """
    digest = hashlib.sha256(form(X).encode())
    if is_frame(X):
        for column in sorted(X.columns, key=str):
            digest.update(str(column).encode() + b"\0")
            _update(digest, X[column].to_numpy())
    else:
        _update(digest, X)
    if labels is not None:
        digest = hashlib.sha256(f"labelled {digest.hexdigest()}".encode())
        _update(digest, labels)
    return digest.hexdigest()[:16]


def digests(X: Instances, labels: NDArray[Any], key: bytes) -> NDArray[np.uint64]:
    """A hash of every instance with its label: it depends on that instance and the key alone.

    >>> first, second = digests(np.zeros((2, 3)), np.array([0, 1]), b"key")
    >>> bool(first == second)
    False
    """

    def one(row: bytes, label: object) -> bytes:
        return hashlib.blake2b(row + b"\0" + str(label).encode(), key=key, digest_size=8).digest()

    rows: Iterable[bytes]
    if is_frame(X):
        rows = (repr(row).encode() for row in X.astype(str).itertuples(index=False, name=None))
    elif X.dtype.kind == "O":
        rows = (str(text).encode() for text in X)
    else:
        rows = (np.ascontiguousarray(row).tobytes() for row in X)
    found = b"".join(one(row, label) for row, label in zip(rows, labels.tolist(), strict=True))
    return np.frombuffer(found, "<u8").astype(np.uint64)


def _update(digest: Any, values: NDArray[Any]) -> None:
    if values.dtype.kind in "biuf":
        little = values.dtype.newbyteorder("<")
        digest.update(f"{little.str}{len(values)}".encode())
        if values.size:  # without instances there are no bytes
            digest.update(np.ascontiguousarray(values, dtype=little).data.cast("B"))
    else:
        for value in values:
            # A missing value is NaN, None or NA, depending on who read it.
            known = isinstance(value, str) or str(value) not in ("None", "nan", "<NA>", "NaT")
            digest.update((str(value) if known else "\0missing").encode() + b"\0")


def blocks(n: int, size: int) -> Sequence[slice]:
    """Slices that cover 0 … n, each at most `size` long."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
