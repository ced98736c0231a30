"""FML: its losses on paper, FedAvg as a case of it, different networks, different tasks, crashes."""

import os
import signal
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import FML, FedAvg, Federation, Silo
from cosilo.errors import ConfigError, RunError

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, zoo  # noqa: E402
from cosilo.methods.fml import mutual  # noqa: E402

SHARED = ["weights", "metrics"]


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x; `w` begins at another value for the personalised network."""

    begin = 0.5

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([self.begin]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


class OtherWeight(OneWeight):
    begin = -1.0


A = ([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1])
STEP = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, epochs=1, schedule="constant")


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def test_both_losses_on_paper():
    # With the logits (0, w·x), p = σ(w·x) is the probability of class 1; for a peer with q:
    # ∂CE/∂w = mean of (p − y)·x and ∂KL(q ‖ p)/∂w = mean of (p − q)·x.
    X, y = np.array(A[0]), np.array(A[1])
    local, meme = Network(OtherWeight, STEP), Network(OneWeight, STEP)
    for network in (local, meme):
        network.begin(X[:, None], n_classes=2, seed=0)
    alpha, beta = 0.7, 0.4
    local.train(X[:, None], y, seed=0, training=STEP, loss=mutual(alpha), peers=[(meme, mutual(beta))])
    p, q = sigmoid(-1.0 * X), sigmoid(0.5 * X)
    slope_local = np.mean((alpha * (p - y) + (1 - alpha) * (p - q)) * X)
    slope_meme = np.mean((beta * (q - y) + (1 - beta) * (q - p)) * X)
    assert local.weights()["w"][0] == pytest.approx(-1.0 - 0.1 * slope_local, abs=1e-6)
    assert meme.weights()["w"][0] == pytest.approx(0.5 - 0.1 * slope_meme, abs=1e-6)


def test_temperature_softens_the_peers_word():
    X, y = np.array(A[0]), np.array(A[1])
    local, meme = Network(OtherWeight, STEP), Network(OneWeight, STEP)
    for network in (local, meme):
        network.begin(X[:, None], n_classes=2, seed=0)
    peers = [(meme, mutual(1.0, 2.0))]
    local.train(X[:, None], y, seed=0, training=STEP, loss=mutual(0.0, 2.0), peers=peers)
    slope = np.mean((sigmoid(-0.5 * X) - sigmoid(0.25 * X)) * X) / 2
    assert local.weights()["w"][0] == pytest.approx(-1.0 - 0.1 * slope, abs=1e-6)


# ---------------------------------------------------------------------- FedAvg is a case of it

X, Y = load_digits(return_X_y=True)
IMAGES = (X.reshape(-1, 8, 8) * 15).astype(np.uint8)
BIG = IMAGES.repeat(3, 1).repeat(3, 2)  # 24×24, large enough for every network of the zoo


def digits(builder, training, shares=("weights", "size", "metrics"), images=IMAGES, tasks=None, n=90):
    """Three silos with two or three digits each; none has all."""
    tasks = tasks or [(0, 1, 2), (2, 3), (3, 4, 0)]
    found = []
    for place, task in enumerate(tasks):
        mine = np.flatnonzero(np.isin(Y, task))[place::3][:n]
        builders = builder if isinstance(builder, list) else [builder] * len(tasks)
        learner = Network(builders[place], training)
        found.append(Silo(f"silo-{place}", images[mine], Y[mine], learner, shares=shares))
    return found


def small_mlp(shape, k):
    return zoo.mlp(shape, k, hidden=[24])


class Normed(torch.nn.Module):
    """Batch norm and a convolution: statistics, a counter, channels last."""

    def __init__(self, shape, k):
        super().__init__()
        self.conv = torch.nn.Conv2d(shape[0], 6, 3)
        self.norm = torch.nn.BatchNorm2d(6)
        self.out = torch.nn.Linear(6 * 36, k)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.conv(x))).flatten(1))


def final(run):
    """The global weights after the last round."""
    return run.global_weights()


@pytest.mark.parametrize("builder", [small_mlp, Normed])
@pytest.mark.parametrize(
    "training",
    [
        Training(optimiser="sgd", momentum=0, lr=0.1, batch=16, schedule="constant"),
        Training(optimiser="sgd", momentum=0.9, weight_decay=5e-4, lr=0.02, batch=16),
        Training(optimiser="adam", lr=0.002, batch=16, balanced=True),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_beta_of_one_is_fedavg_with_equal_weights_bit_for_bit(tmp_path, builder, training):
    silos = digits(builder, training)
    average = Federation(silos, method=FedAvg(rounds=3, epochs=2, weighting="equal"), seed=4)
    mutual = Federation(silos, method=FML(rounds=3, epochs=2, beta=1.0, alpha=0.5), seed=4)
    one, other = average.run(tmp_path / "fedavg"), mutual.run(tmp_path / "fml")
    assert final(one).keys() == final(other).keys()
    assert all(np.array_equal(final(one)[name], final(other)[name]) for name in final(one))
    assert one.result["joint"] == other.result["joint"]
    less = Federation(silos, method=FML(rounds=3, epochs=2, beta=0.9), seed=4).run(tmp_path / "less")
    assert not all(np.array_equal(final(one)[name], final(less)[name]) for name in final(one))


def test_the_mean_is_plain_and_no_silo_says_how_much_data_it_has(tmp_path):
    method = FML(rounds=1)
    assert set(method.needs()) == {"weights"}
    training = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, schedule="constant")

    def silo(name, data):
        x = np.array(data[0])[:, None]
        return Silo(name, x, data[1], Network(OneWeight, training), test=None, shares=SHARED)

    small = ([1.0, -3.0], [1, 0])
    silos = [silo("a", A), silo("b", small)]
    run = Federation(silos, method=FML(rounds=1, beta=1.0)).run(tmp_path / "run")
    after = [
        0.5 - 0.1 * np.mean((sigmoid(0.5 * np.array(x)) - np.array(y)) * np.array(x)) for x, y in (A, small)
    ]
    assert final(run)["w"][0] == pytest.approx(np.mean(after), abs=1e-6)


# ---------------------------------------------------------------------- what it is for

GOOD = Training(optimiser="sgd", momentum=0.9, lr=0.05, batch=16, schedule="constant")


def test_two_products_are_reported(tmp_path):
    silos = digits(small_mlp, GOOD, n=200)
    run = Federation(silos, method=FML(rounds=5, epochs=2, evaluate_every=2)).run(tmp_path / "run")
    assert list(run.result["scores"]) == ["local", "round 2", "round 4", "federated"]
    assert list(run.result["joint"]) == ["round 2", "round 4", "federated"]
    total = sum(len(silo.data.test[1]) for silo in run.silos.values())
    assert run.result["joint"]["federated"]["instances"] == total
    assert run.result["joint"]["federated"]["accuracy"] > 0.8
    assert np.mean(list(run.scores("federated").values())) > 0.9
    # The joint accuracy is that of the global network among all classes, by an independent count.
    right = 0
    for silo in run.silos.values():
        x, y = silo.data.test
        shared = silo.network.another(None)
        shared.set_weights(final(run))
        vocabulary = list("01234")
        truth = np.array(silo.task.classes)[y]
        right += int((np.array(vocabulary)[shared.logits(x).argmax(axis=1)] == truth).sum())
    assert right / total == pytest.approx(run.result["joint"]["federated"]["accuracy"])


def test_networks_of_any_architecture_beside_one_meme(tmp_path):
    builders = [zoo.mlp, zoo.cnn1, zoo.cnn2]
    silos = digits(builders, GOOD, shares=SHARED, images=BIG, n=90)
    run = Federation(silos, method=FML(rounds=6, epochs=2, meme="lenet5")).run(tmp_path / "run")
    names = {silo.name: set(silo.learner.weights()) for silo in run.silos.values()}
    assert len({frozenset(found) for found in names.values()}) == 3  # they are still what they were
    assert final(run).keys() == zoo.lenet5((1, 24, 24), 5).state_dict().keys()
    assert all(run.scores("federated")[name] > 0.5 for name in run.silos)


def test_silos_with_other_tasks_share_a_body_and_keep_their_heads(tmp_path):
    silos = digits(small_mlp, GOOD, shares=SHARED, tasks=[(0, 1), (2, 3, 4), (5, 6, 7, 8, 9)], n=120)
    run = Federation(silos, method=FML(rounds=6, epochs=2, share="body")).run(tmp_path / "run")
    assert set(final(run)) == {"body.dense1.weight", "body.dense1.bias"}
    for silo in run.silos.values():
        assert silo.notes["adaptor"]["head.bias"].shape == (len(silo.task),)
        assert silo.learner.weights()["head.bias"].shape == (len(silo.task),)
    assert "joint" not in run.result
    assert min(run.scores("federated").values()) > 0.8
    # The heads go on where they were: after a round they are not what a fork begins with.
    silo = run.silos["silo-1"]
    fresh = silo.network.another(None).weights()["head.weight"]
    assert np.abs(silo.notes["adaptor"]["head.weight"] - fresh).max() > 0.01


def test_the_personalised_optimiser_goes_on_over_rounds(tmp_path):
    """Two rounds of one epoch are not one momentum each: the state is there, and it is used."""
    silos = digits(small_mlp, GOOD, shares=SHARED)
    run = Federation(silos, method=FML(rounds=2)).run(tmp_path / "run")
    silo = run.silos["silo-0"]
    state = silo.notes["optimiser"]
    batches = -(-silo.size // 16)
    assert int(state["steps"]) == 2 * batches
    assert np.abs(state["momentum.0"]).max() > 0


def test_schedules():
    method = FML(alpha=[1.0, 0.0], beta=[0.2, 0.8, 0.4], rounds=5)
    assert [method.now("alpha", n) for n in range(1, 6)] == pytest.approx([1, 0.75, 0.5, 0.25, 0])
    assert [method.now("beta", n) for n in range(1, 6)] == pytest.approx([0.2, 0.5, 0.8, 0.6, 0.4])
    assert FML(alpha=[0.3, 0.9], rounds=1).now("alpha", 1) == 0.3


def test_the_learning_rate_steps_down_after_each_third_of_the_rounds(tmp_path):
    """As in the authors' code: six rounds, × 0.1 after the second and the fourth."""
    method = FML(rounds=6, beta=1.0, decay=0.1, decay_after=[2, 4])
    x, y = np.array(A[0]), np.array(A[1])
    silos = [
        Silo(name, x[:, None], y, Network(OneWeight, STEP), test=None, shares=SHARED) for name in ("a", "b")
    ]
    w = 0.5
    for rate in (0.1, 0.1, 0.01, 0.01, 0.001, 0.001):
        w -= rate * np.mean((sigmoid(w * x) - y) * x)
    run = Federation(silos, method=method).run(tmp_path / "run")
    assert final(run)["w"][0] == pytest.approx(w, abs=1e-6)


