"""The real datasets, where $COSILO_DATA has them: sizes, classes, pixels, and CoFED's split."""

import json
from functools import cache

import numpy as np
import pytest

from cosilo.data import by_value, classes, load, superclasses

# Means over all pixels (0 … 255): MNIST 0.1307 and Fashion-MNIST 0.2860 of 255 are in every tutorial, those
# of CIFAR-100 (0.5071, 0.4865, 0.4409 by channel) too. The others were computed once from the files.
IMAGES = [
    ("mnist", "train", (60_000, 28, 28), 33.3184),
    ("mnist", "test", (10_000, 28, 28), 33.7912),
    ("fashion_mnist", "train", (60_000, 28, 28), 72.9404),
    ("fashion_mnist", "test", (10_000, 28, 28), 73.1466),
    ("cifar10", "test", (10_000, 32, 32, 3), 121.5292),
    ("cifar100", "train", (50_000, 32, 32, 3), 121.9361),
    ("cifar100", "test", (10_000, 32, 32, 3), 122.2412),
    ("kannada_mnist", "train", (10_000, 28, 28), 18.5429),
    ("kannada_mnist", "test", (10_240, 28, 28), 28.7255),
]

once = cache(load)


@pytest.mark.parametrize(("name", "split", "shape", "mean"), IMAGES)
def test_pixels(real, name, split, shape, mean):
    real(name)
    data = once(name, split)
    assert data.X.shape == shape
    assert data.X.dtype == np.uint8
    assert data.X.mean() == pytest.approx(mean, abs=1e-3)


def test_classes_of_the_same_size(real):
    real("cifar100")
    data = once("cifar100", "train")
    assert (np.bincount(data.y, minlength=100) == 500).all()
    assert (np.bincount(data.groups["coarse"], minlength=20) == 2500).all()
    test = once("cifar100", "test")
    assert (np.bincount(test.y, minlength=100) == 100).all()
    channels = data.X.mean(axis=(0, 1, 2)) / 255
    assert channels == pytest.approx([0.5071, 0.4865, 0.4409], abs=5e-5)


def test_cifar100_names(real):
    listed = json.loads((real("cifar100") / "labels.json").read_text("utf-8"))
    assert tuple(listed["fine_label"]) == classes.CIFAR100_FINE
    assert tuple(listed["coarse_label"]) == classes.CIFAR100_COARSE
    data = once("cifar100", "train")
    pairs = set(zip(data.y.tolist(), data.groups["coarse"].tolist(), strict=True))
    assert pairs == set(enumerate(listed["fine_to_coarse"]))


@pytest.mark.parametrize("subclasses", [None, (1, 2)])
def test_cofeds_split(real, subclasses):
    real("cifar100")
    data = once("cifar100", "train")
    fine, coarse = data.groups["fine"], data.groups["coarse"]
    for seed in range(10):
        split = superclasses(fine, coarse, subclasses=subclasses, seed=seed)
        everything = np.concatenate(split.parts)
        assert len(split) == 100
        assert len(np.unique(everything)) == len(everything)
        assert set(np.unique(split.counts(coarse, 20))) == {0, 50}
        by_fine = split.counts(fine, 100)
        assert set(np.unique(by_fine)) == ({0, 10} if subclasses is None else {0, 25, 50})
        for part, task in zip(split.parts, split.tasks, strict=True):
            assert 6 <= len(task) <= 8
            assert set(coarse[part].tolist()) == set(task)
        assert ((split.counts(coarse, 20) > 0).sum(axis=0) >= 2).all()


def test_cifar10_names(real):
    listed = json.loads((real("cifar10") / "labels.json").read_text("utf-8"))
    assert tuple(listed["label"]) == classes.CIFAR10
    assert (np.bincount(once("cifar10", "test").y) == 1000).all()


def test_adult(real):
    real("adult")
    train, test = once("adult", "train"), once("adult", "test")
    assert train.X.shape == (32_561, 14)
    assert test.X.shape == (16_281, 14)
    assert np.bincount(train.y).tolist() == [24_720, 7_841]
    assert np.bincount(test.y).tolist() == [12_435, 3_846]
    assert (train.X["workclass"] == "?").sum() == 1836
    assert list(train.X.dtypes) == list(test.X.dtypes)
    assert not train.X.isna().to_numpy().any()
    assert train.X["age"].mean() == pytest.approx(38.5816, abs=1e-4)


def test_dbpedia(real):
    folder = real("dbpedia")
    assert tuple((folder / "classes.txt").read_text("utf-8").split()) == classes.DBPEDIA
    data = once("dbpedia", "test")
    assert set(data.y.tolist()) == set(range(14))
    assert all(text and text == text.strip() for text in data.X)
    village = data.X[data.y == data.classes.index("Village")]
    assert np.mean(["village" in text for text in village]) > 0.5


def test_femnist_by_writer(real):
    real("femnist_digits")
    train, test = once("femnist_digits", "train"), once("femnist_digits", "test")
    assert len(train) + len(test) == 5997
    split = by_value(train.groups["client"], train.y)
    assert len(split) == 12
    whole = np.bincount(train.groups["client"]) + np.bincount(test.groups["client"])
    assert [len(part) for part in split.parts] == [round(0.4 * n) for n in whole]


def test_tinted_clothes(real):
    real("fashion_mnist")
    grey, tinted = once("fashion_mnist", "test"), load("tinted_fashion", "test")
    assert tinted.X.shape == (10_000, 32, 32, 3)
    assert (tinted.y == grey.y).all()
    # Every image is a straight line between two colours: black is the frame's, white the other.
    for place in (0, 17):
        image, shade = tinted.X[place].astype(float), np.pad(grey.X[place], 2).astype(float) / 255
        dark = image[0, 0]
        light = image[shade == 1].mean(0) if (shade == 1).any() else None
        assert light is not None
        expected = dark + shade[..., np.newaxis] * (light - dark)
        assert np.abs(image - expected).max() <= 1
    assert len(np.unique(tinted.X[:, 0, 0], axis=0)) > 9_900  # colours of its own
    assert (load("tinted_fashion", "test").X == tinted.X).all()
