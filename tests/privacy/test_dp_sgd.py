"""Gradients against torch's, one record at a time; what a record can change; what noise is added."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cosilo.privacy import dp_sgd
from cosilo.privacy.accounting import Schedule


def network(rng, sizes):
    return [(rng.normal(size=(a, b)), rng.normal(size=b)) for a, b in pairwise(sizes)]


def flat(layers):
    return np.concatenate([part.ravel() for layer in layers for part in layer])


def by_autograd(layers, x, target):
    """The gradient of one record's cross-entropy."""
    parts = [torch.tensor(part, requires_grad=True) for layer in layers for part in layer]
    out = torch.tensor(x)
    for place in range(0, len(parts), 2):
        out = out @ parts[place] + parts[place + 1]
        out = torch.relu(out) if place + 2 < len(parts) else out
    loss = -(torch.tensor(target) * torch.log_softmax(out, dim=-1)).sum()
    return np.concatenate([part.numpy().ravel() for part in torch.autograd.grad(loss, parts)])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(3, 4), (3, 5, 2), (4, 3, 3, 2)]), st.floats(0.05, 5))
def test_the_sum_is_that_of_clipped_gradients(seed, sizes, clip):
    rng = np.random.default_rng(seed)
    layers, X = network(rng, sizes), rng.normal(size=(6, sizes[0]))
    targets = np.eye(sizes[-1])[rng.integers(sizes[-1], size=6)]
    wanted = 0.0
    for x, target in zip(X, targets, strict=True):
        gradient = by_autograd(layers, x, target)
        wanted += gradient * min(1, clip / np.linalg.norm(gradient))
    np.testing.assert_allclose(flat(dp_sgd.clipped_sums(layers, X, targets, clip)), wanted, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1e6, 1e6))
def test_no_record_moves_the_sum_by_more_than_the_norm(seed, scale):
    rng = np.random.default_rng(seed)
    layers, X = network(rng, (3, 4, 2)), rng.normal(size=(5, 3))
    X[-1] *= scale
    targets = np.eye(2)[rng.integers(2, size=5)]
    with_it = flat(dp_sgd.clipped_sums(layers, X, targets, 1.0))
    without = flat(dp_sgd.clipped_sums(layers, X[:-1], targets[:-1], 1.0))
    assert np.linalg.norm(with_it - without) <= 1 + 1e-9


def test_by_hand():
    """Two classes, weights of 0: the error is (−½, ½), the norm² (2² + 1) · ½, so it is cut to 1."""
    ((W, b),) = dp_sgd.clipped_sums([(np.zeros((1, 2)), np.zeros(2))], np.array([[2.0]]), np.eye(2)[[0]], 1.0)
    length = np.sqrt(2.5)
    np.testing.assert_allclose(W, [[-1 / length, 1 / length]])
    np.testing.assert_allclose(b, [-0.5 / length, 0.5 / length])


def test_the_noise_is_as_large_as_was_promised():
    """No records, one step: what is learnt is noise, times the rate, through the share."""
    noise, count, schedule = 3.0, 1000.0, Schedule(sampling=0.5, steps=1)
    ((W, _),) = dp_sgd.train(np.empty((0, 500)), np.empty(0, int), 20, noise, schedule, count)
    scale = dp_sgd.RATE * noise * dp_sgd.CLIP / (dp_sgd.CLIP * 0.5 * count)
    assert W.std() == pytest.approx(scale, rel=0.05)


def test_records_are_drawn_each_by_itself(monkeypatch):
    drawn = []

    def watch(layers, X, targets, clip):
        drawn.append(X[:, 0].astype(int))
        return [(np.zeros_like(W), np.zeros_like(b)) for W, b in layers]

    monkeypatch.setattr(dp_sgd, "clipped_sums", watch)
    X = np.arange(2000.0)[:, None]
    dp_sgd.train(X, np.zeros(2000, int), 2, 1.0, Schedule(sampling=0.25, steps=50), 2000.0)
    sizes = [len(one) for one in drawn]
    assert len(set(sizes)) > 10  # no fixed size of batches
    assert np.mean(sizes) == pytest.approx(500, abs=5 * np.sqrt(2000 * 0.25 * 0.75 / 50))


@pytest.mark.parametrize("hidden", [0, 16])
def test_what_is_easy_is_learnt_with_noise(hidden):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1000)
    X = np.eye(3)[y] + 0.1 * rng.normal(size=(1000, 3))
    layers = dp_sgd.train(X, y, 3, 1.7, Schedule(), 1000.0, hidden)
    found = dp_sgd.chances(layers, X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.mean(found.argmax(axis=1) == y) > 0.95


def test_a_count_has_noise_and_a_floor():
    counts = [dp_sgd.noisy_count(500, 10.0) for _ in range(400)]
    assert np.std(counts) == pytest.approx(10, rel=0.25)
    assert dp_sgd.noisy_count(0, 1e-9) == 10
