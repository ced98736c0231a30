"""Tables of other libraries as cosilo's own forms: polars, Arrow, and datasets of Hugging Face."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.feature_columns import features
from cosilo.errors import DataError
from cosilo.text import guess, listing


def library_of(thing: object) -> str:
    """The package that a thing's class comes from.

    >>> library_of(np.zeros(2))
    'numpy'
    """
    return type(thing).__module__.partition(".")[0]


def as_known(X: Any, where: str) -> Any:
    """Tables of polars and Arrow as data frames, and Hugging Face's as what their columns are.

    A dataset with one column of texts or images becomes these; whatever is known already stays as it is.
    """
    library = library_of(X)
    if library == "datasets" and hasattr(X, "column_names"):
        one_split(X, where)
        return columns_of_dataset(X, list(X.column_names), where)
    if library == "polars" and hasattr(X, "collect"):
        X = X.collect()  # a LazyFrame
    if library in ("polars", "pyarrow"):
        if hasattr(X, "columns"):
            return X.to_pandas()
        return np.asarray(X.to_numpy() if library == "polars" else X.to_pandas())  # one column
    return X


# ---------------------------------------------------------------------- Hugging Face


def one_split(found: Any, where: str) -> None:
    """Raise if these are several splits, as `load_dataset` returns them if none is named."""
    if isinstance(found, dict):
        raise DataError(
            f"{where}: has the splits {listing(found)}; wants one of them: dataset[{next(iter(found), '')!r}]"
        )


def split_dataset(
    found: Any,
    where: str,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
) -> tuple[Any, NDArray[np.object_] | None]:
    """The instances of a Hugging Face dataset, and the name of each one's class.

    `label` names the column with the classes; without it that is the only one of the type ClassLabel. The
    features are `columns`, the one of `text`, or all others; one column of texts or images becomes these.
    """
    one_split(found, where)
    there = list(found.column_names)
    if label is None:
        typed = [name for name, kind in found.features.items() if type(kind).__name__ == "ClassLabel"]
        label = typed[0] if len(typed) == 1 else None
    wanted = [text] if text is not None else features(there, label, columns)
    for name in [*wanted, *([] if label is None else [label])]:
        if name not in there:
            raise DataError(
                f"{where}: no column {name!r}{guess(name, there)}; it has {listing(map(repr, there))}"
            )
    y = None
    if label is not None:
        values = found[label][:]
        names = getattr(found.features[label], "names", None)
        y = np.array([names[v] if names and v is not None and v >= 0 else v for v in values], dtype=object)
    return columns_of_dataset(found, wanted, where), y


def columns_of_dataset(found: Any, columns: Sequence[str], where: str) -> Any:
    """Some columns: an array of texts, an array of images, or a data frame."""
    kinds = {name: type(found.features[name]).__name__ for name in columns}
    if len(columns) == 1 and kinds[columns[0]] == "Image":
        return _images(found[columns[0]], where)
    types = [getattr(found.features[name], "dtype", "") for name in columns]
    if len(columns) == 1 and types[0] in ("string", "large_string"):
        return np.array(found[columns[0]][:], dtype=object)
    nested = [name for name in columns if kinds[name] not in ("Value", "ClassLabel")]
    if nested:
        if len(columns) == 1:
            return np.asarray(found.with_format("numpy")[columns[0]][:])  # rows of numbers
        raise DataError(
            f"{where}: column {nested[0]!r} is of type {kinds[nested[0]]}; wants numbers and texts, or one "
            "column of texts, images or lists: name the columns to read"
        )
    return found.select_columns(list(columns)).to_pandas()


def _images(pictures: Any, where: str) -> NDArray[np.uint8]:
    """Grey if all are, else in colour; all of one size."""
    pictures = list(pictures)
    mode = "L" if all(picture.mode in ("L", "1") for picture in pictures) else "RGB"
    arrays = [np.asarray(picture.convert(mode), dtype=np.uint8) for picture in pictures]
    sizes = {array.shape for array in arrays}
    if len(sizes) > 1:
        raise DataError(f"{where}: images of {len(sizes)} sizes; wants one size for all")
    return np.stack(arrays)
