"""The guarantee attacked: voters with and without a canary are told apart no better than was claimed."""

import math

import numpy as np
import pytest

from cosilo.privacy import dp_sgd
from cosilo.privacy.accounting import noise_multiplier
from cosilo.privacy.attack import empirical_epsilon
from cosilo.privacy.voter import schedule_for


def found_by_attack(epsilon, less_noise=1.0, times=120):
    """What tells voters with a canary from others: it is the only record that has anything of its feature.

    The attacker sees all that was learnt, and knows the noisy count.
    """
    schedule = schedule_for(epsilon)
    noise = noise_multiplier(epsilon, 1e-5, schedule) / less_noise
    X, y = np.zeros((11, 2)), np.ones(11, int)
    X[:10, 0], X[10, 1], y[10] = 1, 10, 0
    scores = {}
    for n in (11, 10):
        scores[n] = np.empty(times)
        for place in range(times):
            count = dp_sgd.noisy_count(n, schedule.count_noise)
            W = dp_sgd.train(X[:n], y[:n], 2, noise, schedule, count)[0][0]
            scores[n][place] = count * (W[1, 0] - W[1, 1])
    return empirical_epsilon(scores[11], scores[10], 1e-5)


def test_an_attacker_finds_no_more_than_was_claimed():
    assert found_by_attack(8.0) < 8.0


def test_the_same_attack_finds_a_training_with_too_little_noise():
    assert found_by_attack(1.0, less_noise=100) > 1.0  # chance comes from the system: a wide margin


def test_by_hand():
    """Half of 200 are judged: all 100 right, none wrong. 0.05/2 = p^100 gives 0.9638, and 0.0362 for none."""
    found = empirical_epsilon(np.ones(200), np.zeros(200), 0.0)
    assert found == pytest.approx(math.log(0.025 ** (1 / 100) / (1 - 0.025 ** (1 / 100))), abs=1e-9)


def test_randomised_response_is_found_just_below_what_it_promises():
    """Truth with probability e^ε / (1 + e^ε) is ε-private exactly."""
    rng, epsilon = np.random.default_rng(0), 1.0
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    said = [(rng.random(20_000) < p).astype(float) for p in (truth, 1 - truth)]
    assert 0.9 < empirical_epsilon(*said, 0.0) < 1.0
