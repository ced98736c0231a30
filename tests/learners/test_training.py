import pytest
from pydantic import ValidationError

from cosilo.errors import ConfigError
from cosilo.learners import Training


def test_rates_by_hand():
    rates = {
        "constant": [0.4, 0.4, 0.4],
        "exponential": [0.4, 0.2, 0.1],
        # (1 + cos 0°)/2 = 1, (1 + cos 60°)/2 = 3/4, (1 + cos 120°)/2 = 1/4
        "cosine": [0.4, 0.3, 0.1],
        "step": [0.4, 0.2, 0.1],
    }
    for schedule, wanted in rates.items():
        training = Training(lr=0.4, decay=0.5, schedule=schedule, epochs=3)
        assert [training.rate(epoch) for epoch in range(3)] == pytest.approx(wanted)


def test_steps_come_after_each_third():
    training = Training(lr=1, decay=0.1, schedule="step", epochs=6)
    assert [training.rate(e) for e in range(6)] == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])


@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": 0},
        {"lr": float("inf")},
        {"momentum": 1},
        {"weight_decay": -1},
        {"decay": 0},
        {"decay": 1.1},
        {"epochs": 0},
        {"batch": 0},
        {"patience": 0},
        {"optimiser": "lion"},
        {"schedule": "sometimes"},
        {"device": "tpu"},
        {"learning_rate": 0.1},
    ],
)
def test_wrong_settings_are_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Training(**wrong)


def test_recipes_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        Training().lr = 1


def test_a_misspelt_change_is_an_error():
    assert Training(lr=0.1).but(epochs=3, patience=None) == Training(lr=0.1, epochs=3)
    with pytest.raises(ConfigError, match=r"Training\.epoch: there is no such parameter"):
        Training().but(epoch=3)
    with pytest.raises(ConfigError, match="got -1; wants more than 0"):
        Training().but(lr=-1)
