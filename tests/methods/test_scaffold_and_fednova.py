"""SCAFFOLD and FedNova against a few lines of plain arithmetic, on a model with one parameter."""

import os
import signal
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import SCAFFOLD, FedAvg, Federation, FedNova, Institution, Silo
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import BadMessage, RunError

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, zoo  # noqa: E402

SHARED = ["weights", "size", "metrics"]
PLAIN = Training(optimiser="sgd", momentum=0, lr=0.1, batch=2, epochs=1, schedule="constant")
#: One instance, as often as it says: whatever the order of the batches, the gradient is the same.
DATA = {"a": (2.0, 1, 2), "b": (-1.0, 1, 6), "c": (3.0, 0, 4)}


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


def silos(training=PLAIN, data=DATA, builder=OneWeight):
    return [
        Silo(
            name,
            np.full((times, 1), x),
            [y] * times,
            Network(builder, training),
            test=None,
            shares=SHARED,
            task=["0", "1"],
        )
        for name, (x, y, times) in data.items()
    ]


def rounds_of(method, training, folder, data=DATA):
    """The global weight after each round, and who took part in it."""
    found = []

    class Watched(type(method)):
        def review(self, silos, replies, state):
            found.append((float(state["weights"]["w"][0]), sorted(replies)))

    watched = Watched(**method.model_dump())
    Federation(silos(training, data), method=watched, seed=3).run(folder)
    return found


def gradient(w, x, y):
    return (1 / (1 + np.exp(-w * x)) - y) * x


def shares(names, weighting):
    weights = {name: DATA[name][2] if weighting == "size" else 1 for name in names}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def local(w, name, rates, momentum=0.0, shift=0.0):
    """Where a silo's steps end, each down the gradient and a shift."""
    x, y, _ = DATA[name]
    velocity = 0.0
    for rate in rates:
        velocity = momentum * velocity + gradient(w, x, y) + shift
        w -= rate * velocity
    return w


# ---------------------------------------------------------------------- SCAFFOLD


@pytest.mark.parametrize("weighting", ["equal", "size"])
@pytest.mark.parametrize("server_lr", [1.0, 0.6])
@pytest.mark.parametrize("fraction", [1.0, 0.67])
def test_scaffold_by_hand(tmp_path, weighting, server_lr, fraction):
    settings = {"weighting": weighting, "server_lr": server_lr, "fraction": fraction}
    found = rounds_of(SCAFFOLD(rounds=5, epochs=2, **settings), PLAIN, tmp_path / "run")
    x, c, own = 0.5, 0.0, dict.fromkeys(DATA, 0.0)
    for weight, there in found:
        p, x_change, c_change = shares(there, weighting), 0.0, 0.0
        for name in there:
            steps = 2 * DATA[name][2] // 2  # epochs × batches
            y = local(x, name, [0.1] * steps, shift=c - own[name])
            new = own[name] - c + (x - y) / (steps * 0.1)
            x_change += p[name] * (y - x)
            c_change += p[name] * (new - own[name])
            own[name] = new
        x += server_lr * x_change
        c += len(there) / len(DATA) * c_change
        assert weight == pytest.approx(x, abs=1e-6)
    assert len(found) == 5
    assert {len(there) for _, there in found} == {3 if fraction == 1 else 2}


def test_a_control_variate_is_the_mean_gradient_that_the_silo_saw_with_momentum_too(tmp_path):
    """One gradient for all steps, however they add up: outputs that do not depend on the weight's value."""
    training = PLAIN.model_copy(update={"momentum": 0.9, "schedule": "exponential", "decay": 0.5})

    class Flat(torch.nn.Module):
        def __init__(self, shape, k):
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(1))

        def forward(self, x):
            moving = self.w * x
            return torch.cat([torch.zeros_like(x), moving - moving.detach()], dim=1)

    method = SCAFFOLD(rounds=3, epochs=4)
    run = Federation(silos(training, builder=Flat), method=method).run(tmp_path / "run")
    for name, (x, y, _) in DATA.items():
        assert run.silos[name].notes["control"]["w"] == pytest.approx((0.5 - y) * x, abs=1e-5)


@pytest.mark.parametrize("training", [PLAIN, PLAIN.model_copy(update={"momentum": 0.9})])
def test_without_control_variates_scaffold_is_fedavg(tmp_path, training):
    """In the first round they are 0; with equal data and one step they are what the silo sees anyway."""
    first = [rounds_of(kind(rounds=1), training, tmp_path / kind.name) for kind in (SCAFFOLD, FedAvg)]
    assert first[0] == first[1]
    same = dict.fromkeys("abc", DATA["a"])
    runs = [
        rounds_of(kind(rounds=4), training, tmp_path / f"{kind.name}-same", same)
        for kind in (SCAFFOLD, FedAvg)
    ]
    assert [w for w, _ in runs[0]] == pytest.approx([w for w, _ in runs[1]], abs=1e-6)
    later = [rounds_of(kind(rounds=3), training, tmp_path / f"{kind.name}-3") for kind in (SCAFFOLD, FedAvg)]
    assert abs(later[0][-1][0] - later[1][-1][0]) > 1e-3


