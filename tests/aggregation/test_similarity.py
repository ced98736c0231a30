import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cosilo.aggregation.averaging import mean
from cosilo.aggregation.similarity import (
    distance,
    fomo_weights,
    label_by_opinions,
    similarity_ratios,
)
from cosilo.errors import CosiloError, DataError

NAN = float("nan")


def equation_19(own, losses, distances, rate, g1, g2):
    """Eq. 19 as printed, with loops; nothing is near 0 and something is positive."""
    raw = [
        max((rate * (own - loss) + g1 + rate * g2) / apart, 0.0)
        for loss, apart in zip(losses, distances, strict=True)
    ]
    return [value / sum(raw) for value in raw]


def test_ratios_by_hand():
    # γ = 0.5. Gains 0.5·(2 − 1) = 0.5, 0.5·(2 − 0) = 1, 0.5·(2 − 3) = −0.5, divided by the distances:
    # 0.5 / 2 = 0.25, 1 / 1 = 1, below 0. In all 1.25, so 0.2, 0.8 and 0.
    found = similarity_ratios(2.0, [1.0, 0.0, 3.0], [2.0, 1.0, 4.0], rate=0.5)
    np.testing.assert_allclose(found, [0.2, 0.8, 0.0])
    # G1 = 0.25 and G2 = 1 add 0.25 + 0.5·1 = 0.75: 1.25 / 2 = 0.625, 1.75 / 1, 0.25 / 4 = 0.0625.
    found = similarity_ratios(2.0, [1.0, 0.0, 3.0], [2.0, 1.0, 4.0], rate=0.5, g1=0.25, g2=1.0)
    np.testing.assert_allclose(found, np.array([0.625, 1.75, 0.0625]) / 2.4375)


def test_its_own_model_is_at_the_floor():
    # Both distances are below the floor of 0.5: 1 / 0.5 each.
    assert similarity_ratios(1.0, [0.0, 0.0], [0.0, 0.25], rate=1.0, floor=0.5).tolist() == [0.5, 0.5]
    assert similarity_ratios(1.0, [0.0, 0.0], [0.0, 1.0], rate=1.0)[0] == pytest.approx(1e6 / (1e6 + 1))


def test_without_a_positive_ratio_all_are_0():
    assert similarity_ratios(1.0, [2.0, 1.0, NAN], [1.0, 1.0, NAN], rate=0.1).tolist() == [0, 0, 0]
    assert similarity_ratios(1.0, [2.0, 0.5, 3.0], [1.0, 1.0, 1.0], rate=0.1).tolist() == [0, 1, 0]


def test_a_model_that_diverged_counts_nothing():
    assert similarity_ratios(1.0, [math.inf, 0.5], [math.inf, 1.0], rate=0.1).tolist() == [0, 1]
    assert similarity_ratios(1.0, [0.1, 0.5], [math.inf, 1.0], rate=0.1).tolist() == [0, 1]


losses = st.floats(0, 10, allow_subnormal=False)
pairs = st.lists(st.tuples(losses, st.floats(0.01, 100)), min_size=1, max_size=9)


@given(losses, pairs, st.floats(0.001, 1), st.floats(0, 2), st.floats(0, 2))
def test_ratios_equal_the_equation(own, models, rate, g1, g2):
    theirs, apart = map(list, zip(*models, strict=True))
    found = similarity_ratios(own, theirs, apart, rate=rate, g1=g1, g2=g2)
    assert (found >= 0).all()
    assert not found.any() or found.sum() == pytest.approx(1)
    if any(rate * (own - loss) + g1 + rate * g2 > 1e-9 for loss in theirs):
        np.testing.assert_allclose(found, equation_19(own, theirs, apart, rate, g1, g2), atol=1e-12)


@given(losses, pairs, st.data())
def test_what_is_not_there_changes_nothing_for_the_others(own, models, data):
    theirs, apart = map(np.array, zip(*models, strict=True))
    place = data.draw(st.integers(0, len(theirs)))
    found = similarity_ratios(own, np.insert(theirs, place, NAN), np.insert(apart, place, NAN), rate=0.1)
    assert found[place] == 0
    np.testing.assert_allclose(np.delete(found, place), similarity_ratios(own, theirs, apart, rate=0.1))


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((1.0, [NAN, NAN], [1.0, 1.0]), {}, "none of the models is there"),
        ((NAN, [1.0], [1.0]), {}, "own_loss is nan; wants a finite loss"),
        ((1.0, [-math.inf], [1.0]), {}, "one is -inf"),
        ((1.0, [1.0], [-1.0]), {}, r"distances\[0\] is -1.0"),
        ((1.0, [1.0, 2.0], [1.0, NAN]), {}, r"distances\[1\] is nan"),
        ((1.0, [1.0], [1.0, 2.0]), {}, "distances: got 2; wants 1"),
        ((1.0, [[1.0]], [1.0]), {}, r"losses: got an array of shape \(1, 1\)"),
        ((1.0, [1.0], [1.0]), {"rate": 0.0}, "rate is 0.0; wants a finite number above 0"),
        ((1.0, [1.0], [1.0]), {"floor": 0.0}, "floor is 0.0"),
        ((1.0, [1.0], [1.0]), {"g1": -1.0}, "g1 is -1.0"),
        ((1.0, [1.0], [1.0]), {"g2": NAN}, "g2 is nan"),
    ],
)
def test_bad_losses_and_constants(arguments, options, words):
    with pytest.raises(CosiloError, match=words) as caught:
        similarity_ratios(*arguments, **{"rate": 0.1, **options})
    assert "\n" not in str(caught.value)


