"""FedBE: what is drawn, what the teachers say, what the student learns; by hand where that is possible."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import FedAvg, FedBE, Federation, Silo
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError
from cosilo.methods.fedbe import RunningMean, deviations, sharpened, soft_cross_entropy

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, zoo  # noqa: E402
from cosilo.learners.tensors import Labelled  # noqa: E402
from cosilo.learners.trainee import Trainee  # noqa: E402
from cosilo.learners.training_loop import train  # noqa: E402

SHARES = ["weights", "size", "logits", "metrics"]
X, Y = load_digits(return_X_y=True)
GOOD = Training(optimiser="sgd", momentum=0.9, lr=0.05, batch=16, schedule="constant")


def small(shape, k):
    return zoo.mlp(shape, k, hidden=[16])


def silos(count=3, shares=SHARES):
    found = []
    for place in range(count):
        mine = np.flatnonzero(np.isin(Y, [place, place + 1]))[place::count][:60]
        found.append(Silo(f"silo-{place}", X[mine] / 16, Y[mine], Network(small, GOOD), shares=shares))
    return found


def test_sharpening_by_hand():
    # (0.6, 0.3, 0.1) squared is (0.36, 0.09, 0.01), which adds up to 0.46.
    sharp = sharpened(np.array([[0.6, 0.3, 0.1]]), temperature=0.5)
    assert sharp[0] == pytest.approx(np.array([0.36, 0.09, 0.01]) / 0.46)
    assert sharpened(np.array([[0.6, 0.4]]), temperature=1.0)[0] == pytest.approx([0.6, 0.4])


def test_the_gaussian_is_fitted_to_weights_or_to_updates_of_equal_length():
    models = [{"w": np.array([2.0, 0.0])}, {"w": np.array([-2.0, 0.0])}, {"w": np.array([0.0, 8.0])}]
    average = {"w": np.array([0.0, 0.0])}
    plain = deviations(models, average, normalise=False)["w"]
    assert plain == pytest.approx([8 / 3, 64 / 3])
    # Lengths 2, 2 and 8, their mean is 4: the updates become (4, 0), (−4, 0) and (0, 4).
    even = deviations(models, average, normalise=True)["w"]
    assert even == pytest.approx([32 / 3, 16 / 3])
    counters = {"n": np.array(3), "w": np.zeros(1)}
    assert list(deviations([counters], counters, normalise=True)) == ["w"]


def test_soft_labels_have_the_gradient_of_cross_entropy():
    z, p = torch.randn(5, 3, dtype=torch.float64), torch.rand(5, 3, dtype=torch.float64).softmax(1)
    leaf = z.clone().requires_grad_()
    torch.nn.functional.cross_entropy(leaf, p).backward()
    assert torch.allclose(soft_cross_entropy(z, p), leaf.grad, atol=1e-12)


def test_the_student_ends_as_the_mean_of_where_it_was():
    """One parameter, four steps by hand; from step 2 on every second one enters the mean."""

    class Slope(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor(0.0))

        def forward(self, x):
            return torch.cat([torch.zeros_like(x), self.w * x], dim=1)

    module = Slope()
    training = Training(optimiser="sgd", momentum=0, lr=0.5, batch=2, epochs=4, schedule="constant")
    data = Labelled(torch.tensor([[1.0], [1.0]]), torch.tensor([[0.2, 0.8], [0.2, 0.8]]), None)

    def distil(module, average):
        student = Trainee(module, training, 2, "Slope", loss=soft_cross_entropy, after_step=average)
        train([student], data, training, seed=0)
        average.take_over()

    distil(module, RunningMean(first=2, every=2))
    w, path = 0.0, []
    for _ in range(4):
        w -= 0.5 * (1 / (1 + np.exp(-w)) - 0.8)
        path.append(w)
    assert module.w.item() == pytest.approx((path[1] + path[3]) / 2, abs=1e-6)
    late = Slope()
    distil(late, RunningMean(first=500, every=25))
    assert late.w.item() == pytest.approx(path[-1], abs=1e-6)


@pytest.mark.parametrize("draw", ["weights", "updates", "dirichlet"])
def test_it_learns_and_is_not_fedavg(tmp_path, draw):
    pool = X[900:1300] / 16
    method = FedBE(rounds=3, epochs=3, samples=4, draw=draw, distil_epochs=5, average_from=5, average_every=2)
    run = Federation(silos(), pool=pool, method=method, seed=1).run(tmp_path / "be")
    average = Federation(silos(), method=FedAvg(rounds=3, epochs=3), seed=1).run(tmp_path / "avg")
    mine, theirs = run.global_weights(), average.global_weights()
    assert max(np.abs(mine[name] - theirs[name]).max() for name in mine) > 1e-3
    assert run.result["joint"]["federated"]["accuracy"] > 0.5
    asked = [ask["step"] for ask in run.asks()]
    assert asked.count("score") == asked.count("distil") == 3


def test_the_same_with_workers_and_without(tmp_path):
    pool = X[900:1000] / 16
    method = FedBE(rounds=2, samples=3, distil_epochs=2)
    runs = [
        Federation(silos(), pool=pool, method=method, engine=LocalEngine(workers)).run(
            tmp_path / str(workers)
        )
        for workers in (0, 2)
    ]
    one, other = (run.global_weights() for run in runs)
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_without_a_pool_and_without_leave(tmp_path):
    with pytest.raises(ConfigError, match="fedbe needs a pool"):
        Federation(silos(), method=FedBE())
    federation = Federation(silos(shares=["weights", "size"]), pool=X[900:1000] / 16, method=FedBE())
    assert "does not share 'logits', which fedbe needs" in federation.check()[0]


class Broken(FedBE):
    """The first silo's answers about the pool are no probabilities, and it cannot train the student."""

    def score(self, silo, **message):
        reply = super().score(silo, **message)
        return {**reply, "chances": reply["chances"] * 3} if silo.name == "silo-0" else reply

    def distil(self, silo, **message):
        if silo.name == "silo-1":
            raise ValueError
        return super().distil(silo, **message)


Broken.score.__step__ = FedBE.score.__step__
Broken.distil.__step__ = FedBE.distil.__step__


def test_a_silo_that_lies_and_one_that_fails_are_passed_over(tmp_path):
    pool = X[900:1000] / 16
    method = Broken(rounds=1, samples=2, distil_epochs=1)
    run = Federation(silos(), pool=pool, method=method).run(tmp_path / "run")
    failures = {(failure["silo"], failure["step"]) for failure in run.result["failures"]}
    assert failures == {("silo-0", "score"), ("silo-1", "distil")}
    assert "holds no sums of probabilities" in run.result["failures"][0]["text"]
    assert run.global_weights()
