"""What a recipe names: methods, learners, networks."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

from cosilo import FedAvg
from cosilo.config.resolve import find_kind, find_method, import_object, known_method, make_learner
from cosilo.config.settings import LearnerSettings, MethodSettings
from cosilo.config.source import Source, allow_imports_beside
from cosilo.errors import ConfigError

X = np.zeros((2, 4), np.float32)


def test_methods_by_name_and_by_path():
    assert find_method(MethodSettings(use="fedavg", rounds=3)) == FedAvg(rounds=3)
    assert find_kind("cosilo.methods.fedavg.FedAvg", "x") is FedAvg
    assert known_method(MethodSettings(use="fedavg"), "f") == FedAvg()


@pytest.mark.parametrize(
    ("use", "line"),
    [
        ("fedavgg", r"x: there is no method 'fedavgg' \(did you mean 'fedavg'\?\); there are "),
        ("sklearn.svm.SVC", r"x: sklearn\.svm\.SVC is not a method"),
        ("nowhere.Method", r"x: cannot import 'nowhere' .*; is it installed\?"),
        ("cosilo.FedAvgg", r"x: 'cosilo' has no 'FedAvgg' \(did you mean 'FedAvg'\?\)"),
    ],
)
def test_a_wrong_method_is_one_line(use, line):
    with pytest.raises(ConfigError, match=f"^{line}") as error:
        find_kind(use, "x")
    assert "\n" not in str(error.value)


def test_between_organisations_only_what_comes_with_cosilo_is_known():
    with pytest.raises(ConfigError, match=r"f: method\.use: got 'cosilo\.methods\.fedavg\.FedAvg'; wants "):
        known_method(MethodSettings(use="cosilo.methods.fedavg.FedAvg"), "f")


def test_import_paths():
    assert import_object("sklearn.svm.SVC", "x") is SVC
    with pytest.raises(ConfigError, match="x: got 'SVC'; wants an import path, such as"):
        import_object("SVC", "x")


def test_learners_get_their_arguments_or_one_line_about_them():
    assert make_learner(LearnerSettings(use="sklearn.svm.SVC", C=3.0), X, "x").C == 3.0
    with pytest.raises(ConfigError, match=r"x: sklearn\.svm\.SVC does not take these settings: .*'D'"):
        make_learner(LearnerSettings(use="sklearn.svm.SVC", D=3.0), X, "x")


@pytest.mark.parametrize("use", ["os.mkdir", "subprocess.check_output", "pandas.read_pickle", "pathlib.Path"])
def test_what_has_no_fit_and_predict_is_not_called(use, tmp_path):
    # A recipe may lie where a virtual environment is: what is installed there is still not its owner's own.
    allow_imports_beside(Source("recipe", Path(sys.prefix).parent))
    place = tmp_path / "made"
    settings = LearnerSettings(use=use, path=str(place), args=["touch", str(place)])
    with pytest.raises(ConfigError) as error:
        make_learner(settings, X, "x")
    assert str(error.value).startswith(f"x.use: {use}: has no fit and predict, and was not called; wants ")
    assert not place.exists()


def test_a_function_that_makes_a_learner_stands_in_a_file_beside_the_recipe(tmp_path):
    (tmp_path / "beside_a_recipe.py").write_text(
        "from sklearn.svm import SVC\ndef made(C):\n    return SVC(C=C)\n"
    )
    allow_imports_beside(Source("recipe", tmp_path))
    assert make_learner(LearnerSettings(use="beside_a_recipe.made", C=2.0), X, "x").C == 2.0


def test_networks_by_name():
    pytest.importorskip("torch")
    learner = make_learner(LearnerSettings(use="mlp", training={"epochs": 2}), X, "x")
    assert (learner.name, learner.training.epochs) == ("mlp", 2)
    with pytest.raises(ConfigError, match=r"x: training\.epochs: "):
        make_learner(LearnerSettings(use="mlp", training={"epochs": 0}), X, "x")


def test_what_comes_with_cosilo_is_called_wherever_the_recipe_lies(monkeypatch):
    monkeypatch.setattr("cosilo.config.source._OWN", set())  # in a test that may be cosilo's own folder
    made = make_learner(LearnerSettings(use="cosilo.learners.gam.GAM"), X, "x")
    assert hasattr(made, "fit")
    with pytest.raises(ConfigError, match="was not called"):
        make_learner(LearnerSettings(use="cosilo.learners.module_weights.save"), X, "x")
