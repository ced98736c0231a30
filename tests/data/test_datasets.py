import gzip
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosilo.data import DATASETS, load
from cosilo.errors import DataError

GREYS = [np.full((4, 3), value, dtype=np.uint8) for value in (7, 200)]
COLOURS = [np.arange(36, dtype=np.uint8).reshape(3, 4, 3) + value for value in (0, 100)]


def write_idx(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def test_digits_are_split_once_and_for_all():
    train, test = load("digits"), load("digits", "test")
    assert train.X.shape == (1297, 64)
    assert test.X.shape == (500, 64)
    assert train.X.dtype == np.float64
    assert train.classes == tuple("0123456789")
    from sklearn.datasets import load_digits

    both = np.concatenate([train.X, test.X])
    original = load_digits().data
    assert sorted(map(bytes, both)) == sorted(map(bytes, original))
    assert not np.array_equal(both, original)
    assert train.y[:10].tolist() == load("digits").y[:10].tolist() == DIGITS_START


# Written down once: a change here is a change of the dataset, and with it of every result on it.
DIGITS_START = [7, 0, 4, 8, 2, 4, 6, 9, 0, 7]


@pytest.mark.parametrize("ending", [".gz", ""])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx(data_folder, name, ending):
    for prefix, images, labels in (("train", GREYS, [3, 1]), ("t10k", GREYS[:1], [9])):
        write_idx(data_folder / name / f"{prefix}-images-idx3-ubyte{ending}", np.stack(images))
        write_idx(data_folder / name / f"{prefix}-labels-idx1-ubyte{ending}", np.array(labels, np.uint8))
    train, test = load(name), load(name, "test")
    assert train.X.dtype == np.uint8
    assert np.array_equal(train.X, np.stack(GREYS))
    assert train.y.tolist() == [3, 1]
    assert train.y.dtype == np.int64
    assert test.y.tolist() == [9]
    assert train.classes[9] == ("9" if name == "mnist" else "Ankle boot")


@pytest.mark.parametrize(
    "file", ["train.parquet", "train-00000-of-00001.parquet", "mnist/train-00000-of-00001.parquet"]
)
def test_mnist_takes_the_hubs_parquet(data_folder, image_parquet, file):
    image_parquet(data_folder / "mnist" / file, "image", GREYS, label=[3, 1])
    data = load("mnist")
    assert np.array_equal(data.X, np.stack(GREYS))
    assert data.y.tolist() == [3, 1]


def test_cifar10(data_folder, image_parquet):
    image_parquet(data_folder / "cifar10" / "test.parquet", "img", COLOURS, label=[9, 0])
    data = load("cifar10", "test")
    assert np.array_equal(data.X, np.stack(COLOURS))
    assert [data.classes[code] for code in data.y] == ["truck", "airplane"]


def test_cifar100_has_both_labels(data_folder, image_parquet):
    path = data_folder / "cifar100" / "train.parquet"
    image_parquet(path, "img", COLOURS, fine_label=[0, 99], coarse_label=[4, 13])
    data = load("cifar100")
    assert [data.classes[code] for code in data.y] == ["apple", "worm"]
    coarse = data.relabel("coarse")
    assert [coarse.classes[code] for code in coarse.y] == ["fruit_and_vegetables", "non-insect_invertebrates"]
    assert coarse.X is data.X
    assert coarse.relabel("fine").y.tolist() == data.y.tolist()


def test_names_beside_the_file_win(data_folder, image_parquet):
    image_parquet(data_folder / "cifar10" / "train.parquet", "img", COLOURS, label=[0, 1])
    write_text(data_folder / "cifar10" / "labels.json", json.dumps({"label": ["plane", "car"]}))
    assert load("cifar10").classes == ("plane", "car")
    write_text(data_folder / "cifar10" / "labels.json", json.dumps({"other": []}))
    with pytest.raises(DataError, match=r"labels\.json: has no list of names for 'label'"):
        load("cifar10")


ADULT_ROW = (
    "39, {}, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 0, 0, 40, {}, {}"
)


def test_adult(data_folder):
    rows = [ADULT_ROW.format("State-gov", "United-States", "<=50K"), ADULT_ROW.format("?", "?", ">50K")]
    write_text(data_folder / "adult" / "adult.data", "\n".join(rows) + "\n\n")
    test = [row + "." for row in rows[::-1]]
    write_text(data_folder / "adult" / "adult.test", "\n".join(["|1x3 Cross validator", *test]) + "\n")
    data = load("adult")
    assert data.X.shape == (2, 14)
    assert list(data.X.columns)[:5] == ["age", "workclass", "fnlwgt", "education", "education-num"]
    assert data.X["workclass"].tolist() == ["State-gov", "?"]
    assert data.X["native-country"].tolist() == ["United-States", "?"]
    assert data.X["hours-per-week"].dtype == np.int64
    assert data.y.tolist() == [0, 1]
    assert load("adult", "test").y.tolist() == [1, 0]
    assert load("adult", "test").X["age"].tolist() == [39, 39]
    assert data.classes == ("<=50K", ">50K")


def test_adult_with_another_label(data_folder):
    write_text(data_folder / "adult" / "adult.data", ADULT_ROW.format("Private", "Cuba", "rich"))
    with pytest.raises(DataError, match=r"adult\.data: has the label 'rich'; wants <=50K or >50K"):
        load("adult")


def test_dbpedia_csv(data_folder):
    write_text(data_folder / "dbpedia" / "train.csv", '3,"NA"," A ""singer"", born 1944. "\n1,"","A firm"\n')
    data = load("dbpedia")
    assert data.X.tolist() == ['NA A "singer", born 1944.', "A firm"]
    assert data.X.dtype == object
    assert [data.classes[code] for code in data.y] == ["Artist", "Company"]
    write_text(data_folder / "dbpedia" / "classes.txt", "Big firm\nSchool\nPainter\n")
    assert load("dbpedia").classes == ("Big firm", "School", "Painter")


def test_dbpedia_takes_the_hubs_parquet(data_folder):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = data_folder / "dbpedia" / "test-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    columns = {"label": [0, 13], "title": ["E. D. Abbott", "Book"], "content": [" Abbott was.", " A book. "]}
    parquet.write_table(arrow.table(columns), path)
    data = load("dbpedia", "test")
    assert data.X.tolist() == ["E. D. Abbott Abbott was.", "Book A book."]
    assert [data.classes[code] for code in data.y] == ["Company", "WrittenWork"]


def test_femnist_takes_40_percent_of_each_client(data_folder):
    client = np.repeat([4, 9], [10, 20]).astype(np.uint8)
    x = np.arange(30, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 2), dtype=np.uint8)
    write_npz(data_folder / "femnist_digits" / "femnist_digits.npz", x=x, y=np.arange(30) % 10, client=client)
    train, test = load("femnist_digits"), load("femnist_digits", "test")
    assert np.bincount(train.groups["client"]).tolist() == [4, 8]
    assert np.bincount(test.groups["client"]).tolist() == [6, 12]
    assert train.group_names["client"] == ("4", "9")
    assert sorted([*train.X[:, 0, 0], *test.X[:, 0, 0]]) == list(range(30))
    assert (train.X[:, 0, 0] % 10).tolist() == train.y.tolist()
    assert np.array_equal(train.X, load("femnist_digits").X)


