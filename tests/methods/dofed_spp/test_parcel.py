import numpy as np

from cosilo.methods.dofed_spp.parcel import Models, wrap
from cosilo.protocol.wire import decode, encode


def stored(count):
    rng = np.random.default_rng(4)
    base = rng.normal(size=50).astype(np.float32)
    lines = rng.normal(size=(2, 50)).astype(np.float32)
    return {
        f"silo-{i}": {"w": base + rng.normal(size=2).astype(np.float32) @ lines, "seen": np.array(i)}
        for i in range(count)
    }


def through(message):
    """As a silo gets it."""
    return Models(**decode(encode(message)))


def test_models_come_back_as_they_were():
    models = stored(3)
    message, errors = wrap(list(models), models.__getitem__, None)
    found = through(message)
    assert set(found) == set(models)
    assert len(found) == 3
    assert errors == {}
    for name, weights in found.items():
        np.testing.assert_array_equal(weights["w"], models[name]["w"])


def test_downsized_they_come_back_nearly_with_their_counters():
    models = stored(8)  # which differ in two directions
    message, errors = wrap(list(models), models.__getitem__, 2)
    found = through(message)
    assert list(found) == list(models)
    for name, weights in found.items():
        np.testing.assert_allclose(weights["w"], models[name]["w"], atol=1e-5)
        assert weights["w"].dtype == np.float32
        assert weights["seen"] == models[name]["seen"]
        assert errors[name] < 1e-3


def test_what_is_sent_is_a_mean_and_directions_and_numbers():
    models = stored(8)
    large, small = (len(encode(wrap(list(models), models.__getitem__, r)[0])) for r in (None, 1))
    names = sum(len(name) for name in models)
    assert large > 8 * 200
    assert small < 2 * 200 + 8 * 8 + 8 * 8 + 30 * names


def test_some_of_the_models_that_were_downsized_together():
    models = stored(8)
    all_, errors = wrap(list(models), models.__getitem__, 1)
    some, fewer = wrap(["silo-6", "silo-1", "silo-2"], models.__getitem__, 1, over=list(models))
    assert fewer == {name: errors[name] for name in ("silo-6", "silo-1", "silo-2")}
    for name, weights in through(some).items():
        np.testing.assert_array_equal(weights["w"], through(all_)[name]["w"])


def test_where_nothing_would_be_saved_models_are_sent_as_they_are():
    models = stored(4)
    message, errors = wrap(list(models), models.__getitem__, 3)
    assert "coefficients" not in message
    assert errors == {}
