"""A split: which instances each silo gets, and which classes that makes its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosilo.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Split:
    """The sorted indices of each silo's instances (no index twice) and the class codes of its task.

    `names` are the silos' names where the data gives them, else None.

    >>> split = Split(parts=(np.array([0, 2]), np.array([1])), tasks=((0,), (1,)))
    >>> split.counts(np.array([0, 1, 0]), classes=2)
    array([[2, 0],
           [0, 1]])
    """

    parts: tuple[NDArray[np.int64], ...]
    tasks: tuple[tuple[int, ...], ...]
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.parts)

    def to_frame(self) -> "pd.DataFrame":
        """One row for each silo: how many instances it gets, and the codes of its classes."""
        import pandas as pd

        names = self.names or [str(number) for number in range(1, len(self) + 1)]
        rows = {
            "instances": [len(part) for part in self.parts],
            "classes": [list(task) for task in self.tasks],
        }
        return pd.DataFrame(rows, index=pd.Index(names, name="silo"))

    def _repr_html_(self) -> str:
        """What a notebook shows: that table."""
        found: str = self.to_frame().to_html(escape=True)
        return found

    def counts(self, y: ArrayLike, classes: int) -> NDArray[np.int64]:
        """How many instances of each class (column) each silo (row) has."""
        codes = as_codes(y, "y")
        if len(codes) and codes.max() >= classes:
            raise DataError(f"y: holds the code {codes.max()}, but there are {classes} classes")
        last = max((int(part[-1]) for part in self.parts if len(part)), default=-1)
        if last >= len(codes):
            raise DataError(
                f"y: has {len(codes)} labels, but the split holds index {last}; wants the y split"
            )
        return np.stack([np.bincount(codes[part], minlength=classes) for part in self.parts])

    def plot(self, y: ArrayLike, classes: Sequence[str]) -> "Figure":
        """A bubble for each silo and class; its area is the number of instances.

        >>> split = Split(parts=(np.array([0, 2]), np.array([1])), tasks=((0,), (1,)))
        >>> split.plot(np.array([0, 1, 0]), ["cat", "dog"]).savefig("split.png")  # doctest: +SKIP
        """
        from matplotlib.figure import Figure

        counts = self.counts(y, len(classes))
        silos = len(counts)
        width = float(np.clip(2.5 + 0.3 * silos, 5, 18))
        height = float(np.clip(1.5 + 0.25 * len(classes), 2.5, 16))
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        silo, code = np.nonzero(counts)
        # The largest bubble just fits its cell; the scatter's size is an area in square points.
        cell = 72 * min((width - 2) / silos, (height - 1) / len(classes))
        area = (0.9 * cell) ** 2 * counts[silo, code] / max(int(counts.max()), 1)
        axes.scatter(silo, code, s=area, color="tab:blue", linewidths=0)
        axes.set_xlim(-0.6, silos - 0.4)
        axes.set_ylim(len(classes) - 0.4, -0.6)
        size = float(np.clip(0.6 * 72 * (height - 1) / len(classes), 3, 9))
        axes.set_yticks(range(len(classes)), list(classes), fontsize=size)
        if self.names is not None and silos <= 60:
            axes.set_xticks(range(silos), list(self.names), rotation=90 if silos > 8 else 0)
        else:
            axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("silo")
        axes.set_ylabel("class")
        axes.set_title(f"{silos} silos, {int(counts.sum())} instances; largest bubble {int(counts.max())}")
        return figure


def as_codes(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Class codes as int64, or an error that calls them `name`."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise DataError(
            f"{name}: got {array.dtype} of shape {array.shape}; wants one integer code per instance"
        )
    codes = array.astype(np.int64)
    if not len(codes):
        raise DataError(f"{name}: is empty; wants one class code per instance")
    if codes.min() < 0:
        raise DataError(f"{name}: holds the code {codes.min()}; wants codes from 0")
    return codes


def as_count(value: Any, name: str) -> int:
    """A number of things, at least 1, or an error that calls it `name`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(f"{name}: got {value!r}; wants a whole number of at least 1")
    return int(value)


def as_range(value: Any, name: str) -> tuple[int, int]:
    """A pair (least, most) of numbers of things, or an error that calls it `name`."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise DataError(f"{name}: got {value!r}; wants a pair (least, most)")
    least, most = (as_count(n, name) for n in value)
    if least > most:
        raise DataError(f"{name}: got {value!r}; wants the smaller number first")
    return least, most


def tasks_of(parts: Sequence[NDArray[np.int64]], y: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """The classes that occur in each part."""
    return tuple(tuple(np.unique(y[part]).tolist()) for part in parts)