def test_scaffold_ends_where_all_data_lead_and_fedavg_does_not(tmp_path):
    """Many local steps: silos that differ pull FedAvg away from the minimum of the mean loss."""

    def slope(w):
        return sum(shares(DATA, "size")[name] * gradient(w, x, y) for name, (x, y, _) in DATA.items())

    low, high = -5.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    ends = {
        kind.name: rounds_of(kind(rounds=80, epochs=10, local=False), PLAIN, tmp_path / kind.name)[-1][0]
        for kind in (SCAFFOLD, FedAvg)
    }
    assert ends["scaffold"] == pytest.approx(low, abs=1e-3)
    assert abs(ends["fedavg"] - low) > 0.02


# ---------------------------------------------------------------------- FedNova


@pytest.mark.parametrize("weighting", ["equal", "size"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_fednova_by_hand(tmp_path, weighting, momentum):
    training = PLAIN.model_copy(update={"momentum": momentum})
    found = rounds_of(FedNova(rounds=4, epochs=3, weighting=weighting), training, tmp_path / "run")
    w, p, rho = 0.5, shares(DATA, weighting), momentum
    for weight, _ in found:
        steps = {name: 3 * times // 2 for name, (_, _, times) in DATA.items()}
        norms = {name: (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho) for name, tau in steps.items()}
        directions = {
            name: (w - local(w, name, [0.1] * tau, momentum)) / norms[name] for name, tau in steps.items()
        }
        effective = sum(p[name] * norms[name] for name in DATA)
        w -= effective * sum(p[name] * directions[name] for name in DATA)
        assert weight == pytest.approx(w, abs=1e-6)


def test_fednova_makes_up_for_schedules(tmp_path):
    """The rate halves after every epoch: 0.1 and 0.05, in as many steps of each as a silo has batches."""
    training = PLAIN.model_copy(update={"schedule": "exponential", "decay": 0.5})
    ((weight, _),) = rounds_of(FedNova(rounds=1, epochs=2, weighting="equal"), training, tmp_path / "run")
    rates = {name: [0.1] * (times // 2) + [0.05] * (times // 2) for name, (_, _, times) in DATA.items()}
    updates = {name: (0.5 - local(0.5, name, rates[name])) / sum(rates[name]) for name in DATA}
    reach = sum(map(sum, rates.values())) / 3
    assert weight == pytest.approx(0.5 - reach * sum(updates.values()) / 3, abs=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weighting", ["equal", "size"])
def test_with_equal_steps_fednova_is_fedavg(tmp_path, momentum, weighting):
    """Batches of six: one step an epoch for everyone, whatever its size."""
    training = PLAIN.model_copy(update={"momentum": momentum, "batch": 6})
    settings = {"rounds": 4, "epochs": 3, "weighting": weighting}
    runs = [rounds_of(kind(**settings), training, tmp_path / f"{kind.name}-6") for kind in (FedNova, FedAvg)]
    assert [w for w, _ in runs[0]] == pytest.approx([w for w, _ in runs[1]], abs=1e-6)
    other = training.model_copy(update={"batch": 2})
    runs = [rounds_of(kind(**settings), other, tmp_path / kind.name) for kind in (FedNova, FedAvg)]
    assert abs(runs[0][-1][0] - runs[1][-1][0]) > 1e-3


# ---------------------------------------------------------------------- both, on digits

X, Y = load_digits(return_X_y=True)
GOOD = Training(optimiser="sgd", momentum=0.9, lr=0.05, batch=16, schedule="constant")


class Normed(torch.nn.Module):
    """Batch norm: statistics and a counter."""

    def __init__(self, shape, k):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(shape[0])
        self.out = torch.nn.Linear(shape[0], k)

    def forward(self, x):
        return self.out(self.norm(x))


def small(shape, k):
    return zoo.mlp(shape, k, hidden=[16])


def digits(builder=small, network=Network, training=GOOD):
    """Three silos with two digits each, and very different sizes."""
    found = []
    for place, size in enumerate((30, 60, 120)):
        mine = np.flatnonzero(np.isin(Y, [place, place + 1]))[place::2][:size]
        found.append(Silo(f"silo-{place}", X[mine] / 16, Y[mine], network(builder, training), shares=SHARED))
    return found


@pytest.mark.parametrize("method", [SCAFFOLD(rounds=1, server_lr=4.0), FedNova(rounds=1)])
def test_statistics_are_averaged_as_in_fedavg(tmp_path, method):
    """A variance that goes on as a gradient would can become negative."""
    mine = Federation(digits(Normed), method=method, seed=1).run(tmp_path / "run").global_weights()
    average = Federation(digits(Normed), method=FedAvg(rounds=1), seed=1).run(tmp_path / "avg")
    other = average.global_weights()
    for name in other:
        same = np.array_equal(mine[name], other[name])
        assert same == (name in ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"))


@pytest.mark.parametrize("kind", [SCAFFOLD, FedNova])
def test_they_learn_and_are_the_same_with_workers(tmp_path, kind):
    runs = [
        Federation(digits(), method=kind(rounds=12, epochs=2), engine=LocalEngine(workers=n)).run(
            tmp_path / str(n)
        )
        for n in (0, 2)
    ]
    one, other = (run.global_weights() for run in runs)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert runs[0].result["joint"]["federated"]["accuracy"] > 0.8


class Doomed(Network):
    """Kills its process when it trains for the nth time."""

    left: ClassVar = [99]  # no part of what it does: a list is not described

    def train(self, *args, **options):
        self.left[0] -= 1
        if self.left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train(*args, **options)


def test_control_variates_outlive_a_crash(tmp_path, killed):
    def federation():
        return Federation(digits(network=Doomed), method=SCAFFOLD(rounds=4, local=False), seed=2)

    def doomed(nth, folder):
        Doomed.left[0] = nth
        federation().run(folder)

    whole = federation().run(tmp_path / "whole")
    for nth in (5, 9, 12):
        folder = tmp_path / f"killed-{nth}"
        killed(partial(doomed, nth, folder))
        run = federation().run(folder)
        assert run.result == whole.result
        mine, other = whole.global_weights(), run.global_weights()
        assert all(np.array_equal(mine[name], other[name]) for name in mine)
        for name, silo in whole.silos.items():
            kept = run.silos[name].notes["control"]
            assert all(np.array_equal(array, kept[key]) for key, array in silo.notes["control"].items())


# ---------------------------------------------------------------------- who cannot take part


@pytest.mark.parametrize("kind", [SCAFFOLD, FedNova])
def test_optimisers_whose_steps_are_no_sum_of_gradients_are_refused(tmp_path, kind):
    members = digits()
    members[1] = digits(training=GOOD.model_copy(update={"optimiser": "adam"}))[1]
    federation = Federation(members, method=kind())
    (line,) = federation.check()
    assert line == (
        f"silo 'silo-1': trains with 'adam', whose steps are no sum of gradients, which {kind.name} needs; "
        'set optimiser = "sgd" in its training'
    )
    with pytest.raises(RunError, match="trains with 'adam'"):
        federation.run(tmp_path / "run")


@pytest.mark.parametrize("kind", [SCAFFOLD, FedNova])
def test_institutions_are_refused(kind):
    first, *others = digits()
    with_members = Institution("clinic", others, shares=SHARED)
    assert any(kind.name in line for line in Federation([first, with_members], method=kind()).check())


class BadReach(FedNova):
    def train(self, silo, **message):
        reply = super().train(silo, **message)
        if silo.name == "silo-1":
            reply = {**reply, "reach": {name: np.array(0.0) for name in reply["reach"]}}
        return reply


class BadControl(SCAFFOLD):
    def train(self, silo, **message):
        reply = super().train(silo, **message)
        if silo.name == "silo-1":
            reply = {
                **reply,
                "control": {name: array.ravel()[:1] for name, array in reply["control"].items()},
            }
        return reply


BadReach.train.__step__ = FedNova.train.__step__
BadControl.train.__step__ = SCAFFOLD.train.__step__


@pytest.mark.parametrize(
    ("kind", "text"),
    [(BadReach, "field 'reach' wants numbers above 0"), (BadControl, "wants the shape of a parameter")],
)
def test_a_silo_that_says_nonsense_is_left_out(tmp_path, kind, text):
    run = Federation(digits(), method=kind(rounds=1)).run(tmp_path / "run")
    (failure,) = run.result["failures"]
    assert failure["silo"] == "silo-1"
    assert text in failure["text"]


def test_the_silo_does_not_trust_the_coordinator():
    silo = silos()[0]
    weights = silo.network.weights()
    with pytest.raises(BadMessage, match=r"control: 'w' is \[3\]; wants the shape of a parameter"):
        SCAFFOLD().train(silo, weights, 1, control={"w": np.zeros(3, np.float32)})
    with pytest.raises(BadMessage, match=r"control: 'v' is \[1\]"):
        SCAFFOLD().train(silo, weights, 1, control={"v": np.zeros(1, np.float32)})
