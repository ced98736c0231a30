"""Folders of images."""

from pathlib import Path

import numpy as np
import pytest

from cosilo.data import read
from cosilo.errors import DataError


@pytest.fixture
def folder(tmp_path, png):
    def write(**images: np.ndarray) -> Path:
        for place, pixels in images.items():
            path = tmp_path / "images" / (place.replace("__", "/") + ".png")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(pixels))
        return tmp_path / "images"

    return write


def fails(path: Path, words: str, **options: object) -> None:
    """The error is one line that names the file and says so."""
    with pytest.raises(DataError) as error:
        read(path, **options)  # type: ignore[arg-type]
    assert str(error.value).startswith(str(path))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


GREY = np.arange(6, dtype=np.uint8).reshape(2, 3)


COLOUR = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)


class TestFolder:
    def test_classes_are_subfolders(self, folder):
        path = folder(dog__b=COLOUR, dog__a=COLOUR + 1, cat__c=COLOUR + 2)
        (path / "dog" / "notes.txt").touch()
        (path / ".hidden").mkdir()
        (path / "dog" / ".a.png").touch()
        table = read(path)
        assert table.y.tolist() == ["cat", "dog", "dog"]
        assert np.array_equal(table.X, np.stack([COLOUR + 2, COLOUR + 1, COLOUR]))
        assert table.X.dtype == np.uint8

    def test_grey(self, folder):
        table = read(folder(a=GREY, b=GREY + 1))
        assert table.y is None
        assert np.array_equal(table.X, np.stack([GREY, GREY + 1]))

    def test_grey_beside_colour_becomes_colour(self, folder):
        table = read(folder(a=GREY, b=COLOUR))
        assert np.array_equal(table.X[0], np.repeat(GREY[:, :, None], 3, axis=2))
        assert np.array_equal(table.X[1], COLOUR)

    def test_transparency_is_dropped(self, folder):
        clear = np.concatenate([COLOUR, np.full((2, 3, 1), 9, np.uint8)], axis=2)
        assert np.array_equal(read(folder(a=clear)).X[0], COLOUR)

    def test_other_formats(self, folder, png):
        path = folder(a=GREY)
        (path / "b.BMP").write_bytes(png(GREY + 1, "BMP"))
        (path / "c.webp").write_bytes(png(COLOUR, "WEBP"))
        assert read(path).X.shape == (3, 2, 3, 3)

    def test_large_images_in_threads(self, folder):
        noise = np.random.default_rng(0).integers(0, 256, (5, 150, 130, 3), dtype=np.uint8)
        table = read(folder(**{f"n{i}": image for i, image in enumerate(noise)}))
        assert np.array_equal(table.X, noise)

    @pytest.mark.parametrize("odd", ["a", "b", "c"])
    def test_the_odd_image_is_named(self, folder, odd):
        images = {name: GREY.T if name == odd else GREY for name in "abc"}
        path = folder(**images)
        with pytest.raises(DataError) as error:
            read(path)
        assert str(error.value) == (
            f"{path / odd}.png: is 2 × 3 pixels, most images in {path} are 3 × 2; wants one size for all"
        )

    def test_errors(self, folder, tmp_path):
        (tmp_path / "images").mkdir()
        fails(tmp_path / "images", "is empty")
        path = folder(cat__a=GREY)
        fails(path, "is a folder, which has a class in each of its subfolders; leave out label", label="y")
        (path / "dog").mkdir()
        with pytest.raises(DataError, match=r"dog: holds no images \(\.bmp, "):
            read(path)
        fails(folder(loose=GREY), "has images (loose.png …) beside its 2 subfolders")

    @pytest.mark.parametrize("keep", [0, 30, 45])
    def test_a_damaged_image_is_named(self, folder, keep):
        path = folder(a=GREY, b=GREY)
        whole = (path / "b.png").read_bytes()
        (path / "b.png").write_bytes(whole[:keep])
        with pytest.raises(DataError, match=r"b\.png: cannot be (read|decoded) as an image"):
            read(path)

    def test_sixteen_bits_are_refused(self, folder):
        path = folder(a=GREY.astype(np.uint16) * 1000)
        with pytest.raises(DataError, match=r"a\.png: .*wants 8 bits per channel"):
            read(path)
