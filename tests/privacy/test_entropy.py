import numpy as np
from scipy.stats import kstest

from cosilo.privacy import entropy


def test_it_is_uniform_and_normal():
    assert kstest(entropy.uniform(20_000), "uniform").pvalue > 1e-6
    assert kstest(entropy.normal(100, 200).ravel(), "norm").pvalue > 1e-6


def test_no_seed_has_a_say_in_it():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        draws.append(entropy.normal(50))
    assert not np.allclose(*draws)


def test_the_ends_are_never_drawn(monkeypatch):
    for byte in (b"\x00", b"\xff"):
        monkeypatch.setattr("os.urandom", lambda n, byte=byte: byte * n)
        assert 0 < entropy.uniform(1)[0] < 1
        assert np.isfinite(entropy.normal(1)[0])
