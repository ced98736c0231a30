import numpy as np
import pytest

from cosilo.aggregation.gaussians import of_directions, of_weights


def test_directions_by_hand():
    # From (1, 1) one silo went 3 along x and weighs 2, one went 1 along y and weighs 1, one stayed, weighs 1.
    start = {"w": np.array([1.0, 1.0])}
    models = [
        ({"w": start["w"] + move}, size) for move, size in (([3, 0], 2.0), ([0, 1], 1.0), ([0, 0], 1.0))
    ]
    found = of_directions(models, start)["w"]
    assert found.length == pytest.approx((2 * 3 + 1 * 1 + 0) / 4)
    assert found.mean == pytest.approx([0.5, 0.25])
    assert found.variance == pytest.approx([0.5 - 0.25, 0.25 - 0.0625])
    assert found.origin is start["w"]


def test_every_tensor_has_a_length_of_its_own():
    start = {"a": np.zeros(1), "b": np.zeros(1)}
    models = [({"a": np.array([100.0]), "b": np.array([0.01])}, 1.0)]
    found = of_directions(models, start)
    assert [(one.mean[0], one.length) for one in found.values()] == [(1.0, 100.0), (1.0, 0.01)]


def test_weights_by_hand():
    models = [({"w": np.array([0.0])}, 3.0), ({"w": np.array([4.0])}, 1.0)]
    found = of_weights(models, {"w": np.array([1.0])})["w"]
    assert found.mean == [1.0]
    assert found.variance == [(3 * 1 + 1 * 9) / 4]
    assert (found.origin, found.length) == (0.0, 1.0)


@pytest.mark.parametrize("fit", [of_directions, of_weights])
def test_counters_and_statistics_of_batch_norm_are_not_drawn(fit):
    weights = {
        "bn.weight": np.ones(2),
        "bn.running_mean": np.zeros(2),
        "bn.running_var": np.ones(2),
        "bn.num_batches_tracked": np.array(3),
    }
    assert list(fit([(weights, 1.0)], weights)) == ["bn.weight"]
