"""The traps that public implementations fell into, a test each (METHODS: known traps)."""

import random
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import FML, FedAvg, Federation, FedProx, PersonalisedFedAvg, Silo
from cosilo.data import dirichlet
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import DataError
from cosilo.silo.predicting import predict

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, zoo  # noqa: E402
from cosilo.methods.fml import divergence, mutual  # noqa: E402

X, Y = load_digits(return_X_y=True)
SHARES = ["weights", "size", "metrics"]
RECIPE = Training(optimiser="sgd", momentum=0, lr=0.1, batch=16, schedule="constant")


def small(shape, k):
    return zoo.mlp(shape, k, hidden=[16])


def silos(builder=small, training=RECIPE, count=3, n=60, **options):
    found = []
    for place in range(count):
        mine = np.flatnonzero(np.isin(Y, [place, place + 1]))[place::count][:n]
        found.append(
            Silo(f"silo-{place}", X[mine] / 16, Y[mine], Network(builder, training), shares=SHARES, **options)
        )
    return found


def weights(method, folder, **options):
    return Federation(silos(**options), method=method, seed=3).run(folder).global_weights()


def test_the_divergence_is_a_mean_over_instances_and_not_over_classes():
    outputs, peer = torch.zeros(1, 10), torch.zeros(1, 10)
    peer[0, 0] = 50.0  # quite certain
    # p is 1/10 everywhere: the gradient is −9/10 at the peer's class, not a tenth of that.
    assert divergence(outputs, peer)[0, 0].item() == pytest.approx(-0.9)


def test_a_peer_is_not_moved_by_the_others_loss():
    """With α = 1 and β = 1 neither loss has a word of the other: both train as if alone."""
    x, y = X[:40].astype(np.float32) / 16, (Y[:40] > 4).astype(np.int64)
    pair = [Network(small, RECIPE) for _ in range(2)]
    for seed, network in enumerate(pair):
        network.begin(x, n_classes=2, seed=seed)
    alone = Network(small, RECIPE)
    alone.begin(x, n_classes=2, seed=1)
    training = RECIPE.model_copy(update={"epochs": 2})
    pair[0].train(x, y, seed=7, training=training, loss=mutual(0.0), peers=[(pair[1], mutual(1.0))])
    alone.fit(x, y, n_classes=2, seed=7, warm=True, training=training)
    mine, other = pair[1].weights(), alone.weights()
    assert all(np.array_equal(mine[name], other[name]) for name in mine)


def test_batch_norm_statistics_are_averaged_too(tmp_path):
    class Normed(torch.nn.Module):
        def __init__(self, shape, k):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(shape[0])
            self.out = torch.nn.Linear(shape[0], k)

        def forward(self, x):
            return self.out(self.norm(x))

    # One batch with everything: the running mean of a silo is a tenth of its data's mean.
    whole = RECIPE.model_copy(update={"batch": 1000})
    members = silos(Normed, whole, test=None)
    expected = np.mean([0.1 * (silo.data.all[0]).mean(axis=0) for silo in members], axis=0)
    for method in (FedAvg(rounds=1, weighting="equal"), FML(rounds=1)):
        run = Federation(members, method=method).run(tmp_path / method.name)
        assert run.global_weights()["norm.running_mean"] == pytest.approx(expected, abs=1e-6)
        assert run.global_weights()["norm.num_batches_tracked"] == 1


def test_the_last_round_is_reported_and_not_the_best(tmp_path):
    """Means that first help and then destroy: the result is the ruin, not the peak."""

    class Sabotaged(FedAvg):
        def merged(self, silos, replies, state):
            mean = super().merged(silos, replies, state)
            return mean if state["round"] < 4 else {name: -array for name, array in mean.items()}

    run = Federation(silos(), method=Sabotaged(rounds=6, epochs=3)).run(tmp_path / "run")
    rounds = {
        stage: np.mean([s["accuracy"] for s in f.values()]) for stage, f in run.result["scores"].items()
    }
    assert rounds["federated"] < max(rounds.values()) - 0.1
    last = []
    for silo in run.silos.values():
        X, y = silo.data.test
        last.append(np.mean(predict(silo, X, silo.among) == y))
    assert np.mean(last) == pytest.approx(rounds["federated"])


class Careless(torch.nn.Module):
    """Draws from every source of chance that there is."""

    def __init__(self, shape, k):
        super().__init__()
        self.out = torch.nn.Linear(shape[0], k)

    def forward(self, x):
        if self.training:
            x = x + random.random() + np.random.random() + torch.rand(1)  # noqa: NPY002
        return self.out(x)


def test_every_source_of_chance_is_seeded(tmp_path):
    first = weights(FedAvg(rounds=2), tmp_path / "one", builder=Careless)
    random.random(), np.random.random(), torch.rand(3)  # noqa: NPY002
    second = weights(FedAvg(rounds=2), tmp_path / "two", builder=Careless)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_an_impossible_dirichlet_split_says_so_in_time():
    with pytest.raises(DataError):
        dirichlet(Y[:60], silos=30, concentration=0.001, min_size=10, seed=0)


def test_no_method_is_fedavg_in_disguise(tmp_path):
    methods = {
        "fedavg": FedAvg(rounds=2, epochs=2),
        "fedprox": FedProx(rounds=2, epochs=2, mu=0.5),
        "fml": FML(rounds=2, epochs=2),
        "equal": FedAvg(rounds=2, epochs=2, weighting="equal"),
    }
    members = silos()
    members[0] = Silo(
        "silo-0", X[:40] / 16, Y[:40] % 3, Network(small, RECIPE), shares=SHARES
    )  # another size
    found = {}
    for name, method in methods.items():
        run = Federation(members, method=method, seed=1).run(tmp_path / name)
        found[name] = np.concatenate([array.ravel() for array in run.global_weights().values()])
    names = list(found)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            assert np.abs(found[one] - found[other]).max() > 1e-5, (one, other)
    tuned = Federation(members, method=PersonalisedFedAvg(rounds=2, epochs=2), seed=1).run(tmp_path / "tuned")
    own = [silo.learner.weights()["head.bias"] for silo in tuned.silos.values()]
    assert not np.array_equal(own[0], own[1])  # each silo's is its own


class Sleepy(torch.nn.Linear):
    """Never comes back."""

    def __init__(self, shape, k):
        super().__init__(shape[0], k)

    def forward(self, x):
        if self.training:
            time.sleep(3600)
        return super().forward(x)


def test_a_silo_that_hangs_does_not_hold_up_the_others(tmp_path):
    members = silos(lambda shape, k: torch.nn.Linear(shape[0], k))
    members.append(Silo("sleepy", X[:40] / 16, Y[:40] % 3, Network(Sleepy, RECIPE), shares=SHARES))
    federation = Federation(members, method=FedAvg(rounds=2), timeout=2, engine=LocalEngine(2))
    run = federation.run(tmp_path / "run")
    assert {failure["silo"] for failure in run.result["failures"]} == {"sleepy"}
    assert all(
        "timeout of 2 s" in failure["text"]
        for failure in run.result["failures"]
        if failure["step"] != "judge"
    )
    assert len(run.scores("federated")) >= 3
