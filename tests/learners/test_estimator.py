import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cosilo.errors import LearnerError
from cosilo.learners import Estimator
from cosilo.learners.base import balanced_weights

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 5))
y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)


class Recorder:
    """A hand-written learner that knows nothing of scikit-learn and answers what it is told to."""

    def __init__(self, answer=None, chances=None):
        self.answer, self.chances = answer, chances

    def fit(self, X, y):
        self.seen = X, y

    def predict(self, X):
        return np.zeros(len(X), int) if self.answer is None else self.answer

    def predict_proba(self, X):
        return self.chances


class Guesser:
    """Draws from the global random states, in training and in prediction."""

    def fit(self, X, y):
        self.bias = random.random() + np.random.random()  # noqa: NPY002

    def predict(self, X):
        return (np.random.random(len(X)) < self.bias % 1).astype(int)  # noqa: NPY002


class Broken(DecisionTreeClassifier):
    def fit(self, X, y):
        raise ValueError(f"cannot use {X[0]}")

    def predict(self, X):
        raise KeyError(X[0, 0])


def fitted(model, X=X, y=y, seed=1, n_classes=3, **options):
    learner = Estimator(model)
    learner.fit(X, y, n_classes=n_classes, seed=seed, **options)
    return learner


# ---------------------------------------------------------------------- what is taken


def test_classes_and_other_things_are_refused():
    with pytest.raises(LearnerError, match=r"got the class SVC; wants an object: SVC\("):
        Estimator(SVC)
    with pytest.raises(LearnerError, match="StandardScaler has no predict; wants fit"):
        Estimator(StandardScaler())
    with pytest.raises(LearnerError, match="int has no fit and no predict"):
        Estimator(3)


def test_the_template_is_never_fitted():
    tree, own = DecisionTreeClassifier(), Recorder()
    fitted(tree)
    fitted(own)
    assert not hasattr(tree, "tree_")
    assert tree.random_state is None
    assert not hasattr(own, "seen")


class Odd:
    """get_params, but a constructor that does not take them."""

    def __init__(self):
        self.depth = 3

    def get_params(self, deep=True):
        return {"depth": self.depth}

    def fit(self, X, y):
        self.k = len(np.unique(y))

    def predict(self, X):
        return np.full(len(X), self.k - 1)


def test_an_object_that_clone_cannot_copy_is_copied_deeply():
    odd = Odd()
    odd.depth = 7
    learner = fitted(odd)
    assert learner.model_.depth == 7
    assert not hasattr(odd, "k")
    assert (learner.predict(X) == 2).all()


@pytest.mark.parametrize(
    ("model", "probabilities", "warm", "balance"),
    [
        (DecisionTreeClassifier(), True, False, True),
        (SVC(), False, False, True),
        (KNeighborsClassifier(), True, False, False),
        (LogisticRegression(), True, True, True),
        (RandomForestClassifier(), True, True, True),
        (HistGradientBoostingClassifier(), True, False, True),
        (make_pipeline(StandardScaler(), SVC()), False, False, True),
        (make_pipeline(StandardScaler(), MLPClassifier()), True, True, True),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), True, False, False),
        (VotingClassifier([("a", GaussianNB())]), False, False, False),
        (VotingClassifier([("a", GaussianNB())], voting="soft"), True, False, False),
        (SGDClassifier(), False, True, True),
        (Recorder(), True, False, False),
        (Guesser(), False, False, False),
    ],
)
def test_abilities(model, probabilities, warm, balance):
    learner = Estimator(model)
    abilities = learner.has_probabilities, learner.can_warm_start, learner.can_weigh
    assert abilities == (probabilities, warm, balance)
    assert not learner.weighs_by_itself
    assert not learner.warm_starts_by_default
    assert not learner.wants_validation


