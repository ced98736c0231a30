"""FedAdp: angles and weights by hand, then the whole method at one layer and at both."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo import FedAdp, FedAvg, Federation, Institution, Silo
from cosilo.aggregation.angles import angle, gompertz, shares, smoothed
from cosilo.errors import ConfigError
from cosilo.runs.journal import Journal

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

SHARED = ["weights", "size", "metrics"]


def model(*values):
    return {"w": np.array(values, dtype=np.float32)}


# ---------------------------------------------------------------------- arithmetic


def test_a_round_by_hand():
    """Three clients with 10, 10 and 20 instances, from (1, 1); updates (2, 0), (0, 2) and (−1, 1)."""
    before, sizes = model(1, 1), {"a": 10.0, "b": 10.0, "c": 20.0}
    models = {"a": model(3, 1), "b": model(1, 3), "c": model(0, 2)}
    # (10·(2, 0) + 10·(0, 2) + 20·(−1, 1)) / 40 = (0, 1): right angle, none, 45 degrees.
    mean = model(1, 2)
    angles = {name: angle(one, mean, before) for name, one in models.items()}
    assert angles == pytest.approx({"a": math.pi / 2, "b": 0.0, "c": math.pi / 4}, abs=1e-6)
    # f = 5 (1 − exp(−exp(−5 (θ − 1)))), worked out by hand:
    # θ = π/2: exp(−5 · 0.570796) = 0.057614, 1 − exp(−0.057614) = 0.055986, f = 0.279931, e^f = 1.323038
    # θ = 0:   exp(5) = 148.41,               1 − exp(−148.41)   = 1,        f = 5,        e^f = 148.413159
    # θ = π/4: exp(5 · 0.214602) = 2.924166,  1 − exp(−2.924166) = 0.946291, f = 4.731453, e^f = 113.460251
    # Times 10, 10 and 20 that is 13.230383, 1484.131591 and 2269.205020, together 3766.566994.
    powers = {name: gompertz(theta, 5.0) for name, theta in angles.items()}
    assert powers == pytest.approx({"a": 0.279931, "b": 5.0, "c": 4.731453}, abs=1e-6)
    wanted = {"a": 0.003513, "b": 0.394028, "c": 0.602460}
    assert shares(sizes, angles, 5.0) == pytest.approx(wanted, abs=1e-6)


def test_angles_are_averaged_over_the_rounds_with_the_client():
    mean = 0.0
    for times, now in enumerate([0.3, 0.9, 0.6]):
        mean = smoothed(mean, times, now)
    assert mean == pytest.approx(0.6)


def test_updates_without_a_direction_and_counters():
    counter = {"n": np.array(3)}
    assert angle(
        {**model(1, 1), "n": np.array(9)}, {**model(2, 2), **counter}, {**model(1, 1), **counter}
    ) == (math.pi / 2)
    assert angle(model(2, 1), model(1, 1), model(1, 1)) == math.pi / 2
    assert angle(model(3, 3), model(2, 2), model(1, 1)) == pytest.approx(0.0, abs=1e-7)
    assert angle(model(-1, -1), model(2, 2), model(0, 0)) == pytest.approx(math.pi)


@given(st.lists(st.floats(0, math.pi), min_size=1, max_size=6), st.floats(0.1, 2000))
def test_smaller_angles_weigh_more(angles, alpha):
    names = [str(n) for n in range(len(angles))]
    found = shares(dict.fromkeys(names, 1.0), dict(zip(names, angles, strict=True)), alpha)
    assert sum(found.values()) == pytest.approx(1.0)
    ordered = [found[name] for name in sorted(names, key=lambda name: angles[int(name)])]
    assert all(first >= second - 1e-12 for first, second in pairwise(ordered))


def test_alpha_is_positive():
    with pytest.raises(ConfigError, match="alpha is 0; wants a number above 0"):
        shares({"a": 1.0}, {"a": 0.5}, 0)


# ---------------------------------------------------------------------- the method


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


RECIPE = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, epochs=1, schedule="constant")
UP = ([1.0, 2.0, -1.0, 3.0], [1, 1, 0, 1])  # wants a larger weight
MORE = ([2.0, -2.0], [1, 0])
DOWN = ([3.0, -2.0, 1.0], [0, 1, 0])  # wants a smaller one


def silo(name, data):
    values, labels = data
    learner = Network(OneWeight, RECIPE)
    return Silo(name, np.array(values)[:, None], labels, learner, test=None, shares=SHARED)


def trained(data, w=0.5):
    x, y = np.array(data[0]), np.array(data[1])
    return w - 0.1 * float(np.mean((1 / (1 + np.exp(-w * x)) - y) * x))


def averaged(parts, w, adaptive):
    """One aggregation by hand, of (what a silo came to, its size): one weight has angles of 0 and π only."""
    mean = sum(size * one for one, size in parts) / sum(size for _, size in parts)
    if not adaptive:
        return mean
    factors = []
    for one, size in parts:
        theta = 0.0 if (one - w) * (mean - w) > 0 else math.pi
        factors.append(size * math.exp(5 * (1 - math.exp(-math.exp(-5 * (theta - 1))))))
    return sum(factor * one for factor, (one, _) in zip(factors, parts, strict=True)) / sum(factors)


@pytest.mark.parametrize("at", ["both", "server", "institutions"])
def test_at_one_layer_or_at_both_by_hand(tmp_path, at):
    silos = [
        Institution("a", [silo("x", UP), silo("y", DOWN)], shares=SHARED),
        Institution("b", [silo("x", MORE), silo("y", DOWN)], shares=SHARED),
    ]
    run = Federation(silos, method=FedAdp(rounds=1, at=at)).run(tmp_path / "run")
    inside = at in ("both", "institutions")
    a = averaged([(trained(UP), 4), (trained(DOWN), 3)], 0.5, inside)
    b = averaged([(trained(MORE), 2), (trained(DOWN), 3)], 0.5, inside)
    wanted = averaged([(a, 7), (b, 5)], 0.5, at in ("both", "server"))
    (w,) = run.global_weights()["w"]
    assert w == pytest.approx(wanted, abs=1e-6)
    assert ("angles" in run.institutions["a"].notes) == inside


def test_it_is_not_fedavg(tmp_path):
    silos = [silo("x", UP), silo("y", DOWN)]
    adaptive, plain = (
        Federation(silos, method=method).run(tmp_path / method.name)
        for method in (FedAdp(rounds=2), FedAvg(rounds=2))
    )
    assert abs(adaptive.global_weights()["w"] - plain.global_weights()["w"]) > 1e-3


def test_institutions_and_server_remember_angles(tmp_path):
    silos = [Institution("a", [silo("x", UP), silo("y", DOWN)], shares=SHARED), silo("z", MORE)]
    method = FedAdp(rounds=3, local_rounds=2, fraction=0.5)
    run = Federation(silos, method=method, seed=1).run(tmp_path / "run")
    rounds = [sorted(ask["arrivals"]) for ask in run.asks() if ask["step"] == "train"]
    took_part = {name: sum(name in names for names in rounds) for name in ("a", "z")}
    assert sum(took_part.values()) == 3
    state = Journal(tmp_path / "run/journal").last_mark.state
    assert {name: int(count) for name, (_, count) in state["angles"].items()} == {
        name: count for name, count in took_part.items() if count
    }
    inside = run.institutions["a"].notes.get("angles", {})
    assert {name: int(count) for name, (_, count) in inside.items()} == (
        dict.fromkeys(["x", "y"], 2 * took_part["a"]) if took_part["a"] else {}
    )
    assert took_part["a"] > 0
