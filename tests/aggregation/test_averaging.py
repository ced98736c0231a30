import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.aggregation.averaging import mean, same_structure
from cosilo.errors import BadMessage, ConfigError


def test_a_mean_by_hand():
    # (1·1 + 3·5) / 4 = 4; the counter (2 + 3·3) / 4 = 2.75 becomes 3
    first = {"w": np.array([1.0], np.float32), "seen": np.array(2)}
    second = {"w": np.array([5.0], np.float32), "seen": np.array(3)}
    found = mean([(first, 1.0), (second, 3.0)])
    assert found["w"].tolist() == [4.0]
    assert found["w"].dtype == np.float32
    assert found["seen"] == 3
    assert isinstance(found["seen"], np.ndarray)
    assert found["seen"].dtype == first["seen"].dtype


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.1, 10)), min_size=1, max_size=8))
def test_a_mean_equals_numpys(models):
    found = mean([({"w": np.array([value])}, share) for value, share in models])
    values, shares = zip(*models, strict=True)
    assert found["w"][0] == pytest.approx(np.average(values, weights=shares))


def test_the_models_are_left_as_they_are():
    array = np.array([1.0, 2.0])
    mean([({"w": array}, 2.0), ({"w": array}, 2.0)])
    assert array.tolist() == [1.0, 2.0]


def test_one_model_in_memory_at_a_time():
    alive = []

    def models():
        for value in range(5):
            alive.append(value)
            yield {"w": np.full(3, float(value))}, 1.0

    assert mean(models())["w"].tolist() == [2.0, 2.0, 2.0]
    assert alive == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("share", [-1.0, float("nan")])
def test_bad_shares(share):
    with pytest.raises(ConfigError, match="a model weighs"):
        mean([({"w": np.ones(1)}, share)])
    with pytest.raises(ConfigError, match="in all"):
        mean([])


MODEL = {"w": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.float32)}


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"w": MODEL["w"]}, "'b' is missing"),
        ({**MODEL, "c": MODEL["b"]}, "'c' is not in the model"),
        ({**MODEL, "b": np.zeros(3, np.float32)}, r"'b' is float32\[3\]; the model's is float32\[2\]"),
        ({**MODEL, "b": np.zeros(2)}, "'b' is float64"),
        (np.zeros(3), "not a group of named arrays"),
    ],
)
def test_another_model_is_rejected(weights, words):
    with pytest.raises(BadMessage, match=words):
        same_structure(MODEL)("a", {"weights": weights})


def test_the_same_model_passes():
    same_structure(MODEL)("a", {"weights": {name: array + 1 for name, array in MODEL.items()}})
