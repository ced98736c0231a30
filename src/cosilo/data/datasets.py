"""Datasets by name: `load("cifar100")`.

Files are looked for in `$COSILO_DATA/<name>/`, then in the user's cache (`$XDG_CACHE_HOME` or `~/.cache`,
`cosilo/<name>/`), then downloaded from the Hugging Face hub where it has the dataset. `digits` comes with
scikit-learn and is always available.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.data import classes as known
from cosilo.data import formats
from cosilo.data.cache import cached
from cosilo.data.dataset import Dataset
from cosilo.data.huggingface import load_named
from cosilo.data.images import COLOUR, GREY
from cosilo.data.instances import blocks
from cosilo.data.locate import Hub, find
from cosilo.errors import DataError
from cosilo.text import cause, guess, listing

SplitName: TypeAlias = Literal["train", "test"]

_SEED = 20_210_401
"""Fixes the splits that a dataset does not bring itself; another value would be another dataset."""


def load(
    name: str,
    split: SplitName = "train",
    label: str | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
) -> Dataset:
    """One split of a named dataset; `DATASETS` lists the names.

    A name with a slash is one that `load_dataset` of Hugging Face's `datasets` takes, such as
    "stanfordnlp/imdb", or a folder that `save_to_disk` wrote. Only for these: `label`, `columns` and `text`
    name the columns to read.

    - digits: float (n, 64), 10 classes; scikit-learn's, shuffled once, first 1,297 train, last 500 test.
    - mnist, fashion_mnist: uint8 (n, 28, 28), 10 classes; idx.gz, or the hub's Parquet.
    - tinted_fashion: uint8 (n, 32, 32, 3), 10 classes; fashion_mnist, each image in colours of its own.
    - cifar10: uint8 (n, 32, 32, 3), 10 classes; the hub's Parquet.
    - cifar100: uint8 (n, 32, 32, 3), 100 classes, groups `fine` and `coarse`; the hub's Parquet.
    - adult: data frame with 14 columns, 2 classes; UCI's adult.data and adult.test, where "?" is a category.
    - dbpedia: strings, 14 classes; csv, or the hub's Parquet; title and text in one string.
    - femnist_digits: uint8 (n, 28, 28), 10 classes, group `client`; one npz, of each client 40 % are train.
    - kannada_mnist: uint8 (n, 28, 28), 10 classes; npz, train is its test set, test is Dig-MNIST.

    >>> load("digits", "test")
    Dataset('digits': 500 instances, numbers of shape (64,), 10 classes)
    """
    if "/" in name:
        return load_named(name, split, label, columns, text)
    given = [key for key, value in {"label": label, "columns": columns, "text": text}.items() if value]
    if given:
        raise DataError(f"dataset {name!r}: knows its own columns; leave out {', '.join(given)}")
    if name not in _LOADERS:
        raise DataError(f"no dataset {name!r}{guess(name, DATASETS)}; there are {listing(DATASETS)}")
    if split not in ("train", "test"):
        raise DataError(f"dataset {name!r}: no split {split!r}; there are train, test")
    return _LOADERS[name](name, split)


def _digits(name: str, split: SplitName) -> Dataset:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(_SEED).permutation(len(y))
    index = order[:-500] if split == "train" else order[-500:]
    return Dataset(name, X[index], y[index].astype(np.int64), known.DIGITS)


_IDX = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def _mnist(name: str, split: SplitName) -> Dataset:
    hub, classes = {
        "mnist": (Hub("ylecun/mnist", f"mnist/{split}-00000-of-00001.parquet"), known.DIGITS),
        "fashion_mnist": (
            Hub("zalando-datasets/fashion_mnist", f"fashion_mnist/{split}-00000-of-00001.parquet"),
            known.FASHION,
        ),
    }[name]
    images, labels = _IDX[split]
    original = (f"{images}.gz", f"{labels}.gz")
    paths = find(name, split, [original, *_parquet(split, hub), (images, labels)], hub)
    if len(paths) == 2:
        return Dataset(name, formats.read_idx(paths[0]), _codes(formats.read_idx(paths[1])), classes)
    (y,) = formats.read_columns(paths[0], ("label",))
    return Dataset(name, _images(name, split, paths[0], GREY), _codes(y), classes)


def _tinted_fashion(name: str, split: SplitName) -> Dataset:
    """Black becomes one random colour and white another; the colours are drawn once and fixed here."""
    grey = load("fashion_mnist", split)
    x = np.pad(np.asarray(grey.X), ((0, 0), (2, 2), (2, 2)))[..., np.newaxis]
    dark, light = np.random.default_rng(_SEED).integers(0, 256, (2, len(x), 1, 1, 3), dtype=np.uint8)
    tinted = np.empty((*x.shape[:3], 3), np.uint8)
    for block in blocks(len(x), 4096):  # sums need more than a byte
        share = x[block].astype(np.uint16)
        tinted[block] = (share * light[block] + (255 - share) * dark[block]) // 255
    return Dataset(name, tinted, grey.y, grey.classes)


def _cifar10(name: str, split: SplitName) -> Dataset:
    hub = Hub("uoft-cs/cifar10", f"plain_text/{split}-00000-of-00001.parquet")
    (path,) = find(name, split, _parquet(split, hub), hub)
    (y,) = formats.read_columns(path, ("label",))
    classes = _names(path, "label", known.CIFAR10)
    return Dataset(name, _images(name, split, path, COLOUR), _codes(y), classes)


def _cifar100(name: str, split: SplitName) -> Dataset:
    hub = Hub("uoft-cs/cifar100", f"cifar100/{split}-00000-of-00001.parquet")
    (path,) = find(name, split, _parquet(split, hub), hub)
    fine, coarse = map(_codes, formats.read_columns(path, ("fine_label",), ("coarse_label",)))
    names = {
        "fine": _names(path, "fine_label", known.CIFAR100_FINE),
        "coarse": _names(path, "coarse_label", known.CIFAR100_COARSE),
    }
    X = _images(name, split, path, COLOUR)
    return Dataset(name, X, fine, names["fine"], {"fine": fine, "coarse": coarse}, names)


def _adult(name: str, split: SplitName) -> Dataset:
    (path,) = find(name, split, [("adult.data" if split == "train" else "adult.test",)], None)
    frame, labels = formats.read_adult(path)
    strange = sorted(set(labels) - set(known.ADULT))
    if strange:
        raise DataError(f"{path}: has the label {strange[0]!r}; wants {' or '.join(known.ADULT)}")
    return Dataset(name, frame, (labels == known.ADULT[1]).astype(np.int64), known.ADULT)


def _dbpedia(name: str, split: SplitName) -> Dataset:
    hub = Hub("fancyzhx/dbpedia_14", f"dbpedia_14/{split}-00000-of-00001.parquet")
    (path,) = find(name, split, [(f"{split}.csv",), *_parquet(split, hub)], hub)
    if path.suffix == ".csv":
        codes, texts = formats.read_dbpedia(path, f"reading {name} {split}")
        listed = path.with_name("classes.txt")
        classes = tuple(listed.read_text("utf-8").splitlines()) if listed.is_file() else known.DBPEDIA
        return Dataset(name, texts, codes, classes)
    labels, titles, contents = formats.read_columns(path, ("label",), ("title",), ("content",))
    return Dataset(name, formats.join_texts(titles, contents), _codes(labels), known.DBPEDIA)


def _femnist_digits(name: str, split: SplitName) -> Dataset:
    """CoFED trains on 40 % of the samples of each writer; which ones is drawn once and fixed here."""
    (path,) = find(name, split, [(f"{name}.npz",)], None)
    arrays = formats.read_npz(path)
    X, y, client = (formats.pick_array(path, arrays, array) for array in ("x", "y", "client"))
    values, clients = np.unique(client, return_inverse=True)
    rng = np.random.default_rng(_SEED)
    chosen = np.zeros(len(y), dtype=bool)
    for code in range(len(values)):
        own = rng.permutation(np.flatnonzero(clients == code))
        chosen[own[: round(0.4 * len(own))]] = True
    whole = Dataset(
        name,
        X,
        _codes(y),
        known.DIGITS,
        groups={"client": _codes(clients)},
        group_names={"client": tuple(map(str, values))},
    )
    return whole.take(np.flatnonzero(chosen if split == "train" else ~chosen))


def _kannada_mnist(name: str, split: SplitName) -> Dataset:
    """Its own training set is not in the file: the official test set stands in for it, as a pool of another
    script; Dig-MNIST, which other writers drew, is the test set."""
    (path,) = find(name, split, [(f"{name}.npz",)], None)
    arrays = formats.read_npz(path)
    part = "test" if split == "train" else "dig"
    X, y = (formats.pick_array(path, arrays, f"{array}_{part}") for array in ("x", "y"))
    return Dataset(name, X, _codes(y), known.DIGITS)


def _parquet(split: SplitName, hub: Hub) -> list[tuple[str, ...]]:
    """Names under which a Parquet file may lie in a folder: short, as on the hub, and with its folder."""
    return [(f"{split}.parquet",), (Path(hub.file).name,), (hub.file,)]


def _images(name: str, split: SplitName, path: Path, mode: str) -> NDArray[Any]:
    title = f"decoding {name} {split}"
    return cached(f"{name}-{split}", path, lambda: formats.read_images(path, mode, title))


def _names(path: Path, column: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """The class names that `labels.json` beside the file gives for a column; without it, the usual ones."""
    listed = path.with_name("labels.json")
    if not listed.is_file():
        return default
    try:
        return tuple(str(name) for name in json.loads(listed.read_text("utf-8"))[column])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{listed}: has no list of names for {column!r} ({cause(error)})") from error


def _codes(values: NDArray[Any]) -> NDArray[np.int64]:
    return values.astype(np.int64)


_LOADERS: Mapping[str, Callable[[str, SplitName], Dataset]] = MappingProxyType(
    {
        "digits": _digits,
        "mnist": _mnist,
        "fashion_mnist": _mnist,
        "tinted_fashion": _tinted_fashion,
        "cifar10": _cifar10,
        "cifar100": _cifar100,
        "adult": _adult,
        "dbpedia": _dbpedia,
        "femnist_digits": _femnist_digits,
        "kannada_mnist": _kannada_mnist,
    }
)

DATASETS: tuple[str, ...] = tuple(_LOADERS)
"""The names that `load` takes."""