# ---------------------------------------------------------------------- seeds


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_features=1, splitter="random"),
        make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(4,), max_iter=5)),
        VotingClassifier([("a", RandomForestClassifier(3)), ("b", RandomForestClassifier(3))]),
        DummyClassifier(strategy="stratified"),
        Guesser(),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_seed_decides_everything(model):
    points = rng.normal(size=(300, 5))
    first = fitted(model, seed=1, y=y.clip(0, 1), n_classes=2).predict(points)
    random.random(), np.random.random()  # noqa: NPY002
    again = fitted(model, seed=1, y=y.clip(0, 1), n_classes=2)
    assert np.array_equal(first, again.predict(points))
    assert np.array_equal(first, again.predict(points))  # a second question has the same answer
    other = fitted(model, seed=2, y=y.clip(0, 1), n_classes=2).predict(points)
    assert not np.array_equal(first, other)


def test_only_open_seeds_are_set_and_members_get_their_own():
    pair = VotingClassifier(
        [("a", RandomForestClassifier(2)), ("b", RandomForestClassifier(2, random_state=7))]
    )
    params = fitted(pair).model_.get_params()
    assert params["b__random_state"] == 7
    assert params["a__random_state"] is not None
    two = VotingClassifier([("a", RandomForestClassifier(2)), ("b", RandomForestClassifier(2))])
    params = fitted(two).model_.get_params()
    assert params["a__random_state"] != params["b__random_state"]


def test_the_global_random_states_are_left_alone():
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    fitted(Guesser()).predict(X)
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


# ---------------------------------------------------------------------- codes


@settings(deadline=None, max_examples=40)
@given(st.sets(st.integers(0, 9), min_size=2, max_size=10), st.randoms(use_true_random=False))
def test_any_part_of_the_classes_comes_back_as_itself(present, order):
    codes = sorted(present) * 3
    order.shuffle(codes)
    y = np.array(codes)
    points = np.stack([y, y**2], axis=1).astype(float)
    learner = fitted(DecisionTreeClassifier(), points, y, n_classes=10)
    assert learner.model_.classes_.tolist() == list(range(len(present)))
    assert np.array_equal(learner.predict(points), y)
    chances = learner.predict_proba(points)
    assert chances.shape == (len(y), 10)
    assert np.array_equal(chances.argmax(axis=1), y)
    absent = [c for c in range(10) if c not in present]
    assert not chances[:, absent].any()


def test_nothing_asked_nothing_answered():
    learner = fitted(DecisionTreeClassifier())
    assert learner.predict(X[:0]).shape == (0,)
    assert learner.predict(X[:0]).dtype == np.int64
    assert learner.predict_proba(X[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    "answer", [[0, 1, 2], [0.0, 1.0, 2.0], np.array([0, 1, 2], np.uint8), [[0], [1], [2]]]
)
def test_whole_numbers_of_any_type_are_codes(answer):
    codes = fitted(Recorder(answer=answer)).predict(X[:3])
    assert codes.tolist() == [0, 1, 2]
    assert codes.dtype == np.int64


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (np.zeros(2, int), r"int64 of shape \(2,\); wants shape \(3,\) of whole numbers"),
        (np.zeros((3, 2), int), r"int64 of shape \(3, 2\); wants shape \(3,\)"),
        (np.array([0, 0.5, 1]), r"float64 of shape \(3,\); wants shape \(3,\) of whole numbers"),
        (np.array([0, np.nan, 1]), "wants shape"),
        (np.array(["a", "b", "c"]), r"<U1 of shape"),
        (None, r"object of shape \(\)"),
        (np.array([0, 1, 3]), "wants only the codes it was fitted with, 0 … 2"),
        (np.array([0, -1, 1]), "wants only the codes it was fitted with, 0 … 2"),
    ],
)
def test_bad_predictions_are_named(answer, line):
    recorder = Recorder()
    recorder.predict = lambda X: answer
    with pytest.raises(LearnerError, match=rf"^Recorder\.predict returned .*{line}"):
        fitted(recorder).predict(X[:3])


@pytest.mark.parametrize(
    ("chances", "line"),
    [
        (np.ones((2, 2)), r"shape \(2, 2\); wants shape \(2, 3\) of numbers"),
        (np.ones(2), r"shape \(2,\); wants shape \(2, 3\)"),
        (np.full((2, 3), "x"), "<U1 of shape"),
        (np.array([[0.5, 0.5, np.nan]] * 2), "finite values, none below 0"),
        (np.array([[1.5, -0.5, 0.0]] * 2), "finite values, none below 0"),
        (np.array([[0.5, 0.5, 0.01]] * 2), "rows with sum 1"),
    ],
)
def test_bad_probabilities_are_named(chances, line):
    with pytest.raises(LearnerError, match=rf"^Recorder\.predict_proba returned .*{line}"):
        fitted(Recorder(chances=chances)).predict_proba(X[:2])


