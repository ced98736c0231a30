import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosilo.data.instances import take
from cosilo.privacy.features import features

WORDS = [f"{a} {b} {c}" for a in ("red", "blue") for b in ("car", "boat") for c in "xyz"]
TEXTS = np.array(WORDS * 12, object)
FRAME = pd.DataFrame(
    {"age": np.arange(60), "job": ["nurse", "baker", "smith"] * 20, "member": [True, False] * 30}
)
POOLS = {
    "bytes": np.random.default_rng(0).integers(0, 256, (80, 4, 4), dtype=np.uint8),
    "numbers": np.random.default_rng(1).normal(size=(80, 5)),
    "text": TEXTS,
    "frame": FRAME,
}
OF_FRAME, OF_TEXTS = features(FRAME, 4), features(TEXTS, 4)


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_rows_have_one_length_and_depend_on_themselves_alone(pool):
    made = features(pool, 4)
    whole = made(pool)
    assert whole.shape[1] <= 4
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1)
    one_by_one = np.vstack([made(take(pool, slice(i, i + 1))) for i in range(10)])
    np.testing.assert_allclose(one_by_one, whole[:10], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.floats(-1e12, 1e12), st.text(max_size=20))
def test_what_the_pool_never_saw_stays_bounded(number, word):
    strange = pd.DataFrame({"age": [number], "job": [word], "member": [False]})
    assert np.linalg.norm(OF_FRAME(strange)) <= 1 + 1e-9
    assert np.linalg.norm(OF_TEXTS(np.array([word], object))) <= 1 + 1e-9


def test_a_column_that_is_constant_in_the_pool_says_nothing():
    pool = np.random.default_rng(0).normal(size=(50, 3))
    pool[:, 1] = 7
    made = features(pool, 3)
    X = np.zeros((2, 3))
    X[1, 1] = 1e6
    np.testing.assert_allclose(*made(X))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_tiny_pool_is_enough_to_go_on(size):
    assert features(np.eye(size + 1)[:size], 30)(np.eye(size + 1)).shape[0] == size + 1