# ---------------------------------------------------------------------- crashes


class Doomed(Network):
    """Kills its process when the silo trains for the nth time."""

    left: ClassVar = [99]  # no part of what it does: a list is not described

    def train(self, *args, peers=(), **options):
        self.left[0] -= len(peers)
        if peers and self.left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train(*args, peers=peers, **options)


@pytest.mark.parametrize("share", ["whole", "body"])
def test_killed_in_a_round_it_ends_with_the_same_models(tmp_path, killed, share):
    def federation():
        silos = digits(small_mlp, GOOD, shares=SHARED)
        for silo in silos:
            silo.learner = Doomed(small_mlp, GOOD)
        return Federation(silos, method=FML(rounds=3, share=share), seed=2)

    def doomed(nth, folder):
        Doomed.left[0] = nth
        federation().run(folder)

    whole = federation().run(tmp_path / "whole")
    for nth in (2, 4, 8):
        folder = tmp_path / f"killed-{nth}"
        killed(partial(doomed, nth, folder))
        run = federation().run(folder)
        assert run.result == whole.result
        for name, silo in whole.silos.items():
            mine, other = silo.learner.weights(), run.silos[name].learner.weights()
            assert all(np.array_equal(mine[key], other[key]) for key in mine)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize("bad", [{"alpha": 1.2}, {"beta": -0.1}, {"alpha": [0.5, 1.5]}, {"beta": [0.5]}])
def test_shares_outside_their_range(bad):
    with pytest.raises(ConfigError):
        FML(**bad)


def test_a_body_without_an_adaptor(tmp_path):
    silos = digits(Normed, GOOD, shares=SHARED)
    federation = Federation(silos, method=FML(share="body"))
    problems = federation.check()
    assert problems[0].startswith("silo 'silo-0': Normed has the parts ['conv', 'norm', 'out']; share")
    assert len(problems) == 3
    with pytest.raises(RunError, match="which becomes the adaptor"):
        federation.run(tmp_path / "run")


def test_a_meme_that_the_instances_are_too_small_for(tmp_path):
    problems = Federation(digits(small_mlp, GOOD, shares=SHARED), method=FML(meme="cnn2")).check()
    assert "cnn2: got instances of shape (1, 8, 8)" in problems[0]