def test_kannada(data_folder):
    write_npz(
        data_folder / "kannada_mnist" / "kannada_mnist.npz",
        x_test=np.stack(GREYS),
        y_test=np.array([1, 2], np.uint8),
        x_dig=np.stack(GREYS[:1]),
        y_dig=np.array([5], np.uint8),
    )
    assert load("kannada_mnist").y.tolist() == [1, 2]
    assert load("kannada_mnist", "test").y.tolist() == [5]


def test_unknown_names():
    with pytest.raises(
        DataError, match=r"no dataset 'minst' \(did you mean 'mnist'\?\); there are digits, mnist"
    ):
        load("minst")
    with pytest.raises(DataError, match="dataset 'digits': no split 'valid'; there are train, test"):
        load("digits", "valid")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="dataset 'digits': no group 'client'; it has none"):
        load("digits").relabel("client")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x05abcd"), "holds 4 bytes of data, its header says 5"),
        (gzip.compress(b"\0\0\x0d\x01\0\0\0\x01abcd"), "is not an idx file of bytes"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x02ab")[:-9], "cannot be read"),
        (gzip.compress(b""), "is not an idx file of bytes"),
    ],
    ids=["no gzip", "short", "no bytes", "cut", "empty"],  # gzip writes the time, which xdist must not see
)
def test_broken_idx(data_folder, raw, words):
    write_idx(data_folder / "mnist" / "train-images-idx3-ubyte.gz", np.stack(GREYS))
    (data_folder / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(raw)
    with pytest.raises(DataError, match=words) as error:
        load("mnist")
    assert "train-labels-idx1-ubyte.gz" in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_that_do_not_fit(data_folder, image_parquet):
    write_idx(data_folder / "mnist" / "train-images-idx3-ubyte.gz", np.stack(GREYS))
    write_idx(data_folder / "mnist" / "train-labels-idx1-ubyte.gz", np.array([1, 2, 3], np.uint8))
    with pytest.raises(DataError, match="dataset 'mnist': 2 instances, but 3 labels"):
        load("mnist")
    image_parquet(data_folder / "cifar10" / "train.parquet", "img", COLOURS, label=[3, 10])
    with pytest.raises(DataError, match="dataset 'cifar10': labels from 3 to 10; wants 0 to 9"):
        load("cifar10")


def test_parquet_that_does_not_fit(data_folder, image_parquet):
    path = data_folder / "cifar10" / "train.parquet"
    image_parquet(path, "picture", COLOURS, label=[0, 1])
    with pytest.raises(
        DataError, match=r"train\.parquet: has the columns picture, label; wants img or image"
    ):
        load("cifar10")
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(DataError, match=r"train\.parquet: cannot be read as Parquet"):
        load("cifar10")


def test_images_of_two_sizes(data_folder, image_parquet):
    odd = [*COLOURS, COLOURS[0][:2]]
    image_parquet(data_folder / "cifar10" / "train.parquet", "img", odd, label=[0, 1, 2])
    with pytest.raises(DataError, match=r"row 2: is 4 × 2 pixels, the images before it are 4 × 3"):
        load("cifar10")


@pytest.mark.parametrize(("module", "package"), [("pyarrow.parquet", "pyarrow"), ("PIL.Image", "pillow")])
def test_without_the_extra(data_folder, image_parquet, monkeypatch, module, package):
    image_parquet(data_folder / "cifar10" / "train.parquet", "img", COLOURS, label=[0, 1])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        DataError, match=rf"needs {package}, .*: make install EXTRAS=data, or pip install '.*\[data\]'$"
    ):
        load("cifar10")


def test_importing_is_cheap():
    # pandas itself imports pyarrow where it is installed; its Parquet part is ours to leave alone.
    code = "import sys, cosilo.data; print([m for m in %r if m in sys.modules])"
    heavy = ["torch", "PIL", "pyarrow.parquet", "huggingface_hub"]
    done = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_names_are_documented():
    for name in DATASETS:
        assert name in (load.__doc__ or "")
