"""The weights of a torch module as arrays and as a file."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from cosilo.errors import LearnerError  # noqa: E402
from cosilo.learners import module_weights  # noqa: E402


def network():
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))


def test_what_is_read_is_a_copy_and_can_be_taken_over():
    one, other = network(), network()
    weights = module_weights.read(one)
    assert sorted(weights) == sorted(one.state_dict())
    for array in weights.values():
        array.flags.writeable = False
    module_weights.take_over(other, weights, "net")
    for name, tensor in other.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), weights[name])
    with torch.no_grad():
        one[0].bias.fill_(9)
    assert not (weights["0.bias"] == 9).any()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda w: w.pop("0.bias"), "net: the global model lacks '0.bias'; the architectures differ"),
        (lambda w: w.update(more=np.ones(1)), "net: the global model has besides 'more'; the architectures"),
        (
            lambda w: w.update({"0.bias": np.ones(4)}),
            r"net: '0.bias' is \[4\] in the global model, here \[3\]",
        ),
    ],
)
def test_weights_of_another_network_are_refused_and_change_nothing(change, line):
    module = network()
    before = module_weights.read(module)
    weights = {name: array + 1 for name, array in before.items()}
    change(weights)
    with pytest.raises(LearnerError, match=line):
        module_weights.take_over(module, weights, "net")
    for name, array in module_weights.read(module).items():
        np.testing.assert_array_equal(array, before[name])


def test_a_file_is_read_back_and_a_foreign_one_is_named(tmp_path):
    one, other = network(), network()
    module_weights.save(one, tmp_path / "w", "net")
    module_weights.load(other, tmp_path / "w", "net")
    assert torch.equal(one[0].weight, other[0].weight)
    (tmp_path / "w").write_bytes(b"nonsense")
    with pytest.raises(LearnerError, match="wants the weights of this net"):
        module_weights.load(other, tmp_path / "w", "net")
