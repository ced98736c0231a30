"""Encoded images to arrays of bytes."""

import numpy as np
import pytest

from cosilo.data import images
from cosilo.data.images import COLOUR, GREY, decode
from cosilo.errors import DataError

PICTURES = [np.arange(18, dtype=np.uint8).reshape(2, 3, 3) + place for place in range(5)]


def decoded(blobs, mode=COLOUR, count=None):
    return decode(blobs, len(blobs) if count is None else count, mode, lambda i: f"image {i}", "some images")


@pytest.mark.parametrize("large", [False, True])
def test_they_come_out_as_they_went_in_whatever_their_formats(png, monkeypatch, large):
    if large:
        monkeypatch.setattr(images, "_LARGE", 1)  # with threads
    monkeypatch.setattr(images, "_CHUNK", 2)
    blobs = [png(picture, "BMP" if place == 3 else "PNG") for place, picture in enumerate(PICTURES)]
    np.testing.assert_array_equal(decoded(blobs), PICTURES)


def test_grey_has_no_channels(png):
    grey = PICTURES[0][:, :, 0]
    assert decoded([png(grey)], GREY)[0].tolist() == grey.tolist()
    assert decoded([png(grey)], COLOUR).shape == (1, 2, 3, 3)


def test_the_image_that_does_not_fit_is_named(png):
    with pytest.raises(
        DataError, match="image 1: is 3 × 1 pixels, the images before it are 3 × 2; wants one"
    ):
        decoded([png(PICTURES[0]), png(PICTURES[0][:1])])
    with pytest.raises(DataError, match="image 1: cannot be decoded as an image"):
        decoded([png(PICTURES[0]), b"nonsense"])
    with pytest.raises(DataError, match=r"image 0: .* wants 8 bits per channel"):
        decoded([png(np.zeros((2, 2), np.uint16))])
    with pytest.raises(DataError, match="some images: there are no images"):
        decoded([])
