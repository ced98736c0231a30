"""A learner that cannot do what a run will ask of it is found in moments, in one line."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cosilo import CoFED, Federation, Institution, Local, Silo, Target
from cosilo.errors import LearnerError
from cosilo.learners import Network, Training, zoo
from cosilo.silo.smoke_test import smoke_test

X, Y = load_digits(return_X_y=True)
FITS: list[int] = []


def silo(learner: object, **options) -> Silo:
    return Silo("a", X[:300], Y[:300], learner, **options)


class Forgetful(DecisionTreeClassifier):
    """What it saves is not what it has learnt."""

    def save(self, folder):
        (folder / "nothing").touch()

    def load(self, folder):
        self.fit(np.eye(64)[:10], np.arange(10))


class Counts(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        FITS.append(len(y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


class Beyond(Counts):
    """It predicts what is no class."""

    def predict(self, X):
        return np.full(len(X), -1)


@pytest.mark.parametrize(
    ("learner", "line"),
    [
        (
            DecisionTreeClassifier(max_depth="six"),
            "silo 'a': DecisionTreeClassifier.fit raised InvalidParameterError (The 'max_depth' parameter of",
        ),
        (
            Beyond(),
            "silo 'a': Beyond.predict returned int64 of shape",
        ),
        (
            Forgetful(),
            "silo 'a': Forgetful answers differently after it was saved and loaded; give",
        ),
        (Network(zoo.find("lenet5")), "silo 'a': lenet5"),
    ],
)
def test_what_a_run_would_fail_with_is_said_before(learner, line):
    found = smoke_test(silo(learner))
    assert found.startswith(line)
    assert "\n" not in found


@pytest.mark.parametrize(
    "learner",
    [
        KNeighborsClassifier(200),  # more than the few it is tried out on
        CalibratedClassifierCV(LinearSVC(), cv=5),
        RandomForestClassifier(5),
        Network(zoo.find("mlp"), Training(patience=2, epochs=1000)),
    ],
)
def test_a_good_one_passes_and_stays_untrained(learner):
    mine = silo(learner)
    assert smoke_test(mine) is None
    assert smoke_test(silo(learner, pool=X[300:310], test=(X[310:320], Y[310:320]))) is None
    with pytest.raises(LearnerError):
        mine.learner.fitted()


@pytest.mark.parametrize(
    ("learner", "kind"),
    [
        (DecisionTreeRegressor(), "a regressor"),
        (LinearRegression(), "a regressor"),
        (GridSearchCV(LinearRegression(), {}), "a regressor"),
        (KMeans(2), "a clusterer"),
        (IsolationForest(), "an outlier detector"),
        (GaussianMixture(2), "a density estimator"),
    ],
)
def test_not_everything_that_predicts_is_a_classifier(learner, kind):
    name = type(learner).__name__
    with pytest.raises(LearnerError, match=f"{name} is {kind}; wants a classifier"):
        silo(learner)


def test_a_target_is_part_of_what_is_asked():
    target = Target(X[300:320], Y[300:320], X[320:330])
    assert smoke_test(silo(DecisionTreeClassifier(), target=target)) is None


def test_of_learners_that_are_the_same_one_is_tried_out():
    FITS.clear()
    silos = [Silo(name, X[:300], Y[:300], Counts()) for name in "abc"]
    wards = [Silo(name, X[:300], Y[:300], GaussianNB(var_smoothing="much")) for name in "de"]
    assert Federation(silos, X[300:400], CoFED()).check() == []
    assert len(FITS) == 1
    assert Federation(silos, method=Local()).check(learners=False) == []
    assert len(FITS) == 1
    (line,) = Federation([*silos, Institution("i", wards)], method=Local()).check()
    assert line.startswith("silo 'd': GaussianNB.fit raised InvalidParameterError")


def test_a_pool_has_an_instance_for_each_class():
    silos = [Silo(name, X[:300], Y[:300], GaussianNB()) for name in "ab"]
    (line,) = Federation(silos, X[300:301], CoFED()).check()
    assert line == (
        "the pool has 1 instance for 10 classes, and from fewer than one a class nothing can be learnt; "
        "wants hundreds"
    )
