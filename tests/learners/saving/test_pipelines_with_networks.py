"""Networks and skorch nets as estimators: alone, as the last step of a pipeline, in an ensemble."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from torch import nn

from cosilo import CoFED, Federation, Silo
from cosilo.learners import Estimator, Network, Training, zoo

X, y = load_digits(return_X_y=True)
X = X / 16


def network(width=32):
    return Network(lambda shape, k: zoo.mlp(shape, k, hidden=[width]), Training(epochs=8, lr=0.01))


class Net(nn.Module):
    def __init__(self, inputs=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(-1))

    def forward(self, X):
        return self.layers(X)


def skorch(**options):
    return NeuralNetClassifier(Net, max_epochs=8, lr=0.3, train_split=None, **options)


MODELS = {
    "network": make_pipeline(StandardScaler(), PCA(30, random_state=0), network()),
    "skorch": skorch(),
    "skorch in a pipeline": make_pipeline(StandardScaler(), skorch()),
}


@pytest.mark.parametrize("name", ["network", "skorch", "skorch in a pipeline"])
def test_they_learn_and_come_back_to_the_last_bit(name, tmp_path, capsys):
    model = MODELS[name]
    learner = Estimator(model)
    learner.fit(X[:400], y[:400], n_classes=12, seed=1)
    assert (learner.predict(X[400:600]) == y[400:600]).mean() > 0.6
    assert capsys.readouterr().out == ""
    learner.save(tmp_path)
    other = Estimator(model)
    other.load(tmp_path)
    assert np.array_equal(other.predict_proba(X[:50]), learner.predict_proba(X[:50]))
    assert any(tmp_path.rglob("*.safetensors"))
    again = Estimator(model)
    again.fit(X[:400], y[:400], n_classes=12, seed=1)
    assert np.array_equal(again.predict_proba(X[:50]), learner.predict_proba(X[:50]))
    last = getattr(model, "steps", [(None, model)])[-1][1]
    assert not getattr(last, "initialized_", False)  # the template stays untouched
    assert getattr(last, "module_", None) is None


def test_federated_with_each_other(tmp_path):
    silos = [
        Silo("network", X[:300], y[:300], MODELS["network"]),
        Silo("skorch", X[300:600], y[300:600], MODELS["skorch in a pipeline"]),
    ]
    run = Federation(silos, X[600:900], CoFED()).run(tmp_path)
    frame = run.to_frame()
    assert frame["failures"].tolist() == ["", ""]
    assert (frame["federated_accuracy"] > 0.7).all()
    assert run.silos["network"].predict(X[:3]).dtype.kind == "i"
