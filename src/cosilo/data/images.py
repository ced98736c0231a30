"""Encoded images (PNG, JPEG, WebP …) to arrays of bytes."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import mapped
from cosilo.data.extra import import_extra
from cosilo.errors import DataError
from cosilo.progress import bar
from cosilo.text import cause

GREY, COLOUR = "L", "RGB"

_LARGE = 128 * 128
"""Pixels from which on threads pay. For 32 × 32 pixels two threads were measured slower than one: most of
the time goes into the interpreter, which they share."""

_CHUNK = 256


def open_image(pillow: Any, blob: bytes, likely: list[str] | None = None) -> Any:
    """A Pillow image, decoded; the `likely` formats are tried first, which is faster."""
    try:
        image = pillow.open(BytesIO(blob), formats=likely)
    except pillow.UnidentifiedImageError:
        if likely is None:
            raise
        image = pillow.open(BytesIO(blob))
    image.load()
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"it has pixels of mode {image.mode}, wants 8 bits per channel")
    return image


def is_colour(image: Any) -> bool:
    """Whether a Pillow image has more than shades of grey."""
    return image.mode not in {"1", "L", "LA", "La"}


def pixels(image: Any, mode: str) -> NDArray[np.uint8]:
    """The pixels of a Pillow image: (h, w) for GREY, (h, w, 3) for COLOUR; transparency is dropped."""
    if image.mode != mode:
        image = image.convert(mode)
    shape = (image.height, image.width) if mode == GREY else (image.height, image.width, 3)
    return np.frombuffer(image.tobytes(), dtype=np.uint8).reshape(shape)


def decode(
    blobs: Iterable[bytes], count: int, mode: str, name: Callable[[int], str], title: str
) -> NDArray[np.uint8]:
    """Decode `count` images of one size; `name(i)` is what an error calls the i-th."""
    pillow = import_extra("PIL.Image", "decoding images")
    stream = iter(blobs)
    first = next(stream, None)
    if first is None:
        raise DataError(f"{title}: there are no images")
    likely: list[str] | None = None

    def image(index: int, blob: bytes) -> NDArray[np.uint8]:
        nonlocal likely
        try:
            decoded = open_image(pillow, blob, likely)
        except Exception as error:  # each format's decoder raises its own errors on damaged bytes
            raise DataError(f"{name(index)}: cannot be decoded as an image ({cause(error)})") from error
        likely = [decoded.format]
        return pixels(decoded, mode)

    start = image(0, first)
    result = mapped.empty((count, *start.shape), np.uint8)
    result[0] = start

    def one(job: tuple[int, bytes]) -> None:
        index, blob = job
        further = image(index, blob)
        if further.shape != start.shape:
            raise DataError(
                f"{name(index)}: is {further.shape[1]} × {further.shape[0]} pixels, the images before it are "
                f"{start.shape[1]} × {start.shape[0]}; wants one size for all"
            )
        result[index] = further

    jobs = enumerate(stream, start=1)
    with bar(title, count) as advance:
        if start.shape[0] * start.shape[1] < _LARGE:
            for chunk in _chunks(jobs):
                for job in chunk:
                    one(job)
                advance(len(chunk))
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for chunk in _chunks(jobs):  # by chunks, so that not all blobs are in memory at once
                    list(pool.map(one, chunk))
                    advance(len(chunk))
    return result


def _chunks(jobs: Iterator[tuple[int, bytes]]) -> Iterator[Sequence[tuple[int, bytes]]]:
    while chunk := list(islice(jobs, _CHUNK)):
        yield chunk
