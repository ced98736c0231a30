"""FedFomo: the mixture by hand on one parameter, who gets whose model, crashes, bad replies."""

import os
import signal
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import FedAvg, Federation, FedFomo, Silo
from cosilo.config import build
from cosilo.engines.local.engine import LocalEngine

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, zoo  # noqa: E402
from cosilo.methods.packing import pack  # noqa: E402

SHARES = ["weights", "similarity", "metrics", "size"]
STEP = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, epochs=1, schedule="constant")
X, Y = load_digits(return_X_y=True)


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


def loss(w, x, y):
    """The mean cross-entropy of p = σ(w·x)."""
    p = 1 / (1 + np.exp(-w * np.array(x)))
    return float(np.mean(-np.where(np.array(y) == 1, np.log(p), np.log(1 - p))))


def test_a_mixture_by_hand():
    x, y = [1.0, 2.0, -1.0, 3.0, -2.0, 1.0, -1.0, 2.0, -3.0, -1.0], [1, 1, 0, 1, 0, 1, 0, 1, 0, 0]
    silo = Silo("a", np.array(x)[:, None], y, Network(OneWeight, STEP), test=None, shares=SHARES)
    silo.network.widen(["0", "1"])
    silo.network.set_weights({"w": np.array([0.7], np.float32)})  # the silo's own model after training
    silo.notes["base"] = {"w": np.array([0.5], np.float32)}  # the model that the round began with
    others = {"b": {"w": np.array([2.0], np.float32)}, "c": {"w": np.array([-1.0], np.float32)}}
    method = FedFomo(rounds=1, epochs=1)
    reply = method.mix(silo, origins=["b", "c"], models=pack(others))
    held = silo.data.validation()[0]
    hx, hy = held[0][:, 0], held[1]
    base = loss(0.5, hx, hy)
    # (L(base) − L(θ)) / |θ − base| for b, c and the silo itself; c makes it worse and weighs nothing.
    raw = np.array([(base - loss(w, hx, hy)) / abs(w - 0.5) for w in (2.0, -1.0, 0.7)])
    assert raw[1] < 0 < raw[0]
    weights = np.maximum(raw, 0) / np.maximum(raw, 0).sum()
    assert reply["weights"] == pytest.approx(weights[:2], abs=1e-5)
    assert silo.network.weights()["w"][0] == pytest.approx(
        0.5 + weights[0] * (2.0 - 0.5) + weights[2] * (0.7 - 0.5), abs=1e-5
    )


def test_a_silo_stays_where_it_was_if_nothing_helps():
    silo = Silo(
        "a", np.array([[1.0], [-1.0]] * 5), [1, 0] * 5, Network(OneWeight, STEP), test=None, shares=SHARES
    )
    silo.network.widen(["0", "1"])
    silo.network.set_weights({"w": np.array([0.4], np.float32)})  # worse than the base
    silo.notes["base"] = {"w": np.array([0.5], np.float32)}
    worse = pack({"b": {"w": np.array([-2.0], np.float32)}})
    reply = FedFomo().mix(silo, origins=["b"], models=worse)
    assert reply["weights"].tolist() == [0.0]
    assert silo.network.weights()["w"][0] == pytest.approx(0.5)


def small(shape, k):
    return zoo.mlp(shape, k, hidden=[16])


GOOD = Training(optimiser="sgd", momentum=0.9, lr=0.05, batch=16, schedule="constant")


def silos(count=4, builder=small, shares=SHARES):
    """Pairs of silos with the same classes: 0–2 and 0–2, 3–5 and 3–5."""
    found = []
    for place in range(count):
        classes = [0, 1, 2] if place < count // 2 else [3, 4, 5]
        mine = np.flatnonzero(np.isin(Y, classes))[place::count][:60]
        found.append(Silo(f"silo-{place}", X[mine] / 16, Y[mine], Network(builder, GOOD), shares=shares))
    return found


def test_silos_find_those_that_help_them(tmp_path):
    run = Federation(silos(), method=FedFomo(rounds=6, epochs=2, models=2)).run(tmp_path / "run")
    affinity = np.array(run.result["affinity"]["values"])
    assert (np.diag(affinity) == 0).all()
    like, unlike = affinity[0, 1] + affinity[1, 0], affinity[0, 2:].sum() + affinity[1, 2:].sum()
    assert like > unlike  # silo 0 and silo 1 have the same classes
    assert np.mean(list(run.scores("federated").values())) > 0.9
    # Each has a model of its own.
    one, other = (run.silos[name].learner.weights()["head.bias"] for name in ("silo-0", "silo-3"))
    assert not np.allclose(one, other)


