import numpy as np
import pytest

from cosilo import Silo, Target
from cosilo.errors import DataError

pytest.importorskip("torch")
from cosilo.learners import Network, zoo
from cosilo.silo.labeller import Labeller


def small(shape, k):
    return zoo.mlp(shape, k, hidden=[])


@pytest.fixture
def silo():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)).astype(np.float32)
    target = Target(X[:2], ["c", "d"], unlabelled=X[2:5])
    found = Silo("one", X, ["a", "b"] * 6, Network(small), target=target, shares=["weights"])
    found.network.widen(["a", "b", "c", "d"])
    return found


def models(silo):
    rng = np.random.default_rng(1)
    start = silo.network.weights()
    return {
        name: {key: (array + rng.normal(size=array.shape)).astype(np.float32) for key, array in start.items()}
        for name in ("x", "y", "z")
    }


def test_new_points_are_labelled_by_the_weighted_mean_among_wanted_classes(silo):
    given, X = models(silo), np.random.default_rng(2).normal(size=(40, 3)).astype(np.float32)
    Labeller(silo).keep(given, {"y": 0.6, "x": 0.3})
    total = 0
    for name, ratio in (("y", 0.6), ("x", 0.3)):
        network = silo.network.another()
        network.set_weights(given[name])
        total = total + ratio * network.probabilities(X)[:, 2:]
    found = silo.label(X)
    assert found["label"].tolist() == np.array(["c", "d"])[total.argmax(axis=1)].tolist()
    assert found["confidence"].to_numpy() == pytest.approx(total.max(axis=1) / 0.9)
    assert set(found["speakers"]) == {"y,x"}


def test_others_take_the_place_of_those_that_were_kept(silo):
    given = models(silo)
    Labeller(silo).keep(given, {"x": 1.0, "y": 0.5})
    Labeller(silo).keep(given, {"z": 1.0})
    assert set(silo.label(np.zeros((1, 3), np.float32))["speakers"]) == {"z"}
    assert sum("labeller model" in name for name in silo.notes) == 1


def test_without_one(silo):
    with pytest.raises(DataError, match="silo 'one': has no labeller: DoFed-SPP leaves one"):
        silo.label(np.zeros((1, 3), np.float32))
