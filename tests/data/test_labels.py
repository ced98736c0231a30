"""Labels as class names, and back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.data.labels import class_names, in_order, in_type_of


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([3, 4], ["3", "4"]),
        ([3.0, 4.0], ["3", "4"]),
        ([0.5, 1.0], ["0.5", "1.0"]),
        ([True, False], ["True", "False"]),
        (["3", "cat"], ["3", "cat"]),
        (np.array([7], np.uint8), ["7"]),
    ],
)
def test_labels_of_any_type_have_names(labels, names):
    assert class_names(labels).tolist() == names


@pytest.mark.parametrize(
    "labels", [[3, 4], [3.0, 4.0], [0.5, 1.5], [True, False], ["a", "b"], pd.Series([1, 2], dtype=object)]
)
def test_names_become_labels_of_the_type_they_came_from(labels):
    names = class_names(labels)
    assert in_type_of(labels, names.tolist()).tolist() == list(labels)


def test_where_a_type_has_no_such_label_names_stay():
    assert in_type_of([1, 2], ["1", "cat"]).tolist() == ["1", "cat"]
    assert in_type_of([1, 2], ["01", "2"]).tolist() == ["01", "2"]  # 1 is another name


@given(st.lists(st.integers(-1000, 1000)), st.lists(st.text("abc", min_size=1)))
def test_numbers_are_in_order_by_value_and_before_words(numbers, words):
    found = in_order([*words, *map(str, numbers)])
    assert found == (*map(str, sorted(set(numbers))), *sorted(set(words)))
