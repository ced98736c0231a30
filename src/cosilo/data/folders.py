"""A folder of images: one subfolder per class, or images alone."""

from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosilo.data.extra import import_extra
from cosilo.data.images import COLOUR, GREY, decode, is_colour
from cosilo.errors import DataError
from cosilo.text import cause

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})


def read_folder(folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.object_] | None]:
    """The images in the order of their names and their classes; without subfolders, no classes."""
    paths, labels = image_files(folder)
    return _read(folder, paths), labels


def image_files(folder: Path) -> tuple[list[Path], NDArray[np.object_] | None]:
    """The files of images in their order, and their classes; other files and hidden ones are skipped."""
    visible = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    classes = [path for path in visible if path.is_dir()]
    loose = _images(visible)
    if classes and loose:
        raise DataError(
            f"{folder}: has images ({loose[0].name} …) beside its {len(classes)} subfolders; "
            f"wants one subfolder per class, or images alone"
        )
    if not classes:
        if not loose:
            raise DataError(f"{folder}: is empty; wants one subfolder of images per class, or images alone")
        return loose, None
    paths, labels = [], []
    for path in classes:
        own = _images(sorted(path.iterdir()))
        if not own:
            raise DataError(f"{path}: holds no images ({', '.join(sorted(SUFFIXES))}); fill or remove it")
        paths += own
        labels += [path.name] * len(own)
    return paths, np.array(labels, dtype=object)


def _images(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")]


def _read(folder: Path, paths: list[Path]) -> NDArray[np.uint8]:
    sizes, colour = _survey(paths)
    (usual, _), *others = Counter(sizes).most_common()
    if others:
        odd = next(i for i, size in enumerate(sizes) if size != usual)
        raise DataError(
            f"{paths[odd]}: is {sizes[odd][0]} × {sizes[odd][1]} pixels, most images in {folder} are "
            f"{usual[0]} × {usual[1]}; wants one size for all"
        )
    blobs = (path.read_bytes() for path in paths)
    mode = COLOUR if colour else GREY
    return decode(blobs, len(paths), mode, lambda i: str(paths[i]), f"reading {folder.name}")


def _survey(paths: list[Path]) -> tuple[list[tuple[int, int]], bool]:
    """The size of each image, and whether any has colour: then all become colour. Reads only the headers."""
    pillow = import_extra("PIL.Image", "reading a folder of images")
    sizes, colour = [], False
    for path in paths:
        try:
            with pillow.open(path) as image:
                sizes.append(image.size)
                colour = colour or is_colour(image)
        except (
            OSError,
            ValueError,
            SyntaxError,
        ) as error:  # Pillow's decoders raise these on damaged headers
            raise DataError(f"{path}: cannot be read as an image ({cause(error)})") from error
    return sizes, colour
