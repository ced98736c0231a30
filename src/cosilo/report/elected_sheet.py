"""A picture of what was elected: a row of images for each class (Fig. 4 of CoFED)."""

import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cosilo.data.instances import Instances
from cosilo.methods.cofed.elections import Outcome
from cosilo.methods.cofed.looking import Look, examples
from cosilo.runs.durable_files import write

_INCH = 0.42


def are_pictures(pool: Instances) -> bool:
    """Whether a pool holds images."""
    return isinstance(pool, np.ndarray) and pool.ndim in (3, 4)


def as_bytes(pixels: NDArray[np.generic]) -> NDArray[np.uint8]:
    """An image as it is shown: height × width, with a third axis if it has colours."""
    values = np.asarray(pixels)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.dtype != np.uint8:
        low, high = float(values.min()), float(values.max())
        values = (values - low) / max(high - low, 1e-12) * 255
    return values.astype(np.uint8)


def write_sheet(path: Path, look: Look, outcome: Outcome, pool: NDArray[np.generic], most: int = 12) -> None:
    """Write the picture, a PNG: some of the images that `outcome` elected to each class."""
    rows = len(look.classes)
    figure = Figure(figsize=((most + 5) * _INCH, rows * _INCH), layout=None, facecolor="white")
    for row, name in enumerate(look.classes):
        figure.text(4.8 / (most + 5), 1 - (row + 0.5) / rows, name, ha="right", va="center", fontsize=8)
        for column, place in enumerate(examples(outcome, look.ballots, row, most)):
            left, bottom = (5 + column) / (most + 5), 1 - (row + 0.96) / rows
            axes = figure.add_axes((left, bottom, 0.95 / (most + 5), 0.92 / rows))
            axes.imshow(as_bytes(pool[place]), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axes.axis("off")
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    write(path, file.getvalue())
