"""The file formats of the named datasets: idx, Parquet with images, npz, UCI's Adult, DBpedia's csv."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.data.extra import import_extra
from cosilo.data.images import decode
from cosilo.errors import DataError
from cosilo.progress import bar
from cosilo.text import cause, listing

if TYPE_CHECKING:
    import pandas as pd

#: Rows of a table that are read at once.
_ROWS = 1 << 16

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An array of bytes in MNIST's idx format, gzipped or not."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({cause(error)}); download it again") from error
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise DataError(f"{path}: is not an idx file of bytes (starts with {raw[:4].hex()}, wants 000008..)")
    axes = raw[3]
    shape = tuple(int(n) for n in np.frombuffer(raw[4 : 4 + 4 * axes], dtype=">u4"))
    found, wanted = len(raw) - 4 - 4 * axes, int(np.prod(shape, dtype=np.int64))
    if found != wanted:
        raise DataError(f"{path}: holds {found} bytes of data, its header says {wanted}; download it again")
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape).copy()


def open_parquet(path: Path) -> Any:
    """A pyarrow ParquetFile."""
    parquet = import_extra("pyarrow.parquet", "reading Parquet")
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise DataError(f"{path}: cannot be read as Parquet ({cause(error)})") from error


def pick_column(path: Path, names: tuple[str, ...], there: list[str]) -> str:
    """The one of `names` that the file has: repositories call the same column `img` or `image`."""
    for name in names:
        if name in there:
            return name
    raise DataError(f"{path}: has the columns {listing(there)}; wants {' or '.join(names)}")


def read_columns(path: Path, *columns: tuple[str, ...]) -> list[NDArray[Any]]:
    """Plain columns of a Parquet file; each is given as the names it may have."""
    with open_parquet(path) as file:
        names = [pick_column(path, column, file.schema_arrow.names) for column in columns]
        table = file.read(columns=names)
    return [table.column(name).to_numpy() for name in names]


def read_table(file: Any, columns: Sequence[str]) -> "pd.DataFrame":
    """Columns of an open Parquet file; where they are larger than memory may be, numbers are put on disk."""
    import pandas as pd

    rows, kinds = file.metadata.num_rows, _whole_numbers(file, columns)
    if not mapped.is_large(*(rows * kind.itemsize for kind in kinds.values())):
        return pd.DataFrame(file.read(columns=list(columns)).to_pandas(ignore_metadata=True))
    numbers = {name: mapped.empty(rows, kind, large=True) for name, kind in kinds.items()}
    start = 0
    for batch in file.iter_batches(_ROWS, columns=list(numbers)):
        for name, array in numbers.items():
            array[start : start + len(batch)] = batch.column(name).to_numpy(zero_copy_only=False)
        start += len(batch)
    others = [name for name in columns if name not in numbers]
    rest = file.read(columns=others).to_pandas(ignore_metadata=True) if others else {}
    return pd.DataFrame({name: numbers.get(name, rest.get(name)) for name in columns}, copy=False)


def _whole_numbers(file: Any, columns: Sequence[str]) -> dict[str, np.dtype[Any]]:
    """The columns that are read as an array of one kind of number: those of integers if none is missing."""
    found = {}
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    places = {groups[0].column(i).path_in_schema: i for i in range(groups[0].num_columns)} if groups else {}
    types = import_extra("pyarrow.types", "reading Parquet")
    for name in columns:
        kind = file.schema_arrow.field(name).type
        told = [group.column(places[name]).statistics for group in groups] if types.is_integer(kind) else []
        complete = all(one is not None and one.has_null_count and one.null_count == 0 for one in told)
        if types.is_floating(kind) or (types.is_integer(kind) and complete):
            found[name] = np.dtype(kind.to_pandas_dtype())
    return found


def read_images(path: Path, mode: str, title: str) -> NDArray[np.uint8]:
    """The image column (struct of `bytes` and `path`, as on the Hugging Face hub), decoded."""
    with open_parquet(path) as file:
        column = pick_column(path, ("img", "image"), file.schema_arrow.names)

        def blobs() -> Iterator[bytes]:
            row = 0
            for batch in file.iter_batches(batch_size=2048, columns=[column]):
                for blob in batch.column(0).field("bytes").to_pylist():
                    if blob is None:
                        raise DataError(f"{path}: row {row} of column {column!r} has no image bytes")
                    yield blob
                    row += 1

        return decode(blobs(), file.metadata.num_rows, mode, lambda i: f"{path}, row {i}", title)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an npz file; arrays of Python objects are refused, because loading them runs code."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise DataError(f"{path}: holds one bare array; wants an npz file with named arrays")
        with loaded:
            names = list(loaded.files)
            arrays = {}
            for name in names:
                try:
                    arrays[name] = loaded[name]
                except ValueError as error:
                    raise DataError(
                        f"{path}: array {name!r} cannot be loaded ({cause(error)}); "
                        f"save numbers or strings (dtype U), not Python objects"
                    ) from error
            return arrays
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: cannot be read as npz ({cause(error)})") from error


def pick_array(path: Path, arrays: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """The array called `name`, or an error that lists the arrays of the file."""
    if name not in arrays:
        there = f"the arrays {listing(arrays)}" if arrays else "no arrays"
        raise DataError(f"{path}: has {there}; wants {name!r}")
    return arrays[name]


def read_adult(path: Path) -> "tuple[pd.DataFrame, NDArray[np.object_]]":
    """UCI's Adult file: the columns, and the labels without the dot that those of the test file end in.

    A missing value stays what the file has for it, the category "?".
    """
    import pandas as pd

    try:
        frame = pd.read_csv(
            path,
            header=None,
            names=[*ADULT_COLUMNS, "income"],
            index_col=False,
            comment="|",  # the first line of adult.test is a remark
            skipinitialspace=True,
        )
    except (OSError, ValueError) as error:  # pandas' parser errors are ValueErrors
        raise DataError(f"{path}: cannot be read as UCI's Adult file ({cause(error)})") from error
    labels = frame.pop("income").astype(str).str.strip().str.rstrip(".").to_numpy(dtype=object)
    return frame, labels


def read_dbpedia(path: Path, title: str) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """DBpedia's csv (class from 1, title, text): codes from 0, and the texts."""
    import pandas as pd

    frames = []
    try:
        with (
            bar(title, None) as advance,
            pd.read_csv(
                path, header=None, names=["class", "title", "text"], keep_default_na=False, chunksize=20_000
            ) as reader,
        ):
            for frame in reader:
                frames.append(frame)
                advance(len(frame))
        whole = pd.concat(frames, ignore_index=True)
        codes = whole["class"].to_numpy(dtype=np.int64) - 1
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as csv of class, title, text ({cause(error)})") from error
    return codes, join_texts(whole["title"].to_numpy(), whole["text"].to_numpy())


def join_texts(titles: NDArray[Any], texts: NDArray[Any]) -> NDArray[np.object_]:
    """Title and text of each document in one string, without space around it."""
    result = np.empty(len(titles), dtype=object)
    result[:] = [f"{title.strip()} {text.strip()}".strip() for title, text in zip(titles, texts, strict=True)]
    return result
