import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cosilo.errors import LearnerError
from cosilo.learners import Estimator
from cosilo.learners.saving.tree_arrays import are_trees

X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200]


def saved_and_loaded(model, folder, **options):
    learner = Estimator(model)
    learner.fit(X, y, n_classes=10, seed=1, **options)
    learner.save(folder)
    loaded = Estimator(model)
    loaded.load(folder)
    return learner, loaded


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, max_depth=4),
        ExtraTreesClassifier(5, random_state=3),
        GradientBoostingClassifier(n_estimators=3, max_depth=2),
        AdaBoostClassifier(n_estimators=3),
        BaggingClassifier(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3, categorical_features=[2]),
        make_pipeline(StandardScaler(), RandomForestClassifier(3)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_ensembles_are_a_few_arrays_and_come_back_to_the_last_bit(model, tmp_path):
    learner, loaded = saved_and_loaded(model, tmp_path)
    assert np.array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    assert len(list(tmp_path.rglob("*.npz"))) == 1


def test_the_description_does_not_grow_with_the_trees(tmp_path):
    sizes = []
    for trees in (5, 50):
        saved_and_loaded(RandomForestClassifier(trees, max_depth=3), tmp_path / str(trees))
        with zipfile.ZipFile(tmp_path / str(trees) / "model.skops") as file:
            sizes.append((len(file.namelist()), len(file.read("schema.json")) // 100))
    assert sizes[0] == sizes[1]


def test_every_tree_has_its_own_seed_and_parameters(tmp_path):
    learner, loaded = saved_and_loaded(RandomForestClassifier(4, max_depth=3, max_features=5), tmp_path)
    for mine, theirs in zip(learner.model_.estimators_, loaded.model_.estimators_, strict=True):
        assert mine.get_params() == theirs.get_params()
        assert mine.random_state == theirs.random_state
    assert len({tree.random_state for tree in loaded.model_.estimators_}) == 4


def test_a_loaded_forest_goes_on_as_the_one_that_was_saved(tmp_path):
    learner, loaded = saved_and_loaded(RandomForestClassifier(3), tmp_path)
    for one in (learner, loaded):
        one.fit(X, y, n_classes=10, seed=5, warm=True)
    assert len(loaded.model_.estimators_) == 6
    assert np.array_equal(loaded.predict_proba(X), learner.predict_proba(X))


def test_only_fitted_trees_of_one_kind_are_taken():
    fitted = [DecisionTreeClassifier(max_depth=d, random_state=d).fit(X, y) for d in (1, 2)]
    assert are_trees([fitted[0], fitted[0]])
    assert not are_trees(fitted)  # another depth is more than another seed
    assert not are_trees([DecisionTreeClassifier()])
    assert not are_trees([])
    assert not are_trees([fitted[0], StandardScaler()])
    assert not are_trees(tuple(fitted))


@pytest.mark.parametrize("field", ["left_child", "feature"])
def test_a_tree_that_points_outside_is_refused(field, tmp_path):
    saved_and_loaded(RandomForestClassifier(2, max_depth=2), tmp_path)
    (path,) = tmp_path.rglob("*.npz")
    with np.load(path) as file:
        arrays = dict(file)
    arrays["nodes"][field][0] = 10_000
    np.savez(path, **arrays)
    with pytest.raises(LearnerError, match=r"trees-0\.npz is damaged: a tree in it points outside"):
        Estimator(RandomForestClassifier()).load(tmp_path)
