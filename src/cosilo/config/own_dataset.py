"""Datasets of a recipe: by name, and files of one's own that a simulation cuts silos out of."""

from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cosilo import data
from cosilo.config.settings import SimulationSettings
from cosilo.config.source import Source
from cosilo.config.split_settings import ValueSplit
from cosilo.data.dataset import Dataset, dataset_of
from cosilo.data.datasets import SplitName
from cosilo.data.instances import is_frame
from cosilo.data.labels import in_order
from cosilo.data.stratified import hold_out
from cosilo.errors import DataError

#: The part of one's own data that judges silos, where nothing else does: as large as that of a silo.
_TEST = 0.25


class Columns(Protocol):
    """Settings that say which columns are what."""

    @property
    def label(self) -> str | None:
        """The column with the classes."""

    @property
    def columns(self) -> list[str] | None:
        """The features."""

    @property
    def text(self) -> str | None:
        """The one column of texts."""


def load_dataset(name: str, split: SplitName, settings: Columns, source: Source) -> Dataset:
    """A dataset by name; columns are for those of Hugging Face: a folder, or a name with a slash."""
    folder = source.path(Path(name))
    if "/" not in name and (name in data.DATASETS or not folder.is_dir()):
        return data.load(name, split)
    found = str(folder.resolve()) if folder.is_dir() else name
    return data.load(found, split, settings.label, settings.columns, settings.text)


def own_dataset(
    settings: SimulationSettings, path: Path, seed: int, source: Source
) -> tuple[Dataset, Dataset]:
    """What silos are cut out of, and what judges them: a file of its own, or a quarter of each class."""
    whole, names = _read(settings, source.path(path))
    if settings.test_path is None:
        held, kept = hold_out(whole.y, _TEST, seed)
        return whole.take(kept), whole.take(held)
    test, others = _read(settings, source.path(settings.test_path))
    classes = in_order([*names, *others])  # codes of both
    codes = {one: place for place, one in enumerate(classes)}
    return (
        replace(whole, y=np.array([codes[one] for one in names]), classes=classes),
        replace(test, y=np.array([codes[one] for one in others]), classes=classes),
    )


def _read(settings: SimulationSettings, path: Path) -> tuple[Dataset, NDArray[np.object_]]:
    """A file, and the name of each instance's class; a column that silos are told apart by is no feature."""
    table = data.read(path, settings.label, settings.columns, settings.text)
    if table.y is None:
        raise DataError(f"{path} has no labels; say which column holds them: label")
    X, group = table.X, {}
    if isinstance(settings.split, ValueSplit):
        column = settings.split.column
        beside = data.read(path, settings.label, [column]).X
        if not is_frame(beside):
            raise DataError(f"{path} has no columns, and so no {column!r}")
        group = {column: beside[column].to_numpy()}
        if is_frame(X) and column in X.columns:
            X = X.drop(columns=column)
    found = dataset_of(path.name, X, table.y)
    for name, values in group.items():
        distinct, codes = np.unique(values.astype(str), return_inverse=True)
        found = replace(
            found, groups={name: codes.astype(np.int64)}, group_names={name: tuple(map(str, distinct))}
        )
    return found, table.y
