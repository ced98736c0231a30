from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cosilo.data import read
from cosilo.errors import DataError

PEOPLE = "age,job,income\n39,clerk,high\n50,cook,low\n"


@pytest.fixture
def csv(tmp_path):
    def write(text: str, encoding: str = "utf-8") -> Path:
        path = tmp_path / "people.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    pytest.importorskip("pyarrow")

    def write(frame: pd.DataFrame) -> Path:
        path = tmp_path / "people.parquet"
        frame.to_parquet(path)
        return path

    return write


@pytest.fixture
def npz(tmp_path):
    def write(**arrays: object) -> Path:
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return path

    return write


def fails(path: Path, words: str, **options: object) -> None:
    """The error is one line that names the file and says so."""
    with pytest.raises(DataError) as error:
        read(path, **options)  # type: ignore[arg-type]
    assert str(error.value).startswith(str(path))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


class TestColumns:
    def test_csv(self, csv):
        table = read(csv(PEOPLE), label="income")
        assert isinstance(table.X, pd.DataFrame)
        assert table.X.to_dict("list") == {"age": [39, 50], "job": ["clerk", "cook"]}
        assert table.y.tolist() == ["high", "low"]

    def test_parquet(self, parquet):
        frame = pd.DataFrame({"age": [39, 50], "income": ["high", "low"]}, index=[7, 3])
        table = read(parquet(frame), label="income")
        assert table.X.to_dict("list") == {"age": [39, 50]}
        assert table.y.tolist() == ["high", "low"]

    def test_parquet_index_is_no_feature(self, parquet):
        frame = pd.DataFrame({"age": [39, 50]}, index=pd.Index([7, 3], name="patient"))
        assert list(read(parquet(frame)).X.columns) == ["age"]

    def test_a_string_is_a_path(self, csv):
        assert read(str(csv(PEOPLE))).y is None

    def test_no_label(self, csv):
        table = read(csv(PEOPLE))
        assert table.y is None
        assert list(table.X.columns) == ["age", "job", "income"]

    def test_chosen_columns_in_their_order(self, csv):
        table = read(csv(PEOPLE), label="income", columns=["job", "age"])
        assert list(table.X.columns) == ["job", "age"]
        assert table.X["age"].tolist() == [39, 50]

    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_text(self, form, csv, parquet):
        path = (
            csv(PEOPLE)
            if form == "csv"
            else parquet(pd.DataFrame({"job": ["clerk", "cook"], "income": [1, 2]}))
        )
        table = read(path, label="income", text="job")
        assert isinstance(table.X, np.ndarray)
        assert table.X.dtype == object
        assert table.X.tolist() == ["clerk", "cook"]

    @pytest.mark.parametrize(
        ("labels", "names"),
        [
            (["3", "4"], ["3", "4"]),
            (["3.0", "-4.00"], ["3", "-4"]),
            (["007", "7"], ["007", "7"]),
            (["0.5", "1.0"], ["0.5", "1"]),
            ([" >50K", "<=50K "], [">50K", "<=50K"]),
            (["True", "false"], ["True", "false"]),
            (["v1.0", "v2.0"], ["v1.0", "v2.0"]),
        ],
    )
    def test_csv_labels(self, csv, labels, names):
        path = csv("x,y\n" + "".join(f"1,{label}\n" for label in labels))
        assert read(path, label="y").y.tolist() == names

    @pytest.mark.parametrize(
        ("labels", "names"),
        [
            ([3, 4], ["3", "4"]),
            ([3.0, 4.0], ["3", "4"]),
            ([0.5, 1.0], ["0.5", "1"]),
            ([True, False], ["True", "False"]),
            (pd.Categorical(["b", "a"]), ["b", "a"]),
        ],
    )
    def test_parquet_labels(self, parquet, labels, names):
        assert read(parquet(pd.DataFrame({"x": [1, 2], "y": labels})), label="y").y.tolist() == names

    def test_byte_order_mark(self, csv):
        assert list(read(csv(PEOPLE, "utf-8-sig")).X.columns) == ["age", "job", "income"]

    def test_unknown_column(self, csv):
        hint = "no column 'incme' (did you mean 'income'?); it has 'age', 'job', 'income'"
        fails(csv(PEOPLE), hint, label="incme")
        fails(csv(PEOPLE), "no column 'Age' (did you mean 'age'?)", columns=["Age"])
        fails(csv(PEOPLE), "no column 'body'; it has", text="body")
        fails(csv(PEOPLE.replace(",", ";")), "is it separated by commas?", label="income")

    def test_columns_that_contradict(self, csv):
        fails(
            csv(PEOPLE),
            "'income' is the label and cannot be a feature too",
            label="income",
            columns=["income"],
        )
        fails(csv(PEOPLE), "column 'age' is named twice", columns=["age", "age"])
        fails(csv(PEOPLE), "got text and columns", text="job", columns=["age"])
        fails(csv("y\n1\n"), "has the label 'y' but no other column", label="y")

    def test_missing_labels(self, csv, parquet):
        text = "x,y\n1,a\n2,\n3,b\n4,  \n"
        fails(csv(text), "column 'y': 2 of 4 labels are missing, the first in row 2", label="y")
        fails(csv("x,y\n1,a\n2,b\n3,  \n"), "1 of 3 labels are missing, the first in row 3", label="y")
        frame = pd.DataFrame({"x": [1, 2, 3], "y": [1, None, None]})
        fails(parquet(frame), "2 of 3 labels are missing, the first in row 2", label="y")

    def test_missing_features_and_texts(self, csv):
        assert np.isnan(read(csv("x,y\n1,a\n,b\n"), label="y").X["x"]).tolist() == [False, True]
        fails(csv("x,y\nword,a\n,b\n"), "column 'x': 1 of 2 texts are missing, the first in row 2", text="x")
        fails(csv(PEOPLE), "wants str", text="age")

    def test_unreadable(self, csv, tmp_path):
        fails(tmp_path / "none.csv", "no such file or folder")
        fails(csv(""), "is empty")
        fails(csv("a,b\n"), "has columns but no rows")
        fails(csv("a,b\n1,2,3\n4,5,6\n"), "cannot be read as csv")
        fails(csv("a,b\n1,2\n3,4,5\n"), "cannot be read as csv")
        fails(csv("näme,b\n1,2\n", "latin-1"), "cannot be read as csv in UTF-8")
        (tmp_path / "text.docx").touch()
        fails(tmp_path / "text.docx", "wants .csv, .parquet, .npz, .npy or a folder of images")
        (tmp_path / "bad.parquet").write_bytes(b"")
        fails(tmp_path / "bad.parquet", "cannot be read as Parquet")

    def test_nested_parquet(self, parquet):
        frame = pd.DataFrame({"a": [1, 2], "img": [{"bytes": b"x"}, {"bytes": b"y"}]})
        fails(parquet(frame), "column 'img' holds struct<bytes: binary>")
        assert list(read(parquet(frame), columns=["a"]).X.columns) == ["a"]


