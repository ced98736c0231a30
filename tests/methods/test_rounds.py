"""What methods with rounds have in common."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosilo import FedAvg, FedBE, Federation, FedFomo
from cosilo.aggregation.averaging import structure
from cosilo.coordination.asking import TooFew
from cosilo.coordination.coordinator import Silos
from cosilo.errors import ConfigError
from cosilo.methods.rounds import starting_weights, taking_part
from cosilo.protocol.carrier import Answer, Failure, FailureKind
from cosilo.protocol.message import Fields
from cosilo.protocol.wire import encode
from cosilo.runs.journal import Journal


class FirstLost:
    """A carrier whose silos send weights to start from; the first that is asked is lost."""

    def __init__(self, weights):
        self._weights, self.asked = weights, []

    def call(self, silos, asks, timeout):
        for name in silos:
            asks(name)
            self.asked.append(name)
            first = len(self.asked) == 1
            lost = Failure(FailureKind.LOST, f"silo {name!r}: not connected")
            yield Answer(name, lost if first else encode({"weights": self._weights[name]}))


def test_the_silo_whose_weights_all_start_from_is_lost(tmp_path):
    """Where all silos have to answer, a run that is resumed starts from the weights of the same silo."""
    weights = {name: {"w": np.full(2, value)} for name, value in (("a", 1.0), ("b", 2.0))}
    begun = {name: Fields({"structure": structure(one)}) for name, one in weights.items()}

    def start(quorum, carrier):
        journal = Journal(tmp_path / str(quorum))
        return starting_weights(Silos(list(weights), FedAvg(), carrier, journal, quorum=quorum), begun)["w"]

    carrier = FirstLost(weights)
    assert start(0.5, carrier).tolist() == [2.0, 2.0]
    assert carrier.asked == ["a", "b"]
    carrier = FirstLost(weights)
    with pytest.raises(TooFew):
        start(1.0, carrier)
    assert start(1.0, carrier).tolist() == [1.0, 1.0]
    assert carrier.asked == ["a", "a"]


def test_learning_rates_by_round():
    def rates(**settings):
        method = FedAvg(**settings)
        return [method.rate(round) for round in range(1, 6)]

    assert rates() == [1, 1, 1, 1, 1]
    assert rates(decay=0.5) == [1, 0.5, 0.25, 0.125, 0.0625]
    assert rates(decay=0.5, decay_after=[2, 3]) == [1, 1, 0.5, 0.25, 0.25]
    assert rates(decay=0.5, decay_after=[4, 1]) == [1, 0.5, 0.5, 0.5, 0.25]
    assert rates(decay=0.5, decay_after=[]) == [1, 1, 1, 1, 1]
    with pytest.raises(ConfigError, match="decay_after"):
        FedAvg(decay_after=[0])


def test_alone_the_learning_rate_falls_as_in_the_federation():
    """Full batches of one point, SGD without momentum: the weight by hand."""
    torch = pytest.importorskip("torch")
    from cosilo import Silo
    from cosilo.learners import Network, Training

    class OneWeight(torch.nn.Module):
        def __init__(self, input_shape, n_classes):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([0.5]))

        def forward(self, x):
            return torch.cat([torch.zeros_like(x), self.w * x], dim=1)

    training = Training(optimiser="sgd", momentum=0, lr=0.1, batch=9, epochs=1, schedule="constant")
    x, y = np.array([1.0, -2.0]), np.array([0, 0])
    silo = Silo("a", x[:, None], y, Network(OneWeight, training), test=None, task=["0", "1"])
    FedAvg(rounds=3, epochs=2, decay=0.1, decay_after=[2]).alone(silo)
    w = 0.5
    for rate in (0.1, 0.1, 0.1, 0.1, 0.01, 0.01):
        w -= rate * np.mean(x / (1 + np.exp(-w * x)))
    assert float(silo.learner.weights()["w"][0]) == pytest.approx(w, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "epochs"),
    [
        ({"rounds": 6, "epochs": 5}, [30]),
        ({"rounds": 6, "epochs": 5, "fraction": 0.4}, [12]),  # who takes part in 0.4 · 6 rounds of 5 epochs
        ({"rounds": 1, "epochs": 1, "fraction": 0.1}, [1]),
        ({"rounds": 6, "epochs": 5, "fraction": 0.4, "decay": 0.1, "decay_after": [2, 4]}, [4, 4, 4]),
        ({"rounds": 5, "epochs": 1, "fraction": 0.5, "decay": 0.9}, [1, 1]),
    ],
)
def test_training_alone_has_as_many_epochs_as_a_silo_has_in_the_rounds(settings, epochs):
    asked = []

    def train(*, epochs, **rest):
        asked.append(epochs)

    network = SimpleNamespace(restart=lambda: None, train=train, training=SimpleNamespace(lr=0.1))
    silo = SimpleNamespace(
        network=network, fit=lambda stage, epochs: asked.append(epochs), take_score=lambda stage: None
    )
    FedAvg(**settings).alone(silo)
    assert asked == epochs
    if "decay" not in settings:
        asked.clear()
        FedFomo(**settings).alone(silo)
        assert asked == epochs


def test_rounds_end_when_the_accuracy_is_reached(tmp_path, silos):
    pytest.importorskip("torch")
    from cosilo.learners import Network, Training, zoo

    members = silos(shares=["weights", "size", "metrics"])
    for silo in members:
        silo.learner = Network(zoo.mlp, Training(epochs=1))
    whole = Federation(members, method=FedAvg(rounds=6, local=False)).run(tmp_path / "whole").result
    curve = [score["accuracy"] for score in whole["joint"].values()]
    goal = curve[3]
    first = next(place for place, accuracy in enumerate(curve) if accuracy >= goal) + 1
    assert first < 6
    method = FedAvg(rounds=6, local=False, stop_at=goal)
    stopped = Federation(members, method=method).run(tmp_path / "stopped").result
    assert list(stopped["joint"]) == [*(f"round {n}" for n in range(1, first + 1)), "federated"]
    assert stopped["joint"]["federated"] == whole["joint"][f"round {first}"]
    assert stopped["stopped_after"] == first
    # Out of reach, nothing changes.
    never = FedAvg(rounds=6, local=False, stop_at=1.0)
    assert Federation(members, method=never).run(tmp_path / "never").result["joint"] == whole["joint"]


@pytest.mark.parametrize(("fraction", "count"), [(1.0, 5), (0.6, 3), (0.01, 1)])
def test_a_share_of_the_silos_is_drawn_but_at_least_one(fraction, count):
    silos = SimpleNamespace(names=list("abcde"), chance_of_round=np.random.default_rng)
    draws = [taking_part(silos, fraction, number) for number in range(50)]
    assert {len(set(draw)) for draw in draws} == {count}
    assert set().union(*draws) == set("abcde")  # everybody's turn comes


def test_on_one_seed_the_same_silos_take_part_whatever_else_a_method_draws(tmp_path, silos, pool):
    """FedBE draws models and FedFomo whom to send what: who trains must not depend on it."""
    pytest.importorskip("torch")
    from cosilo.learners import Network, Training, zoo

    def trained(method, seed=0):
        members = silos(shares=["weights", "logits", "similarity", "size", "metrics"])
        for silo in members:
            silo.learner = Network(zoo.mlp, Training(epochs=1))
        run = Federation(members, pool, method=method, seed=seed).run(tmp_path / f"{method.name}-{seed}")
        return [ask["silos"] for ask in run.asks() if ask["step"] == "train"]

    settings = {"rounds": 6, "epochs": 1, "fraction": 0.34, "local": False}
    alike = [trained(method(**settings)) for method in (FedAvg, FedFomo)]
    alike.append(trained(FedBE(**settings, samples=2, distil_epochs=1)))
    assert alike[0] == alike[1] == alike[2]
    assert len({tuple(names) for names in alike[0]}) > 1
    assert trained(FedAvg(**settings), seed=1) != alike[0]


def test_the_last_stage_is_that_of_the_federation_and_rounds_are_judged_as_often_as_said(tmp_path, silos):
    pytest.importorskip("torch")
    from cosilo.learners import Network, Training, zoo

    members = silos(shares=["weights", "size", "metrics"])
    for silo in members:
        silo.learner = Network(zoo.mlp, Training(epochs=1))
    run = Federation(members, method=FedAvg(rounds=5, evaluate_every=2)).run(tmp_path / "run")
    assert list(run.result["scores"]) == ["local", "round 2", "round 4", "federated"]
    assert list(run.result["joint"]) == ["round 2", "round 4", "federated"]
