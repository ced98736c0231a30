"""Polars, Arrow, Hugging Face and memory maps are instances as they come."""

import datasets
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from PIL import Image
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, Federation, Silo
from cosilo.data import from_huggingface
from cosilo.data.frames import library_of
from cosilo.data.instances import as_instances, fingerprint
from cosilo.errors import DataError

FRAME = pd.DataFrame({"age": [30.5, 40.0, None], "job": ["cook", None, "nurse"], "n": [1, 2, 3]})
LABELS = datasets.ClassLabel(names=["bad", "good"])


@pytest.mark.parametrize(
    "make",
    [
        polars.from_pandas,
        lambda frame: polars.from_pandas(frame).lazy(),
        pyarrow.Table.from_pandas,
        lambda frame: pyarrow.RecordBatch.from_pandas(frame),
        datasets.Dataset.from_pandas,
    ],
    ids=["polars", "lazy", "arrow", "batch", "huggingface"],
)
def test_tables_of_others_are_the_same_data_frame(make):
    found = as_instances(make(FRAME), "silo 'a'")
    assert fingerprint(found) == fingerprint(as_instances(FRAME, "silo 'a'"))
    assert list(found.columns) == ["age", "job", "n"]


def test_one_column_of_texts():
    for texts in (
        polars.Series(["a text", "another"]),
        pyarrow.array(["a text", "another"]),
        datasets.Dataset.from_dict({"text": ["a text", "another"]}),
    ):
        assert as_instances(texts, "silo 'a'").tolist() == ["a text", "another"]


def test_library_of():
    assert library_of(FRAME) == "pandas"
    assert library_of([]) == "builtins"


def test_a_federation_over_polars_and_arrow(tmp_path):
    cancer = load_breast_cancer(as_frame=True)
    X = polars.from_pandas(cancer.data.iloc[:, :5])
    y = polars.from_pandas(cancer.target)
    silos = [
        Silo("polars", X[:150], y[:150], HistGradientBoostingClassifier(max_iter=5)),
        Silo("arrow", X[150:300].to_arrow(), y[150:300].to_arrow(), GaussianNB()),
    ]
    run = Federation(silos, X[300:], CoFED()).run(tmp_path)
    assert (run.to_frame()["federated_accuracy"] > 0.8).all()
    assert run.silos["polars"].predict(X[:3]).tolist()[0] in (0, 1)


# ---------------------------------------------------------------------- Hugging Face


def reviews(n=6):
    number, words = datasets.Value("int64"), datasets.Value("string")
    kinds = datasets.Features({"text": words, "id": number, "label": LABELS})
    rows = {"text": [f"film {i}" for i in range(n)], "id": range(n), "label": [i % 2 for i in range(n)]}
    return datasets.Dataset.from_dict(rows, kinds)


def test_labels_become_their_names_and_columns_what_they_are():
    table = from_huggingface(reviews(), text="text")
    assert table.X.tolist()[:2] == ["film 0", "film 1"]
    assert table.y.tolist()[:3] == ["bad", "good", "bad"]
    table = from_huggingface(reviews(), label="label", columns=["id"])
    assert table.X["id"].tolist() == list(range(6))
    with pytest.raises(DataError, match=r"dataset: no column 'txt' \(did you mean 'text'\?\); it has"):
        from_huggingface(reviews(), text="txt")


def test_several_splits_are_not_one():
    splits = datasets.DatasetDict(train=reviews(), test=reviews())
    with pytest.raises(DataError, match=r"dataset: has the splits train, test; wants one .*\['train'\]"):
        from_huggingface(splits, label="label")
    with pytest.raises(DataError, match="silo 'a', data: has the splits train, test"):
        Silo("a", splits, [0, 1] * 3, GaussianNB())


def test_images_and_lists():
    grey = [Image.fromarray(np.full((4, 5), i, np.uint8)) for i in range(3)]
    kinds = datasets.Features({"image": datasets.Image(), "label": LABELS})
    found = datasets.Dataset.from_dict({"image": grey, "label": [0, 1, 0]}, kinds)
    table = from_huggingface(found)
    assert table.X.shape == (3, 4, 5)
    assert table.X.dtype == np.uint8
    assert table.X[2, 0, 0] == 2
    rows = datasets.Dataset.from_dict({"x": [[0.5, 1.0], [2.0, 3.0]], "label": ["a", "b"]})
    assert from_huggingface(rows, label="label").X.tolist() == [[0.5, 1.0], [2.0, 3.0]]


# ---------------------------------------------------------------------- memory maps


def test_a_memory_map_is_not_copied(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32))
    X = np.load(path, mmap_mode="r")
    y = (X[:, 0] > 0).astype(int)
    silo = Silo("a", X, y, GaussianNB())
    assert np.shares_memory(silo.data.own[0], X)
    run = Federation([silo, Silo("b", X, y, GaussianNB())], X, CoFED()).run(tmp_path / "run")
    assert run.status == "finished"