def test_single_precision_probabilities_are_good_enough():
    chances = np.array([[0.3333, 0.3333, 0.3333]], np.float32)
    assert fitted(Recorder(chances=chances)).predict_proba(X[:1]).dtype == np.float64


def test_naive_bayes_in_single_precision_has_probabilities():
    """scikit-learn's rows have a sum of up to 2 there, where densities are extreme."""
    digits, y = load_digits(return_X_y=True)
    learner = Estimator(GaussianNB())
    learner.fit(digits[:100].astype(np.float32), y[:100], n_classes=10, seed=0)
    asked = digits[500:].astype(np.float32)
    assert np.abs(learner.fitted().predict_proba(asked).sum(axis=1) - 1).max() > 0.3
    assert learner.predict_proba(asked).sum(axis=1) == pytest.approx(1, abs=1e-3)
    wanted = np.where(learner.fitted().predict_proba(asked) > 0.5, 1, 0).argmax(axis=1)
    assert (learner.predict(asked) == wanted).mean() > 0.99


def test_without_probabilities_it_says_so():
    with pytest.raises(LearnerError, match="SVC has no predict_proba"):
        fitted(SVC()).predict_proba(X)


def test_questions_before_training():
    for question in ("predict", "predict_proba", "save"):
        with pytest.raises(LearnerError, match=r"^DecisionTreeClassifier has learnt nothing yet"):
            getattr(Estimator(DecisionTreeClassifier()), question)(Path("nowhere"))


# ---------------------------------------------------------------------- errors of the black box


def test_errors_do_not_quote_the_data():
    with pytest.raises(LearnerError) as caught:
        fitted(Broken())
    assert str(caught.value) == "Broken.fit raised ValueError"
    assert str(X[0, 0])[:4] in str(caught.value.__cause__)
    learner = fitted(DecisionTreeClassifier())
    learner.name, learner.model_ = "Broken", Broken()
    with pytest.raises(LearnerError, match=r"^Broken\.predict raised KeyError$"):
        learner.predict(X)


def test_a_fit_that_fails_keeps_what_was_learnt():
    with pytest.warns(UserWarning, match="iterations"):
        learner = fitted(MLPClassifier(hidden_layer_sizes=(3,), max_iter=3))
    before = learner.predict_proba(X)
    with pytest.raises(LearnerError, match=r"MLPClassifier.fit raised ValueError"):
        learner.fit(X[:, :2], y, n_classes=3, seed=1, warm=True)
    with pytest.raises(LearnerError, match=r"MLPClassifier.fit raised ValueError"):
        learner.fit(np.full_like(X, np.nan), y, n_classes=3, seed=1)
    assert np.array_equal(learner.predict_proba(X), before)


class Torn(BaseEstimator):
    """Goes on from what it learnt, and changes itself before it fails."""

    def __init__(self, warm_start=False):
        self.warm_start = warm_start

    def fit(self, X, y):
        self.code_ = y[0]
        if len(X) < 10:
            raise ValueError
        return self

    def predict(self, X):
        return np.full(len(X), self.code_)


def test_a_warm_fit_that_fails_half_way_keeps_what_was_learnt():
    learner = fitted(Torn(), y=np.arange(90) % 3)
    with pytest.raises(LearnerError, match=r"^Torn\.fit raised ValueError$"):
        learner.fit(X[:3], np.array([2, 1, 0]), n_classes=3, seed=1, warm=True)
    assert (learner.predict(X) == 0).all()


# ---------------------------------------------------------------------- shapes


def test_images_are_flat_for_scikit_learn_and_whole_for_others():
    images = rng.integers(0, 255, size=(90, 4, 4), dtype=np.uint8)
    tree = fitted(DecisionTreeClassifier(), images)
    assert tree.model_.n_features_in_ == 16
    assert np.array_equal(tree.predict(images), y)
    own = fitted(Recorder(), images)
    assert own.model_.seen[0].shape == (90, 4, 4)


