"""Datasets of the Hugging Face library `datasets`: on disk, and by the names that `load_dataset` takes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosilo.data.dataset import Dataset, dataset_of
from cosilo.data.extra import import_extra
from cosilo.data.frames import split_dataset
from cosilo.data.instances import as_instances
from cosilo.data.label_columns import as_names
from cosilo.errors import DataError
from cosilo.text import cause, listing


def is_saved(folder: Path) -> bool:
    """Whether a folder is what `save_to_disk` writes."""
    return (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file()


def read_saved(folder: Path, split: str | None = None) -> Any:
    """A dataset that `save_to_disk` wrote; of several splits the one that is named."""
    library = import_extra("datasets", f"reading {folder}")
    try:
        found = library.load_from_disk(str(folder))
    except Exception as error:
        raise DataError(f"{folder}: cannot be read as a saved dataset ({cause(error)})") from error
    if not hasattr(found, "column_names") or isinstance(found, dict):
        if split is None:
            raise DataError(f"{folder}: has the splits {listing(found)}; wants the folder of one of them")
        if split not in found:
            raise DataError(f"{folder}: has no split {split!r}; it has {listing(found)}")
        found = found[split]
    elif split is not None:  # else what is learnt from would be what judges
        raise DataError(f"{folder}: is one dataset without splits, and {split!r} is wanted; name it by path")
    return found


def load_named(
    name: str,
    split: str,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
) -> Dataset:
    """A dataset by a name that `datasets.load_dataset` takes ("stanfordnlp/imdb"), or a folder's path."""
    where = f"dataset {name!r}"
    folder = Path(name)
    if folder.is_dir() and is_saved(folder):
        found = read_saved(folder, split)
    else:
        library = import_extra("datasets", f"loading {name}")
        try:
            found = library.load_dataset(name, split=split)
        except Exception as error:
            raise DataError(f"{where}: cannot be loaded ({type(error).__name__}: {cause(error)})") from error
    X, y = split_dataset(found, where, label, columns, text)
    if y is None:
        raise DataError(f"{where}: which column has the classes? name it as label")
    return dataset_of(name, as_instances(X, where), as_names(y, where))