class TestNpz:
    @pytest.mark.parametrize("name", ["x", "X"])
    def test_arrays(self, npz, name):
        table = read(npz(**{name: np.eye(2), "y": np.array([3, 4], np.uint8)}))
        assert np.array_equal(table.X, np.eye(2))
        assert table.y.tolist() == ["3", "4"]

    def test_label_names_the_array(self, npz):
        path = npz(
            x=np.eye(2), y=np.array([3, 4]), colour=np.array(["red", "blue"]), raw=np.array([b"a", b"b"])
        )
        assert read(path, label="colour").y.tolist() == ["red", "blue"]
        assert read(path, label="raw").y.tolist() == ["a", "b"]

    def test_no_labels(self, npz):
        assert read(npz(x=np.eye(2))).y is None

    def test_text(self, npz):
        assert read(npz(x=np.array(["one", "two"]))).X.tolist() == ["one", "two"]

    def test_errors(self, npz, tmp_path):
        fails(npz(z=np.eye(2)), "has the arrays z; wants 'x'")
        fails(npz(x=np.eye(2), y=np.array([1, 2])), "has the arrays x, y; wants 'label'", label="label")
        fails(npz(x=np.eye(2), y=np.array([1, 2, 3])), "2 instances in 'x', but 3 labels in 'y'")
        fails(npz(x=np.eye(2), y=np.array([1, np.nan])), "1 of 2 labels are missing, the first in row 2")
        fails(npz(x=np.eye(2), y=np.eye(2)), "labels of shape (2, 2)")
        fails(npz(x=np.empty((0, 2))), "array 'x' is empty")
        fails(npz(x=np.array([[np.inf, 1]])), "instance 0 holds infinity")
        fails(npz(x=np.eye(2)), "has arrays, not columns; leave out columns", columns=["a"])
        (tmp_path / "bad.npz").write_bytes(b"not a zip")
        fails(tmp_path / "bad.npz", "cannot be read as npz")
        with (tmp_path / "bare.npz").open("wb") as file:
            np.save(file, np.eye(2))
        fails(tmp_path / "bare.npz", "holds one bare array")

    def test_objects_are_refused(self, npz):
        path = npz(x=np.eye(2), y=np.array(["a", None], dtype=object))
        fails(path, "array 'y' cannot be loaded")
        fails(path, "not Python objects")