def test_columns_are_learnt_by_name():
    frame = pd.DataFrame(X, columns=list("abcde"))
    learner = fitted(DecisionTreeClassifier(), frame)
    expected = learner.predict(frame)
    assert np.array_equal(learner.predict(frame[list("edcba")]), expected)
    with pytest.raises(LearnerError, match="learnt from a column 'a'"):
        learner.predict(frame[list("bcde")])


# ---------------------------------------------------------------------- balance


class Weighed(Recorder):
    def fit(self, X, y, sample_weight=None):
        self.weights = sample_weight


def test_weights_are_passed_on():
    points, codes = X[:4], np.array([2, 2, 2, 0])
    learner = fitted(Weighed(), points, codes, sample_weight=balanced_weights(codes, 3))
    assert learner.model_.weights == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])
    assert fitted(Weighed(), points, codes).model_.weights is None


def test_weights_reach_the_last_step_of_a_pipeline():
    balanced = fitted(
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=1)),
        sample_weight=balanced_weights(y, 3),
    )
    weights = balanced.model_[-1].tree_.weighted_n_node_samples[0]
    plain = fitted(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=1)))
    root = plain.model_[-1].tree_.value[0, 0], balanced.model_[-1].tree_.value[0, 0]
    assert weights == pytest.approx(90)
    assert root[1] == pytest.approx([1 / 3] * 3)
    assert root[0] == pytest.approx(np.bincount(y) / 90)


def test_weights_for_an_object_that_takes_none():
    for model in (KNeighborsClassifier(), Recorder()):
        with pytest.raises(LearnerError, match="got sample weights, but its fit takes no sample_weight"):
            fitted(model, sample_weight=np.ones(len(y)))


# ---------------------------------------------------------------------- warm start


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
def test_warm_goes_on_and_cold_begins_again(wrap):
    model = wrap(MLPClassifier(hidden_layer_sizes=(4,), max_iter=3, random_state=0))

    def loss(learner):
        last = learner.model_[-1] if isinstance(learner.model_, Pipeline) else learner.model_
        return last.loss_

    learner = fitted(model)
    first = loss(learner)
    learner.fit(X, y, n_classes=3, seed=1)
    assert loss(learner) == first
    learner.fit(X, y, n_classes=3, seed=1, warm=True)
    assert loss(learner) < first
    assert not Estimator(model).model.get_params().get("warm_start", False)


def test_a_warm_pipeline_keeps_the_features_it_learnt():
    texts = np.array(["good film", "bad film"] * 5, dtype=object)
    codes = np.array([0, 1] * 5)
    learner = fitted(make_pipeline(TfidfVectorizer(), SGDClassifier()), texts, codes, n_classes=2)
    more = np.array(["good play", "bad play", "a bad night"] * 5, dtype=object)  # other words
    learner.fit(more, np.array([0, 1, 1] * 5), n_classes=2, seed=2, warm=True)
    assert sorted(learner.model_[0].vocabulary_) == ["bad", "film", "good"]
    assert learner.predict(texts).tolist() == codes.tolist()


def test_a_warm_pipeline_of_one_step_and_warm_balance():
    learner = fitted(Pipeline([("only", LogisticRegression())]))
    learner.fit(X, y, n_classes=3, seed=1, warm=True, sample_weight=balanced_weights(y, 3))
    direct = fitted(LogisticRegression(), sample_weight=balanced_weights(y, 3))
    assert learner.predict_proba(X) == pytest.approx(direct.predict_proba(X), abs=1e-2)


@pytest.mark.parametrize("ensemble", [RandomForestClassifier(4), GradientBoostingClassifier(n_estimators=4)])
def test_a_warm_ensemble_learns_with_new_members(ensemble):
    learner = fitted(ensemble)
    for members in (8, 12):
        learner.fit(X, y, n_classes=3, seed=members, warm=True)
        assert len(learner.model_.estimators_) == members
    learner.fit(X, y, n_classes=3, seed=1)
    assert len(learner.model_.estimators_) == 4


