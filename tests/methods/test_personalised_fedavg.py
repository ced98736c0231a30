"""Personalised FedAvg, by hand on one-parameter models."""

import numpy as np
import pytest

from cosilo import Federation, PersonalisedFedAvg, Silo

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

SHARED = ["weights", "size", "metrics"]


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


def one(name, X, y, lr=0.1, batch=100, **options):
    training = Training(optimiser="sgd", momentum=0, lr=lr, batch=batch, epochs=1, schedule="constant")
    learner = Network(OneWeight, training)
    return Silo(name, np.array(X)[:, None], y, learner, test=None, shares=SHARED, **options)


def gradient(w, X, y):
    """Of the mean cross-entropy: mean of (sigmoid(w·x) − y)·x."""
    X, y = np.array(X), np.array(y)
    return float(np.mean((1 / (1 + np.exp(-w * X)) - y) * X))


A = ([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1])


B = ([-2.0, 1.0, 0.5, -1.5], [0, 1, 0, 1])


def test_personalised_goes_on_from_the_global_weights(tmp_path):
    method = PersonalisedFedAvg(rounds=1, tuning_epochs=1)
    run = Federation([one("a", *A), one("b", *B)], method=method).run(tmp_path / "run")
    w = 0.5 - 0.1 * gradient(0.5, A[0] + B[0], A[1] + B[1])
    for name, data in (("a", A), ("b", B)):
        own = float(run.silos[name].learner.weights()["w"][0])
        assert own == pytest.approx(w - 0.1 * gradient(w, *data), abs=1e-6)


def test_every_judged_round_has_a_fine_tuned_model_and_goes_on_from_the_global_one(tmp_path):
    test = (np.array(A[0])[:, None], A[1])
    silos = [one("a", *A), one("b", *B)]
    for silo in silos:
        silo.data.test = silo.data._examples(*test, "test data")
    method = PersonalisedFedAvg(rounds=2, tuning_epochs=3)
    run = Federation(silos, method=method).run(tmp_path / "run")
    assert list(run.result["scores"]) == ["local", "round 1", "federated"]
    w = 0.5
    for stage in ("round 1", "federated"):
        w -= 0.1 * gradient(w, A[0] + B[0], A[1] + B[1])
        for name, data in (("a", A), ("b", B)):
            own = w
            for _ in range(3):
                own -= 0.1 * gradient(own, *data)
            right = np.mean((own * np.array(A[0]) > 0) == np.array(A[1]))
            assert run.scores(stage)[name] == right
    assert float(run.global_weights()["w"][0]) == pytest.approx(w, abs=1e-6)
    # What only the curve needs is not on the clock.
    timed = [ask["step"] for ask in run.asks() if ask["timed"]]
    assert timed == ["begin", "initial", "train", "train", "tune"]
