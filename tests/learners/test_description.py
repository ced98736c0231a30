"""Two learners with the same description learn the same; what they are made of is named with its version."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from cosilo.learners import Network, Training, zoo
from cosilo.learners.adapt import as_learner
from cosilo.learners.description import describe

OWN = """
LEAST = {least}

def helper(x):
    # {comment}
    return x * {factor}


class Mine:
    bins = {bins}

    def __init__(self, depth=3):
        self.depth = depth

    def fit(self, X, y):
        self.means_ = helper(X) if len(X) > LEAST else X

    def predict(self, X):
        return X
"""
AS_IT_WAS = {"least": 3, "comment": "a", "factor": 2, "bins": 5}


def own(**changes: object) -> object:
    names: dict = {"__name__": "mine"}
    exec(OWN.format(**{**AS_IT_WAS, **changes}), names)
    return describe(as_learner(names["Mine"]())).value


def test_a_class_of_ones_own_is_what_it_does():
    assert own() == own() == own(comment="another comment")
    changed = [own(least=4), own(factor=3), own(bins=6)]
    assert all(one != own() for one in changed)
    assert own()["depth"] == 3
    assert "means_" not in own()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DecisionTreeClassifier(), DecisionTreeClassifier(max_depth=1)),
        (make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(), SVC(C=2))),
        (make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(with_mean=False), SVC())),
        (
            VotingClassifier([("a", SVC()), ("b", SVC())]),
            VotingClassifier([("a", SVC()), ("b", SVC(gamma=1))]),
        ),
        (SVC(class_weight={0: 1}), SVC(class_weight={0: 2})),
        (
            RandomForestClassifier(random_state=np.random.RandomState(1)),
            RandomForestClassifier(random_state=np.random.RandomState(2)),
        ),
        (
            make_pipeline(FunctionTransformer(lambda X: X + 1), SVC()),
            make_pipeline(FunctionTransformer(lambda X: X + 2), SVC()),
        ),
        (
            make_pipeline(FunctionTransformer(functools.partial(np.clip, a_min=0)), SVC()),
            make_pipeline(FunctionTransformer(functools.partial(np.clip, a_min=1)), SVC()),
        ),
        (Network(zoo.find("mlp")), Network(zoo.find("mlp"), Training(lr=0.1))),
        (Network(zoo.find("mlp")), Network(zoo.find("mlp"), choices=[{"lr": 0.1}])),
        (Network(zoo.find("mlp")), Network(zoo.find("cnn"))),
        (nn.Linear(4, 2), nn.Linear(4, 2)),  # with other weights
        (nn.Sequential(nn.Flatten(), nn.ReLU()), nn.Sequential(nn.Flatten(), nn.Tanh())),
    ],
)
def test_what_differs_shows(one, other):
    first, second = describe(as_learner(one)).value, describe(as_learner(other)).value
    assert first == describe(as_learner(one)).value == json.loads(json.dumps(first))
    assert first != second


def test_what_was_learnt_is_left_out():
    learner = as_learner(DecisionTreeClassifier())
    before = describe(learner)
    learner.fit(np.eye(4), np.array([0, 1, 0, 1]), n_classes=2, seed=1)
    assert describe(learner) == before
    assert before.versions.keys() == {"cosilo", "numpy", "python", "sklearn"}


def test_it_is_the_same_in_another_process():
    script = (
        "import json; from sklearn.ensemble import RandomForestClassifier as F\n"
        "from cosilo.learners.description import describe\n"
        "def own(x, among={'b', 'a', 'c'}): return x in {'one', 'two', 'three'}\n"
        "print(json.dumps([describe(F(class_weight={1: 2})).value, describe(own).value]))"
    )
    said = {subprocess.run([sys.executable, "-c", script], capture_output=True).stdout for _ in range(3)}
    assert len(said) == 1
    assert len(json.loads(said.pop())) == 2


def test_a_thing_that_holds_itself_has_an_end():
    class Loop:
        def __init__(self):
            self.me = self

    assert describe(Loop()).value["me"] == "…"