def test_warm_needs_the_same_classes_and_something_learnt():
    learner = Estimator(LogisticRegression())
    with pytest.raises(LearnerError, match="has learnt nothing yet"):
        learner.fit(X, y, n_classes=3, seed=1, warm=True)
    learner.fit(X, y, n_classes=3, seed=1)
    with pytest.raises(LearnerError, match=r"classes \[0, 1\] of 3, but it has learnt \[0, 1, 2\] of 3; set"):
        learner.fit(X[y < 2], y[y < 2], n_classes=3, seed=1, warm=True)
    with pytest.raises(LearnerError, match="SVC cannot continue from what it learnt; set warm=False"):
        fitted(SVC()).fit(X, y, n_classes=3, seed=1, warm=True)


# ---------------------------------------------------------------------- on disk (more in test_model_file)


class Keeper(Recorder):
    """Saves itself: a lambda inside is more than any format without pickle can take."""

    def fit(self, X, y):
        self.rule = lambda value: int(value > 0)

    def predict(self, X):
        return np.array([self.rule(value) for value in X[:, 0]])

    def save(self, folder):
        (folder / "rule.txt").write_text("0")

    def load(self, folder):
        limit = float((folder / "rule.txt").read_text())
        self.rule = lambda value: int(value > limit)


class Reviver(Keeper):
    @classmethod
    def load(cls, folder):
        self = cls()
        Keeper.load(self, folder)
        return self


@pytest.mark.parametrize("kind", [Keeper, Reviver])
def test_an_object_with_save_and_load_keeps_itself(kind, tmp_path):
    learner = fitted(kind())
    learner.save(tmp_path)
    assert (tmp_path / "model" / "rule.txt").is_file()
    assert not (tmp_path / "model.skops").exists()
    loaded = Estimator(kind())
    loaded.load(tmp_path)
    assert np.array_equal(loaded.predict(X), learner.predict(X))


def test_a_save_that_fails_does_not_quote_the_data(tmp_path):
    class Leaky(Keeper):
        def save(self, folder):
            raise OSError("patient 4711")

    with pytest.raises(LearnerError, match=r"^Leaky\.save raised OSError$"):
        fitted(Leaky()).save(tmp_path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loaded_learner_goes_on_like_the_one_that_was_saved(tmp_path):
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3))
    learner = fitted(model, X[y != 1], y[y != 1])
    learner.save(tmp_path / "deep" / "folder")
    loaded = Estimator(model)
    loaded.load(tmp_path / "deep" / "folder")
    for one in (learner, loaded):
        one.fit(X[y != 1], y[y != 1], n_classes=3, seed=9, warm=True)
    assert np.array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    assert not loaded.predict_proba(X)[:, 1].any()


def test_columns_are_remembered_on_disk(tmp_path):
    frame = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "nurse")})
    split = ColumnTransformer([("age", StandardScaler(), ["age"]), ("job", OneHotEncoder(), ["job"])])
    learner = fitted(make_pipeline(split, LinearSVC()), frame)
    learner.save(tmp_path)
    loaded = Estimator(make_pipeline(split, LinearSVC()))
    loaded.load(tmp_path)
    assert np.array_equal(loaded.predict(frame[["job", "age"]]), learner.predict(frame))


class Own(BaseEstimator):
    def __init__(self, shift=0, random_state=None):
        self.shift, self.random_state = shift, random_state

    def fit(self, X, y):
        self.drawn_ = np.random.default_rng(self.random_state).integers(1000)
        return self

    def predict(self, X):
        return np.full(len(X), self.shift)


def test_a_scikit_learn_style_class_of_ones_own():
    learner = fitted(Own(shift=2))
    assert (learner.predict(X) == 2).all()
    assert fitted(Own(), seed=4).model_.drawn_ == fitted(Own(), seed=4).model_.drawn_


def test_a_class_inside_a_function_is_refused_at_once():
    class Hidden(Recorder):
        pass

    with pytest.raises(LearnerError, match="Hidden is a class inside a function"):
        Estimator(Hidden())


def test_a_pipeline_is_called_by_its_last_step():
    assert Estimator(make_pipeline(StandardScaler(), SVC())).name == "SVC"
