"""Missing values in real data: learners that take them get them, and only others are told so."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn
from xgboost import XGBClassifier

from cosilo import CoFED, Federation, Silo
from cosilo.errors import DataError, LearnerError
from cosilo.learners import Estimator, Network, Training
from cosilo.learners.encoding import with_encoder
from cosilo.learners.missing import check_missing

cancer = load_breast_cancer(as_frame=True)
rng = np.random.default_rng(3)
WHOLE = cancer.data.iloc[:, :4].set_axis(["radius", "texture", "edge", "area"], axis=1)
HOLED = WHOLE.mask(rng.random(WHOLE.shape) < 0.1)
HOLED["edge"] = WHOLE["edge"]
Y = cancer.target.to_numpy()
MIXED = HOLED.assign(ward=np.where(rng.random(len(Y)) < 0.2, None, np.where(WHOLE["area"] > 600, "a", "b")))


def check(learner, X, asked=None):
    learner = learner if isinstance(learner, Network) else Estimator(learner)
    check_missing(learner, X, Y.astype(np.int64), 2, "silo 'a'", asked)


class Forgiving(nn.Module):
    """A network of somebody who knows about holes."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.layer = nn.Linear(input_shape[0], n_classes)

    def forward(self, x):
        return self.layer(x.nan_to_num() / 1000)


@pytest.mark.parametrize(
    "learner",
    [
        HistGradientBoostingClassifier(max_iter=3),
        XGBClassifier(n_estimators=3),
        make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()),
        with_encoder(HistGradientBoostingClassifier(max_iter=3), HOLED),
        Network(lambda shape, k: Forgiving(shape, k), Training(epochs=1)),
    ],
    ids=["histogram", "xgboost", "imputer", "encoded", "network"],
)
def test_who_takes_missing_values_gets_them(learner):
    check(learner, HOLED)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression"),
        (Network(lambda shape, k: nn.Linear(shape[0], k), Training(epochs=1)), "<lambda>"),
    ],
    ids=["logistic", "network"],
)
def test_who_cannot_is_told_so_with_all_columns(learner, name):
    with pytest.raises(DataError) as error:
        check(learner, HOLED)
    assert str(error.value).startswith(
        f"silo 'a': 'radius', 'texture', 'area' have missing values, which {name} does not take; "
    )
    check(learner, WHOLE)


def test_numbers_and_words_at_once():
    with pytest.raises(DataError, match="'radius', 'texture', 'area', 'ward' have missing values"):
        check(with_encoder(LogisticRegression(), MIXED), MIXED)
    check(with_encoder(HistGradientBoostingClassifier(max_iter=2), MIXED), MIXED)


def test_a_pool_with_holes_for_a_learner_that_never_saw_one():
    with pytest.raises(DataError, match="which LogisticRegression does not take"):
        check(make_pipeline(StandardScaler(), LogisticRegression()), WHOLE, HOLED)
    check(HistGradientBoostingClassifier(max_iter=2), WHOLE, HOLED)


def test_a_learner_that_fails_anyway_is_not_said_to_fail_for_holes():
    check(LogisticRegression(C=-1), HOLED)
    with pytest.raises(LearnerError, match=r"^LogisticRegression\.fit raised InvalidParameterError"):
        Estimator(LogisticRegression(C=-1)).fit(WHOLE, Y, n_classes=2, seed=1)


def test_new_instances_with_holes_are_named():
    learner = Estimator(make_pipeline(StandardScaler(), LogisticRegression()))
    learner.fit(WHOLE, Y, n_classes=2, seed=1)
    with pytest.raises(
        LearnerError, match=r"predict raised ValueError; 'radius', 'texture', 'area' have miss"
    ):
        learner.predict(HOLED)


def test_a_federation_over_real_data_with_holes(tmp_path):
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["ward"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["radius", "texture", "edge", "area"]),
    )
    silos = [
        Silo("filled", MIXED[:180], Y[:180], make_pipeline(columns, LogisticRegression())),
        Silo(
            "boosted",
            MIXED[180:360],
            Y[180:360],
            with_encoder(HistGradientBoostingClassifier(max_iter=5), MIXED),
        ),
    ]
    run = Federation(silos, MIXED[360:], CoFED()).run(tmp_path)
    assert (run.to_frame()["federated_accuracy"] > 0.8).all()
    with pytest.raises(DataError, match=r"^silo 'plain': 'radius', 'texture', 'area', 'ward' have missing"):
        Silo("plain", MIXED, Y, with_encoder(LogisticRegression(), MIXED))
