"""Labels as class names, and back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.data import read
from cosilo.data.labels import class_names, in_order, in_type_of
from cosilo.errors import DataError


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([3, 4], ["3", "4"]),
        ([3.0, 4.0], ["3", "4"]),
        ([0.5, 1.0], ["0.5", "1"]),
        (np.array([1, 1.0, "1", "1.0", " 1 ", True], dtype=object), ["1", "1", "1", "1", "1", "True"]),
        (pd.Series([1, 2], dtype="Int64"), ["1", "2"]),
        (pd.Series(["a ", "b"], dtype="category"), ["a", "b"]),
        (np.array([1.0, 2.5], np.float32), ["1", "2.5"]),
        ([b"cat", b"dog"], ["cat", "dog"]),
        (["007", "-0.50", "v1.0", "1.0.0"], ["007", "-0.50", "v1.0", "1.0.0"]),
        ([True, False], ["True", "False"]),
        (["3", "cat"], ["3", "cat"]),
        (np.array([7], np.uint8), ["7"]),
    ],
)
def test_labels_of_any_type_have_names(labels, names):
    assert class_names(labels).tolist() == names


@pytest.mark.parametrize(
    "labels",
    [
        [0.0, np.nan, 1.0],
        [None, "a", "b"],
        ["a", "", "b"],
        ["a", "nan", "b"],
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", np.nan, "b"]),
    ],
)
def test_a_missing_label_is_no_class(labels):
    with pytest.raises(
        DataError, match=r"y: 1 of 3 labels are missing, the first in row [12]; fill them or drop"
    ):
        class_names(labels, "y")
    assert sorted(class_names(labels, gaps=True)).count("") == 1


def test_in_python_and_from_files_labels_are_the_same_classes(tmp_path):
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": [0.0, 1.0, 0.5, 1.0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", x=frame[["x"]], y=frame["y"])
    for name, label in (("a.csv", "y"), ("a.parquet", "y"), ("a.npz", None)):
        assert (
            read(tmp_path / name, label).y.tolist()
            == class_names(frame["y"]).tolist()
            == ["0", "1", "0.5", "1"]
        )


@pytest.mark.parametrize(
    "labels", [[3, 4], [3.0, 4.0], [0.5, 1.5], [True, False], ["a", "b"], pd.Series([1, 2], dtype=object)]
)
def test_names_become_labels_of_the_type_they_came_from(labels):
    names = class_names(labels)
    assert in_type_of(labels, names.tolist()).tolist() == list(labels)


@pytest.mark.parametrize("labels", [np.zeros((3, 1)), np.eye(3), pd.DataFrame({"y": list("abc")}), "abc"])
def test_labels_have_one_dimension(labels):
    with pytest.raises(DataError, match=r"here: labels of shape \(.*\); wants one class per instance, in"):
        class_names(labels, "here")


def test_where_a_type_has_no_such_label_names_stay():
    assert in_type_of([1, 2], ["1", "cat"]).tolist() == ["1", "cat"]
    assert in_type_of([1, 2], ["01", "2"]).tolist() == ["01", "2"]  # 1 is another name


@given(st.lists(st.integers(-1000, 1000)), st.lists(st.text("abc", min_size=1)))
def test_numbers_are_in_order_by_value_and_before_words(numbers, words):
    found = in_order([*words, *map(str, numbers)])
    assert found == (*map(str, sorted(set(numbers))), *sorted(set(words)))
