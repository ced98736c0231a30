import os

import numpy as np
import pytest

from cosilo.data import cache, formats, load

IMAGES = [np.full((3, 4, 3), value, dtype=np.uint8) for value in (10, 20)]


@pytest.fixture
def cifar(data_folder, image_parquet, monkeypatch):
    """A small CIFAR-10 whose decoding counts as slow."""
    monkeypatch.setattr(cache, "SLOW", -1.0)
    path = data_folder / "cifar10" / "train.parquet"
    image_parquet(path, "img", IMAGES, label=[0, 1])
    return path


@pytest.fixture
def decoded(tmp_path):
    return lambda: sorted((tmp_path / "cache" / "cosilo" / "decoded").glob("*"))


def test_read_back_without_decoding(cifar, decoded, monkeypatch):
    first = load("cifar10").X
    assert len(decoded()) == 1
    monkeypatch.setattr(formats, "read_images", lambda *_: pytest.fail("decoded again"))
    second = load("cifar10").X
    assert type(second) is np.ndarray
    assert isinstance(second.base, np.memmap)
    assert np.array_equal(first, second)


def test_changing_the_array_changes_no_file(cifar):
    load("cifar10")
    load("cifar10").X[:] = 0
    assert np.array_equal(load("cifar10").X, np.stack(IMAGES))


def test_another_source_is_decoded_again(cifar, image_parquet):
    load("cifar10")
    image_parquet(cifar, "img", IMAGES[::-1], label=[0, 1])
    os.utime(cifar, ns=(1, 1))
    assert np.array_equal(load("cifar10").X, np.stack(IMAGES[::-1]))


@pytest.mark.parametrize("keep", [0, 5, 140])
def test_a_damaged_file_is_decoded_again(cifar, decoded, keep):
    load("cifar10")
    (path,) = decoded()
    path.write_bytes(path.read_bytes()[:keep])
    assert np.array_equal(load("cifar10").X, np.stack(IMAGES))
    assert np.load(path).shape == (2, 3, 4, 3)


def test_fast_decoding_is_not_kept(cifar, decoded, monkeypatch):
    monkeypatch.setattr(cache, "SLOW", 1000.0)
    load("cifar10")
    assert decoded() == []


def test_a_failed_write_leaves_nothing_and_stops_nothing(cifar, decoded, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert np.array_equal(load("cifar10").X, np.stack(IMAGES))
    assert decoded() == []
