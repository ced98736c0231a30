"""What noise costs, by hand where there is a formula, and against other ways to count it."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from cosilo.errors import ConfigError
from cosilo.privacy import accounting
from cosilo.privacy.accounting import Schedule, epsilon_of, noise_multiplier

NO_COUNT = 1e6
"""So much noise that counting the records costs nothing."""


def gaussian_epsilon(mu, delta):
    """Of normal noise on something that a record moves by μ deviations: Balle and Wang's formula."""

    def surplus(epsilon):
        tails = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return tails - delta

    return brentq(surplus, 0, 200)


@pytest.mark.parametrize(
    ("noise", "steps", "count_noise"), [(2.0, 1, NO_COUNT), (4.0, 9, 10.0), (1.0, 4, 3.0)]
)
def test_without_sampling_it_is_the_formula_for_normal_noise(noise, steps, count_noise):
    mu = math.sqrt(steps / noise**2 + 1 / count_noise**2)
    by_hand = gaussian_epsilon(mu, 1e-5)
    found = epsilon_of(noise, 1e-5, Schedule(1.0, steps, count_noise))
    assert by_hand <= found <= by_hand + 0.02


@pytest.mark.parametrize(("noise", "sampling"), [(1.0, 0.25), (2.0, 0.5)])
def test_one_sampled_step_is_what_integrating_the_densities_gives(noise, sampling):
    def mixture(x):
        return (1 - sampling) * norm.pdf(x, 0, noise) + sampling * norm.pdf(x, 1, noise)

    def surplus(epsilon):
        """What one density has above e^ε times the other, the worse of both ways round."""
        ways = [
            lambda x: max(0.0, mixture(x) - math.exp(epsilon) * norm.pdf(x, 0, noise)),
            lambda x: max(0.0, norm.pdf(x, 0, noise) - math.exp(epsilon) * mixture(x)),
        ]
        return max(quad(way, -15, 15, limit=100, points=[-5, 0, 1, 5])[0] for way in ways) - 1e-3

    by_hand = brentq(surplus, 1e-3, 10)
    assert epsilon_of(noise, 1e-3, Schedule(sampling, 1, NO_COUNT)) == pytest.approx(by_hand, abs=0.01)


def test_what_published_tables_say_by_a_looser_count():
    """MNIST in TensorFlow Privacy's tutorial: noise 1.1, batches of 256 of 60,000, 60 epochs: ε = 3.01."""
    steps = 60 * 60_000 // 256
    found = epsilon_of(1.1, 1e-5, Schedule(256 / 60_000, steps, NO_COUNT))
    assert 2.3 < found < 3.01


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_noise_is_enough_by_another_accountant_and_hardly_more(epsilon):
    from dp_accounting.rdp import rdp_privacy_accountant

    schedule = Schedule(count_noise=max(10.0, 20.0 / epsilon))
    noise = noise_multiplier(epsilon, 1e-5, schedule)
    assert epsilon_of(noise, 1e-5, schedule) <= epsilon < epsilon_of(noise - 0.02, 1e-5, schedule)
    moments = rdp_privacy_accountant.RdpAccountant().compose(accounting._event(noise, schedule))
    assert epsilon <= moments.get_epsilon(1e-5) <= 1.25 * epsilon  # its bound is looser, by no more than this


def test_more_noise_costs_less():
    costs = [epsilon_of(noise, 1e-5, Schedule()) for noise in (1.0, 2.0, 4.0)]
    assert np.all(np.diff(costs) < 0)


def test_a_missing_library_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(accounting, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"make install EXTRAS=privacy, or pip install '.*\[privacy\]'"):
        accounting.need_library()
