"""FedBE: what is drawn, what the teachers say, what the student learns; by hand where that is possible."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import FedAvg, FedBE, Federation, Silo
from cosilo.aggregation.averaging import mean
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError
from cosilo.methods.fedbe import RunningMean, sharpened, soft_cross_entropy

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


class Kept(FedBE):
    """Keeps what the models drawn are, beside where the round began and what the silos sent."""

    def merged(self, silos, replies, state):
        SEEN["start"] = state.group("weights")
        SEEN["silos"] = [(reply.group("weights"), reply.integer("size")) for reply in replies.values()]
        SEEN["drawn"] = self._draws(replies, state.group("weights"), mean(SEEN["silos"]), silos.rng)
        return mean(SEEN["silos"])


SEEN = {}


def test_models_are_drawn_around_the_start_of_the_round(tmp_path):
    """What the authors' code computes, written down tensor by tensor, with sizes for weights."""
    unequal = [*silos(2), Silo("small", X[:20] / 16, Y[:20] % 2, Network(small, GOOD), shares=SHARES)]
    method = Kept(rounds=2, epochs=2, samples=400, local=False)
    Federation(unequal, pool=X[900:1000] / 16, method=method, seed=3).run(tmp_path / "run")
    start, models = SEEN["start"], SEEN["silos"]
    sizes = np.array([size for _, size in models], float)
    assert len(set(sizes)) > 1
    for name, begin in start.items():
        updates = np.array([weights[name].astype(float) - begin for weights, _ in models])
        norms = np.array([np.sqrt((update**2).sum()) for update in updates])
        units = np.array([update / norm for update, norm in zip(updates, norms, strict=True)])
        share = sizes / sizes.sum()
        centre = np.tensordot(share, units, 1)
        spread = np.sqrt(np.maximum(np.tensordot(share, units**2, 1) - centre**2, 1e-5))
        length = share @ norms
        drawn = np.array([model[name] for model in SEEN["drawn"]])
        error = spread * 0.1 * length / np.sqrt(len(drawn))
        assert np.abs(drawn.mean(0) - (begin + length * centre)).max() < 6 * error.max()
        np.testing.assert_allclose(drawn.std(0), 0.1 * length * spread, rtol=0.25)


def test_mixtures_weigh_by_size(tmp_path):
    unequal = [*silos(1), Silo("small", X[:8] / 16, Y[:8] % 2, Network(small, GOOD), shares=SHARES)]
    method = Kept(rounds=1, samples=500, draw="dirichlet", local=False)
    Federation(unequal, pool=X[900:1000] / 16, method=method, seed=3).run(tmp_path / "run")
    (large, n), (little, m) = SEEN["silos"]
    assert n > 2 * m
    name = max(large, key=lambda key: np.abs(large[key] - little[key]).max())
    place = np.unravel_index(np.argmax(np.abs(large[name] - little[name])), large[name].shape)
    ways = [
        (model[name][place] - little[name][place]) / (large[name][place] - little[name][place])
        for model in SEEN["drawn"]
    ]
    drawn = np.random.default_rng(0).dirichlet(np.ones(2), 20_000)
    expected = (drawn[:, 0] * n / (drawn @ [n, m])).mean()
    assert np.mean(ways) == pytest.approx(expected, abs=0.05)


def test_the_mean_over_training_begins(tmp_path):
    """On a pool of 100 there are 2 · 1 steps; the authors' 500 would never come."""
    pool = X[900:1000] / 16
    federation = Federation(silos(), pool=pool, method=FedBE(distil_epochs=2, average_from=500))
    line = "method.average_from: got 500; the student has 2 steps on this pool: raise distil_epochs"
    assert any(line in problem for problem in federation.check())
    assert Federation(silos(), pool=pool, method=FedBE(distil_epochs=2)).check() == []
    assert FedBE()._average_from(10_000) == 526
    assert FedBE(distil_epochs=1)._average_from(50) == 1
