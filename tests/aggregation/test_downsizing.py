import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from cosilo.aggregation import downsizing
from cosilo.aggregation.downsizing import counters, downsize, restore
from cosilo.errors import ConfigError, DataError


def named(row):
    """A row of parameters as two arrays, beside a counter."""
    return {"w": row[1:].reshape(1, -1), "b": row[:1], "seen": np.array(3)}


def downsized(models, components):
    """What comes back, as rows, and what was said to be lost."""
    stored = {str(place): named(row) for place, row in enumerate(models)}
    found = downsize(list(stored), stored.__getitem__, components)
    back = [restore(found.mean, found.directions, row) for row in found.coefficients]
    return np.stack([np.concatenate([one["b"], one["w"][0]]) for one in back]), found.errors


@given(st.integers(3, 8), st.integers(1, 12), st.integers(1, 6), st.integers(0, 99), st.integers(1, 4))
def test_it_equals_scikit_learns_pca(count, length, components, seed, at_once):
    models = np.random.default_rng(seed).normal(3, 2, (count, length))
    components = min(components, count - 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downsizing, "_AT_ONCE", at_once)
        smaller, errors = downsized(models, components)
    pca = PCA(min(components, length), svd_solver="full").fit(models)
    expected = pca.inverse_transform(pca.transform(models))
    np.testing.assert_allclose(smaller, expected, atol=1e-7)
    lost = np.linalg.norm(expected - models, axis=1) / np.linalg.norm(models, axis=1)
    np.testing.assert_allclose(errors, lost, atol=1e-5)  # the root of a difference of squares


def test_by_hand():
    # Four models on a line through their mean: one direction holds them.
    line = np.array([[1.0, 3.0], [2.0, 4.0], [3.0, 5.0], [6.0, 8.0]])
    smaller, errors = downsized(line, 1)
    np.testing.assert_allclose(smaller, line, atol=1e-7)
    np.testing.assert_allclose(errors, 0, atol=1e-7)
    # Mean (0, 0); the first direction is x, with 2·4² against 2·1² along y: what lies along y is lost.
    cross = np.array([[4.0, 0], [-4.0, 0], [0, 1.0], [0, -1.0]])
    smaller, errors = downsized(cross, 1)
    np.testing.assert_allclose(smaller, [[4, 0], [-4, 0], [0, 0], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(errors, [0, 0, 1, 1], atol=1e-12)


def test_one_pca_over_all_models_spares_none_of_them():
    """25 models that differ in every direction: in blocks, the last few would have come through whole."""
    models = np.random.default_rng(0).normal(size=(25, 400))
    errors = downsized(models, 4)[1]
    assert errors.min() > 0.6
    assert np.sqrt(np.square(errors).mean()) == pytest.approx(0.88, abs=0.03)


def test_more_components_lose_less():
    models = np.random.default_rng(1).normal(size=(8, 300)).astype(np.float32)
    lost = [np.square(downsized(models, r)[0] - models).sum() for r in range(1, 7)]
    assert lost == sorted(lost, reverse=True)
    assert downsized(models, 3)[0].dtype == np.float32


def test_where_nothing_would_be_saved():
    stored = {name: named(np.ones(3)) for name in "abc"}
    assert downsize(list("abc"), stored.__getitem__, 2) is None
    assert downsize(["a"], stored.__getitem__, 1) is None


def test_equal_models_and_models_of_zeros():
    for models in (np.ones((4, 6)), np.zeros((4, 6))):
        smaller, errors = downsized(models, 1)
        np.testing.assert_allclose(smaller, models)
        np.testing.assert_allclose(errors, 0, atol=1e-12)


def test_few_models_are_in_memory_at_a_time(monkeypatch):
    monkeypatch.setattr(downsizing, "_AT_ONCE", 2)
    rows, reads = np.random.default_rng(2).normal(size=(6, 3)), []
    downsize([str(i) for i in range(6)], lambda name: reads.append(name) or named(rows[int(name)]), 2)
    # Products: 2 + 4 others, 2 + 2, 2; then the mean, and the directions.
    assert len(reads) == 6 + 4 + 2 + 6 + 6


def test_counters_are_left_alone():
    assert list(counters(named(np.ones(2)))) == ["seen"]


def test_bad_input():
    with pytest.raises(ConfigError, match="components is 0; wants at least 1"):
        downsize(list("abc"), lambda name: named(np.ones(2)), 0)
    with pytest.raises(DataError, match="model 'a': w holds NaN"):
        downsize(list("abc"), lambda name: named(np.array([1.0, np.nan])), 1)
