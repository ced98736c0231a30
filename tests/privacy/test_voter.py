import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import Privacy
from cosilo.privacy.voter import mechanism, opinions


@pytest.mark.parametrize("voter", ["softmax", "mlp"])
def test_a_voter_learns_digits(voter):
    X, y = load_digits(return_X_y=True)
    how = mechanism(Privacy(epsilon=8, voter=voter))
    found, count = opinions(how, X[:1000], y[:1000], 10, X[1000:])
    assert 900 < count < 1100
    assert count != 1000
    assert found.shape == (797, 10)
    assert np.mean(found.argmax(axis=1) == y[1000:]) > 0.75


def test_less_epsilon_is_more_noise():
    assert mechanism(Privacy(epsilon=1)).noise_multiplier > 4 * mechanism(Privacy(epsilon=8)).noise_multiplier


def test_no_two_voters_are_alike():
    X, y = load_digits(return_X_y=True)
    how = mechanism(Privacy(epsilon=8))
    first, second = (opinions(how, X[:200], y[:200], 10, X[1000:]) for _ in range(2))
    assert not np.allclose(first.chances, second.chances)
