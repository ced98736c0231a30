"""A dataset: instances with class codes, the names of the classes, and further columns to split by."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, form, take
from cosilo.data.labels import in_order
from cosilo.errors import DataError
from cosilo.text import guess, listing


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Instances `X` and their class codes `y`, which index `classes`.

    `groups` holds further codes per instance, such as the writer of a digit or the superclass of an image;
    `group_names` holds what they stand for.

    >>> data = Dataset("toy", np.zeros((3, 2)), np.array([0, 1, 1]), ("cat", "dog"),
    ...                groups={"place": np.array([0, 0, 1])}, group_names={"place": ("Oslo", "Rome")})
    >>> data
    Dataset('toy': 3 instances, numbers of shape (2,), 2 classes)
    >>> data.relabel("place").classes
    ('Oslo', 'Rome')
    """

    name: str
    X: Instances
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    groups: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    group_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, codes, names in (
            ("labels", self.y, self.classes),
            *((f"{group} codes", codes, self.group_names[group]) for group, codes in self.groups.items()),
        ):
            if len(codes) != len(self.X):
                raise DataError(f"dataset {self.name!r}: {len(self.X)} instances, but {len(codes)} {what}")
            if len(codes) and not (codes.min() >= 0 and codes.max() < len(names)):
                raise DataError(
                    f"dataset {self.name!r}: {what} from {codes.min()} to {codes.max()}; "
                    f"wants 0 to {len(names) - 1}"
                )

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}: {len(self)} instances, {form(self.X)}, "
            f"{len(self.classes)} class{'' if len(self.classes) == 1 else 'es'})"
        )

    def relabel(self, group: str) -> "Dataset":
        """The same instances with the codes and names of `group` as labels, e.g. "coarse" for CIFAR-100.

        The groups stay, so that a way back is `relabel("fine")`.
        """
        if group not in self.groups:
            raise DataError(
                f"dataset {self.name!r}: no group {group!r}{guess(group, list(self.groups))}; "
                f"it has {listing(self.groups) or 'none'}"
            )
        return replace(self, y=self.groups[group], classes=self.group_names[group])

    def take(self, index: NDArray[np.integer[Any]] | slice) -> "Dataset":
        """The instances at `index`, with their labels and groups."""
        groups = {group: codes[index] for group, codes in self.groups.items()}
        return replace(self, X=take(self.X, index), y=self.y[index], groups=groups)


def dataset_of(name: str, X: Instances, y: NDArray[np.object_]) -> Dataset:
    """A dataset from instances and the names of their classes; codes are in the natural order of these.

    >>> dataset_of("toy", np.zeros((2, 1)), np.array(["dog", "cat"], dtype=object)).y
    array([1, 0])
    """
    classes = in_order(map(str, y))
    codes = {one: place for place, one in enumerate(classes)}
    return Dataset(name, X, np.array([codes[str(one)] for one in y], dtype=np.int64), classes)