def test_fomo_by_hand():
    # (2 − 1) / 2 = 0.5, (2 − 0.5) / 1 = 1.5, (2 − 3) / 1 below 0, the base itself, one that is not there.
    found = fomo_weights(2.0, [1.0, 0.5, 3.0, 1.0, NAN], [2.0, 1.0, 1.0, 0.0, NAN])
    assert found.tolist() == [0.25, 0.75, 0.0, 0.0, 0.0]


@given(losses, pairs)
def test_fomo_equals_the_ratios_without_constants(base, models):
    theirs, apart = map(list, zip(*models, strict=True))
    found = fomo_weights(base, theirs, apart)
    if min(theirs) < base:
        np.testing.assert_allclose(found, similarity_ratios(base, theirs, apart, rate=1.0, floor=1e-300))
    else:
        assert not found.any()


def test_fomo_moves_the_model_to_the_better_ones():
    # θ ← θ_base + Σ w_n (θ_n − θ_base) is the mean with these weights, for they add up to 1: 0.25·8 + 0.75·4.
    weights = fomo_weights(2.0, [1.0, 0.5], [2.0, 1.0])
    models = [{"w": np.array([8.0])}, {"w": np.array([4.0])}]
    assert mean(zip(models, weights, strict=True))["w"].tolist() == [5.0]


def test_bad_fomo():
    with pytest.raises(DataError, match="base_loss is inf"):
        fomo_weights(math.inf, [1.0], [1.0])
    with pytest.raises(DataError, match="one is -inf"):
        fomo_weights(1.0, [-math.inf], [1.0])
    with pytest.raises(DataError, match=r"distances\[0\] is nan"):
        fomo_weights(1.0, [0.5], [NAN])


def test_labels_by_hand():
    # Instance 0: 0.5·(0.6, 0.4, 0) + 0.25·(0, 1, 0) = (0.3, 0.45, 0): class 1 with 0.45 / 0.75 = 0.6.
    # Instance 1: 0.5·(0, 0, 1) + 0.25·(0, 0, 1): class 2 with all the weight.
    # Instance 2: 0.5·(0.5, 0, 0.5) + 0.25·(0.5, 0, 0.5): a tie of 0 and 2, the lower wins with a half.
    first = np.array([[0.6, 0.4, 0], [0, 0, 1], [0.5, 0, 0.5]])
    second = np.array([[0, 1.0, 0], [0, 0, 1], [0.5, 0, 0.5]], np.float32)
    codes, confidence = label_by_opinions([(0.5, first), (0.25, second), (0.0, np.eye(3))])
    assert codes.tolist() == [1, 2, 0]
    np.testing.assert_allclose(confidence, [0.6, 1.0, 0.5])
    assert first[0, 0] == 0.6


@given(st.data())
def test_labels_equal_a_mean_of_probabilities(data):
    models, instances, classes = (data.draw(st.integers(1, most)) for most in (5, 6, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    opinions = rng.dirichlet(np.ones(classes), (models, instances))
    weights = rng.dirichlet(np.ones(models)) * data.draw(st.floats(0.1, 10))
    codes, confidence = label_by_opinions((float(w), p) for w, p in zip(weights, opinions, strict=True))
    average = np.average(opinions, axis=0, weights=weights)
    np.testing.assert_array_equal(codes, average.argmax(axis=1))
    np.testing.assert_allclose(confidence, average.max(axis=1))
    assert (confidence >= 1 / classes - 1e-12).all()


def test_one_models_probabilities_at_a_time():
    alive = []

    def opinions():
        for place in range(3):
            alive.append(place)
            yield 1.0, np.eye(2)
            assert alive[-1] == place  # the next is made when this one was counted

    assert label_by_opinions(opinions())[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("opinions", "words"),
    [
        ([], "weigh 0 in all; wants a model with a ratio above 0"),
        ([(0.0, np.eye(2))], "weigh 0 in all"),
        ([(-1.0, np.eye(2))], "opinion 0: its ratio is -1.0"),
        ([(1.0, np.eye(2)), (NAN, np.eye(2))], "opinion 1: its ratio is nan"),
        ([(1.0, np.eye(2)), (1.0, np.eye(3))], r"opinion 1: probabilities of shape \(3, 3\); wants \(2, 2\)"),
        ([(1.0, np.ones(2))], "wants instances × classes"),
        ([(1.0, np.full((2, 2), NAN))], "opinion 0: its probabilities hold NaN"),
    ],
)
def test_bad_opinions(opinions, words):
    with pytest.raises(DataError, match=words):
        label_by_opinions(opinions)


MODEL = {
    "b": np.array([1, 2], np.float32),
    "a": np.array([[3.0], [4.0]]),
    "n": np.array(5),
    "m": np.array(True),
}


@given(arrays(np.float32, (2, 7), elements=st.floats(-1e3, 1e3, width=32)))
def test_a_distance_is_that_of_the_vectors(values):
    one, other = ({"w": row[:4].reshape(2, 2), "b": row[4:], "seen": np.array(3)} for row in values)
    other["seen"] = np.array(4)
    assert distance(one, other) == pytest.approx(np.linalg.norm(values[0].astype(float) - values[1]))
    assert distance(one, other) == distance(other, one)
    assert distance(one, one) == 0


def test_a_distance_is_taken_in_float64():
    big = {"w": np.array([6e4], np.float16)}
    assert distance(big, {"w": -big["w"]}) == pytest.approx(2 * float(big["w"][0]))


def test_models_of_another_form_have_no_distance():
    with pytest.raises(DataError, match="'a' is in one of the two models only"):
        distance(MODEL, {"b": MODEL["b"]})
    with pytest.raises(DataError, match=r"'b' has the shapes \(2,\) and \(3,\)"):
        distance(MODEL, {**MODEL, "b": np.zeros(3)})
