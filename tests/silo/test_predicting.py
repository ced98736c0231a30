"""What a silo's owner gets from its model: labels as they were handed over, probabilities, a score."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Local, Silo, Target
from cosilo.data.labels import class_names, in_order, in_type_of
from cosilo.errors import DataError, LearnerError
from cosilo.learners.encoding import with_encoder
from cosilo.protocol.stage import LOCAL
from cosilo.protocol.task import Task

X = np.arange(12.0)[:, None]


def trained(y, learner=None, X=X, **options):
    silo = Silo("a", X, y, learner or DecisionTreeClassifier(), test=None, **options)
    silo.fit(LOCAL)
    return silo


TEN = [
    np.repeat([7, 10], 6),
    np.repeat([7, 10], 6).astype(np.int8),
    np.repeat([3.0, 4.0], 6),
    np.repeat([0.5, 4.0], 6),
    np.repeat([True, False], 6),
    np.repeat(["cat", "dog"], 6),
    np.repeat(np.array(["2026-01-01", "2026-02-01"], "datetime64[D]"), 6),
]


@pytest.mark.parametrize("y", TEN, ids=lambda y: str(y.dtype))
def test_labels_come_back_as_they_came_in(y):
    silo = trained(y)
    assert silo.predict(X).dtype == y.dtype
    assert silo.predict(X).tolist() == y.tolist()
    assert silo.classes.dtype == y.dtype
    assert set(silo.classes.tolist()) == set(y.tolist())


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (pd.Series([7, 10] * 6), int),
        (pd.Series([7, 10] * 6, dtype=object), int),
        (pd.Series([7, 10] * 6, dtype="Int64"), int),
        (pd.Series(["cat", "dog"] * 6), str),
        (pd.Series(["cat", "dog"] * 6, dtype="category"), str),
        (pd.Series([7, 10] * 6, dtype="category"), int),
        (pd.Categorical(["cat", "dog"] * 6), str),
        ([7, 10] * 6, int),
        ([True, False] * 6, bool),
        (["cat", "dog"] * 6, str),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_of_pandas_and_of_lists(y, kind):
    found = trained(y).predict(X).tolist()
    assert found == list(y)
    assert {type(value) for value in found} == {kind}


def test_a_class_that_is_only_in_the_task_is_converted_like_the_others():
    silo = trained(np.repeat([7, 10], 6), task=["7", "10", "300"])
    assert silo.classes.tolist() == [7, 10, 300]
    assert trained(np.repeat([3.0, 4.0], 6), task=["3", "4", "5"]).classes.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.repeat([7, 10], 6), ["7", "10", "other"]),
        (np.repeat([7, 10], 6).astype(np.int8), ["7", "10", "300"]),
        (np.repeat([True, False], 6), ["False", "True", "maybe"]),
    ],
)
def test_where_the_type_has_no_such_label_all_are_names(y, task):
    silo = trained(y, task=task)
    assert silo.classes.tolist() == task
    assert silo.predict(X).tolist() == y.astype(str).tolist()


def test_labels_of_a_target_are_of_the_type_of_the_own_ones():
    target = Target(X[:4] + 100, [3, 4, 3, 4], unlabelled=X[:2] + 100)
    silo = trained(np.repeat([1, 2], 6), GaussianNB(), target=target)
    assert silo.classes.tolist() == [3, 4]
    assert silo.target_labels()["label"].tolist() == silo.predict(X[:2] + 100).tolist()
    assert silo.target_labels()["label"].dtype == np.int64


def test_a_silo_that_was_restored_knows_the_type(tmp_path):
    y = np.repeat([7, 10], 6)
    for _ in range(2):  # the second opens the finished run
        run = Federation([Silo("a", X, y, DecisionTreeClassifier())], method=Local()).run(tmp_path)
        assert run.silos["a"].predict(X[[0, -1]]).tolist() == [7, 10]


LABELS = st.one_of(
    arrays.arrays(np.int64, 4, elements=st.integers(-(2**53), 2**53)),
    arrays.arrays(np.float64, 4, elements=st.floats(-(2**53), 2**53)),
    arrays.arrays(np.float32, 4, elements=st.floats(-1000, 1000, width=32)),
    arrays.arrays(np.bool_, 4),
    # Letters at both ends: blanks around a label do not count, and "3.0" is "3".
    st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0")), min_size=1).map(
        lambda texts: np.array([f"c{text}c" for text in texts])
    ),
)


@given(LABELS)
def test_names_and_back(labels):
    classes = in_order(class_names(labels).tolist())
    back = in_type_of(labels, classes)
    assert back.dtype == labels.dtype
    assert set(back.tolist()) == set(labels.tolist())


# ---------------------------------------------------------------------- probabilities, score, model


def test_probabilities_have_the_columns_of_the_classes():
    y = np.repeat([10, 9], 6)
    silo = trained(y, GaussianNB())
    alone = GaussianNB().fit(X, y)  # its classes are in the same order: 9, 10
    assert silo.classes.tolist() == alone.classes_.tolist()
    assert silo.predict_proba(X) == pytest.approx(alone.predict_proba(X))


def test_probabilities_among_target_classes_have_the_sum_one():
    target = Target(X[:4] + 7, ["c", "d"] * 2, unlabelled=X[:2] + 7)
    silo = trained(list("aaaaaabbbbbb"), GaussianNB(), target=target)
    found = silo.predict_proba(X)
    assert found.shape == (12, 2)
    assert found.sum(axis=1) == pytest.approx(np.ones(12))
    assert silo.classes[found.argmax(axis=1)].tolist() == silo.predict(X).tolist()


def test_a_learner_without_probabilities_says_so():
    silo = trained(np.repeat([0, 1], 6), LinearSVC())
    with pytest.raises(LearnerError, match=r"^silo 'a': LinearSVC has no predict_proba"):
        silo.predict_proba(X)


def test_the_score_is_that_of_scikit_learn():
    y, noisy = np.repeat([0, 1], 6), np.array([0, 1, 2] * 4)
    silo = trained(y)
    assert silo.score(X, noisy) == DecisionTreeClassifier().fit(X, y).score(X, noisy)
    assert silo.score(X, y.astype(float)) == 1.0
    with pytest.raises(DataError, match=r"12 new instances, but labels of shape \(3,\)"):
        silo.score(X, [0, 1, 0])


def test_the_model_is_what_was_fitted():
    assert trained(np.repeat([0, 1], 6)).model.get_depth() == 1
    frame = pd.DataFrame({"job": ["nurse", "cook"] * 6})
    silo = trained([0, 1] * 6, with_encoder(DecisionTreeClassifier(), frame), X=frame)
    assert isinstance(silo.model, Pipeline)
    assert silo.model.predict(frame).tolist() == [0, 1] * 6


def test_the_model_of_a_network_is_its_module():
    torch = pytest.importorskip("torch")
    silo = trained(np.repeat([0, 1], 6), torch.nn.Linear(1, 2))
    assert isinstance(silo.model, torch.nn.Linear)


def test_a_silo_without_a_model_says_so():
    silo = Silo("a", X, np.repeat([0, 1], 6), DecisionTreeClassifier())
    for ask in (lambda: silo.model, lambda: silo.predict(X), lambda: silo.score(X, X[:, 0])):
        with pytest.raises(LearnerError, match=r"^silo 'a': has no model yet"):
            ask()


def test_codes_stay_what_they_are():
    assert Task(("9", "10")).encode(class_names(np.array([10, 9])), "here").tolist() == [1, 0]
