"""FedProx, by hand on one-parameter models."""

import numpy as np
import pytest

from cosilo import FedAvg, Federation, FedProx, Run, Silo

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, losses  # noqa: E402

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


def final(run: Run) -> float:
    """The one weight of the global model, which every silo holds after the last round."""
    found = {float(silo.learner.weights()["w"][0]) for silo in run.silos.values()}
    assert len(found) == 1
    return found.pop()


def gradient(w, X, y):
    """Of the mean cross-entropy: mean of (sigmoid(w·x) − y)·x."""
    X, y = np.array(X), np.array(y)
    return float(np.mean((1 / (1 + np.exp(-w * X)) - y) * X))


A = ([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1])


B = ([-2.0, 1.0, 0.5, -1.5], [0, 1, 0, 1])


def test_the_gradient_of_fedprox_is_mu_times_the_distance(tmp_path):
    # Two epochs of full batches: the first step has no pull (w = w_t), the second mu·(w − w_t).
    mu, silo = 0.7, one("a", *A)
    run = Federation([silo, one("b", *A)], method=FedProx(rounds=1, epochs=2, mu=mu)).run(tmp_path / "prox")
    w = 0.5 - 0.1 * gradient(0.5, *A)
    assert final(run) == pytest.approx(w - 0.1 * (gradient(w, *A) + mu * (w - 0.5)), abs=1e-6)
    plain = Federation([silo, one("b", *A)], method=FedAvg(rounds=1, epochs=2)).run(tmp_path / "avg")
    assert final(plain) == pytest.approx(w - 0.1 * gradient(w, *A), abs=1e-6)
    assert final(plain) != final(run)


def test_the_proximal_term_is_squared(tmp_path):
    """Its gradient is μ(w − w_t), which grows with the distance; that of a plain norm does not."""

    class Two(torch.nn.Module):
        """Outputs that do not depend on the weight: all that moves it is the proximal term."""

        def __init__(self, shape=(1,), k=2):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([0.0]))
            self.calls = 0

        def forward(self, x):
            return torch.cat([x, x], dim=1) + self.w  # the same for both classes

    from cosilo.learners.trainee import Trainee
    from cosilo.methods.fedprox import proximal

    module = Two()
    trainee = Trainee(
        module, Training(optimiser="sgd", momentum=0, lr=0.1), 2, "Two", correction=proximal(0.5)
    )
    moved = []
    for distance in (0.0, 1.0, 2.0):
        with torch.no_grad():
            module.w.fill_(distance)  # the start, w_t, was 0
        out = trainee.outputs(torch.ones(4, 1))
        trainee.step(losses.cross_entropy(out, torch.tensor([0, 1, 0, 1])), rate=0.1)
        moved.append(distance - module.w.item())
    assert moved == pytest.approx([0.0, 0.1 * 0.5 * 1.0, 0.1 * 0.5 * 2.0], abs=1e-6)