def test_without_local_training_the_federation_is_the_same(tmp_path):
    rng = np.random.default_rng(0)
    members = [
        Silo(name, rng.normal(size=(40, 1)), rng.permutation(40) % 2, Network(OneWeight, STEP), shares=SHARES)
        for name in "ab"
    ]
    runs = [
        Federation(members, method=FedFomo(rounds=2, epochs=1, models=1, local=local)).run(
            tmp_path / str(local)
        )
        for local in (True, False)
    ]
    steps = [[ask["step"] for ask in run.asks()] for run in runs]
    assert steps[0][:4] == ["hello", "alone", "evaluate", "begin"]
    assert steps[1][:2] == ["hello", "begin"]
    assert list(runs[1].result["scores"]) == ["round 1", "federated"]
    weights = [[run.silos[name].learner.weights()["w"] for name in "ab"] for run in runs]
    assert np.array(weights[0]) == pytest.approx(np.array(weights[1]), abs=1e-6)


def test_it_is_not_fedavg(tmp_path):
    fomo = Federation(silos(), method=FedFomo(rounds=1, epochs=1), seed=1).run(tmp_path / "fomo")
    average = Federation(silos(), method=FedAvg(rounds=1, epochs=1), seed=1).run(tmp_path / "average")
    mine = fomo.silos["silo-0"].learner.weights()["head.weight"]
    assert np.abs(mine - average.global_weights()["head.weight"]).max() > 1e-4


def test_random_models_with_epsilon_one_and_the_best_with_zero(tmp_path):
    class Sent(FedFomo):
        picked: ClassVar[list] = []

        def _pick(self, *arguments):
            found = super()._pick(*arguments)
            type(self).picked.append((arguments[1], found))
            return found

    Sent.picked = []
    method = Sent(rounds=6, epochs=1, models=1, epsilon=0.0)
    Federation(silos(), method=method).run(tmp_path / "greedy")
    later = [found for name, found in Sent.picked[8:] if name == "silo-0"]
    assert len({tuple(found) for found in later}) < 3  # it stays with what helped
    Sent.picked = []
    method = Sent(rounds=6, epochs=1, models=1, epsilon=1.0, epsilon_decay=0.0)
    Federation(silos(), method=method).run(tmp_path / "random")
    assert len({tuple(found) for name, found in Sent.picked if name == "silo-0"}) == 3
    assert all(name not in found for name, found in Sent.picked)


class Doomed(Network):
    left: ClassVar = [99]  # no part of what it does: a list is not described

    def train(self, *args, **options):
        self.left[0] -= 1
        if self.left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train(*args, **options)


def test_killed_it_ends_with_the_same_models(tmp_path, killed):
    def federation(workers=0):
        members = silos(3)
        for silo in members:
            silo.learner = Doomed(small, GOOD)
        return Federation(
            members, method=FedFomo(rounds=3, epochs=1, models=2), seed=2, engine=LocalEngine(workers)
        )

    def doomed(nth, folder):
        Doomed.left[0] = nth
        federation().run(folder)

    whole = federation().run(tmp_path / "whole")
    for nth in (5, 8, 11):
        folder = tmp_path / f"killed-{nth}"
        killed(partial(doomed, nth, folder))
        run = federation(workers=2).run(folder)
        assert run.result == whole.result
        for name, silo in whole.silos.items():
            mine, other = silo.learner.weights(), run.silos[name].learner.weights()
            assert all(np.array_equal(mine[key], other[key]) for key in mine)


class Liar(FedFomo):
    """One silo gives more weights than it got models."""

    def mix(self, silo, **message):
        reply = super().mix(silo, **message)
        return {"weights": np.ones(9)} if silo.name == "silo-1" else reply


Liar.mix.__step__ = FedFomo.mix.__step__


def test_a_silo_that_gives_other_weights_than_it_was_asked_for(tmp_path):
    run = Federation(silos(), method=Liar(rounds=2, epochs=1)).run(tmp_path / "run")
    texts = {failure["text"] for failure in run.result["failures"]}
    assert {failure["silo"] for failure in run.result["failures"]} == {"silo-1"}
    assert any("wants 3 numbers of at least 0" in text for text in texts)
    assert len(run.scores("federated")) == 3


def test_a_fraction_of_the_silos_takes_part_in_a_round(tmp_path):
    values = {
        "seed": 2,
        "method": {"use": "fedfomo", "rounds": 3, "epochs": 1, "fraction": 0.5},
        "simulation": {
            "dataset": "digits",
            "split": {"use": "iid", "silos": 4, "size": 30},
            "learners": [{"use": "mlp", "hidden": [8], "training": {"lr": 0.1, "batch": 10}}],
            "shares": ["weights", "similarity", "metrics"],
        },
    }
    run = build.federation(values, build.Source("r.toml", tmp_path)).run(tmp_path / "run")
    asked = [(ask["step"], ask["silos"]) for ask in run.asks() if ask["step"] in ("train", "mix", "judge")]
    trained = [silos for step, silos in asked if step == "train"]
    assert [len(silos) for silos in trained] == [2, 2, 2]
    assert [silos for step, silos in asked if step == "mix"] == trained
    assert [len(silos) for step, silos in asked if step == "judge"] == [4, 4, 4]  # all have a model
    assert len({tuple(silos) for silos in trained}) > 1
