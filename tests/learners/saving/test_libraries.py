"""LightGBM, XGBoost and CatBoost as they come: alone, in pipelines, in files of their own formats."""

import pickle

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner
from xgboost import XGBClassifier

from cosilo.cli.main import app
from cosilo.learners import Estimator
from cosilo.learners.encoding import with_encoder
from cosilo.learners.saving import model_file

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(300) < 0.2, np.nan, X[:, 20]),
        "job": pd.Categorical(np.where(X[:, 30] > 3, "cook", "nurse")),
        "pay": X[:, 42],
    }
)

BOOSTERS = {
    "lightgbm": LGBMClassifier(n_estimators=3),
    "xgboost": XGBClassifier(n_estimators=3, enable_categorical=True),
    "catboost": CatBoostClassifier(iterations=3),
}
SUFFIX = {"lightgbm": ".txt", "xgboost": ".ubj", "catboost": ".cbm"}


def trained(model, data=X, seed=1):
    learner = Estimator(model)
    learner.fit(data, y, n_classes=12, seed=seed)
    return learner


def saved_and_loaded(learner, folder):
    learner.save(folder)
    other = Estimator(learner.model)
    other.load(folder)
    return other


@pytest.fixture
def no_pickle(monkeypatch):
    """Any use of pickle is an error."""
    model_file.preload()  # skops imports it

    def refuse(*args, **options):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)


@pytest.mark.parametrize(
    ("library", "inside"),
    [
        *((library, inside) for library in BOOSTERS for inside in ("alone", "pipeline")),
        ("lightgbm", "voting"),
        ("xgboost", "calibrated"),
        ("catboost", "bagging"),
    ],
)
def test_a_booster_is_kept_in_its_own_format(library, inside, tmp_path, no_pickle):
    booster = BOOSTERS[library]
    model = {
        "alone": booster,
        "pipeline": make_pipeline(StandardScaler(), booster),
        "voting": VotingClassifier([("a", booster)], voting="soft"),
        "calibrated": CalibratedClassifierCV(booster, cv=2),
        "bagging": BaggingClassifier(booster, n_estimators=2),
    }[inside]
    learner = trained(model)
    loaded = saved_and_loaded(learner, tmp_path)
    assert np.array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    assert np.array_equal(loaded.predict(X), learner.predict(X))
    assert loaded.predict(X).shape == (300,)
    assert (loaded.predict(X[:200]) == y[:200]).mean() > 0.6
    files = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {".json", ".skops", SUFFIX[library]}


@pytest.mark.parametrize("library", BOOSTERS)
def test_the_library_itself_reads_the_file(library, tmp_path):
    learner = trained(BOOSTERS[library])
    learner.save(tmp_path)
    (path,) = tmp_path.rglob(f"*{SUFFIX[library]}")
    if library == "lightgbm":
        from lightgbm import Booster

        said = Booster(model_file=path).predict(X)
    elif library == "xgboost":
        other = XGBClassifier()
        other.load_model(path)
        said = other.predict_proba(X)
    else:
        said = CatBoostClassifier().load_model(path).predict_proba(X)
    assert np.array_equal(said.argmax(1), learner.predict(X))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_missing_numbers_and_categories_reach_the_booster(library, tmp_path):
    learner = trained(BOOSTERS[library], FRAME)
    loaded = saved_and_loaded(learner, tmp_path)
    assert np.array_equal(loaded.predict_proba(FRAME), learner.predict_proba(FRAME))
    assert np.array_equal(loaded.predict_proba(FRAME[["pay", "age", "job"]]), learner.predict_proba(FRAME))


def test_categories_of_catboost(tmp_path):
    learner = trained(CatBoostClassifier(iterations=3, cat_features=["job"]), FRAME)
    loaded = saved_and_loaded(learner, tmp_path)
    assert np.array_equal(loaded.predict_proba(FRAME), learner.predict_proba(FRAME))


def test_early_stopping_is_kept(tmp_path):
    model = LGBMClassifier(n_estimators=30)
    learner = trained(model)
    learner.model_._Booster.best_iteration = learner.model_._best_iteration = 2
    loaded = saved_and_loaded(learner, tmp_path)
    assert np.array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    assert not np.array_equal(loaded.predict_proba(X), learner.model_.predict_proba(X, num_iteration=30))


@pytest.mark.parametrize("library", BOOSTERS)
def test_training_depends_on_the_seed_alone_prints_nothing_and_leaves_no_files(
    library, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    model = {
        "lightgbm": LGBMClassifier(n_estimators=3, subsample=0.5, subsample_freq=1),
        "xgboost": XGBClassifier(n_estimators=3, subsample=0.5),
        "catboost": CatBoostClassifier(iterations=3, rsm=0.5),
    }[library]
    one, two, other = trained(model), trained(model), trained(model, seed=2)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_what_the_user_set_stays(capfd):
    learner = trained(
        CatBoostClassifier(iterations=2, verbose=True, thread_count=2, allow_writing_files=False)
    )
    assert "learn:" in capfd.readouterr().out
    assert learner.model_.get_params()["thread_count"] == 2
    assert trained(LGBMClassifier(n_estimators=2, n_jobs=2, random_state=7)).model_.random_state == 7


def test_a_recipe_gives_catboost_numbers_unless_it_knows_the_words():
    frame = FRAME.drop(columns="age").astype({"job": str})
    encoded = with_encoder(CatBoostClassifier(iterations=2), frame)
    assert type(encoded).__name__ == "Pipeline"
    assert trained(encoded, frame).predict(frame).shape == (300,)
    knows = CatBoostClassifier(iterations=2, cat_features=["job"])
    assert with_encoder(knows, frame) is knows


RECIPE = """
[method]
use = "cofed"
alpha = 0.3

[pool]
rest = true
size = 200

[simulation]
dataset = "adult"
per_class = 400
split = { use = "iid", silos = 3, size = 100 }
test = 100

[[simulation.learners]]
use = "lightgbm.LGBMClassifier"
n_estimators = 4

[[simulation.learners]]
use = "xgboost.XGBClassifier"
n_estimators = 4

[[simulation.learners]]
use = "catboost.CatBoostClassifier"
iterations = 4
"""


def test_three_boosters_in_one_federation_by_command(tmp_path, monkeypatch, real_data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    ran = CliRunner().invoke(app, ["run", "recipe.toml", "--dir", "out"])
    assert ran.exit_code == 0, ran.output
    suffixes = {path.suffix for path in (tmp_path / "out" / "silos").rglob("model.parts/*")}
    assert suffixes == {".txt", ".ubj", ".cbm"}
    assert not list(tmp_path.rglob("catboost_info"))
    from cosilo import Run

    frame = Run(tmp_path / "out").to_frame()
    assert frame["failures"].tolist() == ["", "", ""]
    assert (frame["federated_accuracy"] > 0.5).all()


def test_one_hot_pipeline_of_the_owner(tmp_path):
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["job"]), remainder="passthrough"
    )
    learner = trained(make_pipeline(columns, LGBMClassifier(n_estimators=3)), FRAME)
    loaded = saved_and_loaded(learner, tmp_path)
    assert np.array_equal(loaded.predict_proba(FRAME), learner.predict_proba(FRAME))
