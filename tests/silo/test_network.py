"""What methods see of a silo's network: what is trained on what, and what is saved with a step."""

import numpy as np
import pytest

from cosilo import Silo
from cosilo.errors import LearnerError

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

TRAINING = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, epochs=1, schedule="constant", patience=4)
X, Y = np.array([1.0, 2.0, -1.0, 3.0] * 5)[:, None], [1, 0, 0, 1] * 5


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


@pytest.fixture
def silo():
    return Silo("a", X, Y, Network(OneWeight, TRAINING), test=None)


def weight(silo):
    return silo.network.weights()["w"][0]


def stepped(w, x, y, rate=0.1):
    """One step down the mean of (sigmoid(w·x) − y)·x."""
    x, y = np.array(x).ravel(), np.array(y)
    return w - rate * np.mean((1 / (1 + np.exp(-w * x)) - y) * x)


def test_what_changes_the_network_is_saved_unless_a_method_says_otherwise(silo):
    def change(name, *arguments, **options):
        silo.changed = False
        getattr(silo.network, name)(*arguments, **options)
        return silo.changed

    given = {"w": np.array([0.7], np.float32)}
    assert change("train")
    assert change("train", (X, np.array(Y)))
    assert change("set_weights", given)
    assert not change("train", keep=False)
    assert not change("set_weights", given, keep=False)


def test_not_keeping_does_not_undo_an_earlier_change_of_the_step(silo):
    silo.network.train()
    silo.network.train(keep=False)
    silo.network.set_weights({"w": np.array([0.7], np.float32)}, keep=False)
    assert silo.changed


def test_it_goes_on_from_the_present_weights_by_the_owners_training_and_what_differs(silo):
    silo.network.train()
    assert weight(silo) == pytest.approx(stepped(0.5, X, Y), abs=1e-6)
    silo.network.set_weights({"w": np.array([0.25], np.float32)})
    silo.network.train((X[:3], np.array([0, 0, 1])), lr=0.2)
    assert weight(silo) == pytest.approx(stepped(0.25, X[:3], [0, 0, 1], rate=0.2), abs=1e-6)
    assert silo.learner.training == TRAINING


def test_it_stops_early_only_if_asked_and_then_holds_its_validation_part_out(silo, monkeypatch):
    seen = []
    train = Network.train

    def spy(self, X, y, *, validation=None, **options):
        seen.append((len(X), None if validation is None else len(validation[1])))
        return train(self, X, y, validation=validation, **options)

    monkeypatch.setattr(Network, "train", spy)
    silo.network.train()
    silo.network.train(patience=2)
    assert seen == [(20, None), (16, 4)]
    with pytest.raises(LearnerError, match="patience=2 wants a validation set"):
        silo.network.train((X, np.array(Y)), patience=2)


def test_the_classes_of_own_data_are_found_among_wider_outputs():
    def wide(shape, k):
        return torch.nn.Linear(shape[0], k)

    silo = Silo("a", X, ["b" if y else "d" for y in Y], Network(wide, TRAINING), test=None)
    silo.network.widen(["a", "b", "c", "d"])
    silo.network.train(epochs=200)
    assert set(silo.network.logits(X).argmax(1)) == {1, 3}
    assert set(silo.predict(X)) == {"b", "d"}


def test_an_optimiser_goes_on_where_it_was(silo):
    momentum = {"momentum": 0.9, "lr": 0.05}
    silo.network.train(epochs=3, **momentum)
    whole = weight(silo)
    silo.network.set_weights({"w": np.array([0.5], np.float32)})
    state = silo.network.train(epochs=1, **momentum)
    silo.network.train(epochs=2, state=state, **momentum)
    assert weight(silo) == pytest.approx(whole, abs=1e-6)
