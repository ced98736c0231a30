import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.data.labels import class_names, in_order
from cosilo.errors import DataError
from cosilo.protocol.task import Task, vocabulary


def test_labels_outside_the_task_are_named():
    with pytest.raises(DataError) as error:
        Task(("cat", "dog")).encode(np.array(["cat", "cow", "cow"]), "silo 'a'")
    assert str(error.value) == (
        "silo 'a': label 'cow' is outside the task {cat, dog} (2 such instances); "
        "drop them or add the class to the task"
    )


@pytest.mark.parametrize(("classes", "words"), [(("a",), "at least two"), (("a", "b", "a"), "'a' twice")])
def test_a_task_has_two_different_classes(classes, words):
    with pytest.raises(DataError, match=words):
        Task(classes)


def test_vocabulary_is_the_union_in_natural_order():
    assert vocabulary([Task(("10", "9")), Task(("9", "zebra"))]).classes == ("9", "10", "zebra")


@given(st.lists(st.text(min_size=1, max_size=5), min_size=2, unique=True), st.data())
def test_decode_undoes_encode(classes, data):
    classes = [c for c in classes if "\0" not in c]
    if len(classes) < 2:
        return
    task = Task(tuple(classes))
    names = np.array(data.draw(st.lists(st.sampled_from(classes))), dtype=object)
    assert task.decode(task.encode(names, "x")).tolist() == names.tolist()


@given(st.sets(st.sampled_from("abcdefgh"), min_size=2), st.sets(st.sampled_from("abcdefgh"), min_size=2))
def test_codes_in_the_vocabulary_name_the_same_classes(first, second):
    tasks = [Task(tuple(first)), Task(tuple(second))]  # in any order of their own
    union = vocabulary(tasks)
    for task in tasks:
        assert tuple(union.classes[code] for code in task.codes_in(union)) == task.classes


def test_integral_floats_and_integers_are_the_same_class():
    assert class_names(np.array([1.0, 2.0])).tolist() == class_names([1, 2]).tolist() == ["1", "2"]
    assert class_names([1.5]).tolist() == ["1.5"]
    assert in_order(["2", "1.5", "10"]) == ("1.5", "2", "10")
