"""Instances as tensors, and what a module sees of them."""

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
from cosilo.errors import LearnerError  # noqa: E402
from cosilo.learners.tensors import Labelled, as_module_input, as_tensor, outputs  # noqa: E402


def test_bytes_stay_bytes_without_a_copy_and_numbers_become_floats():
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    tensor = as_tensor(images, "net")
    assert tensor.dtype == torch.uint8
    images[0, 0, 0] = 99
    assert tensor[0, 0, 0] == 99
    assert as_tensor(np.array([[1, 2]]), "net").dtype == torch.float32
    assert as_tensor(pd.DataFrame({"a": [1], "b": [2.5]}), "net").tolist() == [[1, 2.5]]


@pytest.mark.parametrize(
    ("X", "line"),
    [
        (np.array(["a"], dtype=object), "net wants numbers; got text"),
        (pd.DataFrame({"a": [1], "job": ["cook"]}), "net wants numbers; column 'job' is"),
    ],
)
def test_words_are_refused(X, line):
    with pytest.raises(LearnerError, match=line):
        as_tensor(X, "net")


def test_a_module_sees_channels_first_and_bytes_between_minus_one_and_one():
    grey = torch.tensor([[[0, 255]]], dtype=torch.uint8)
    assert as_module_input(grey).tolist() == [[[[-1, 1]]]]
    assert as_module_input(torch.zeros(5, 6, 7, 3)).shape == (5, 3, 6, 7)
    rows = torch.tensor([[0.0, 255.0]])
    assert as_module_input(rows).tolist() == rows.tolist()


def test_codes_are_whole_numbers_and_targets_are_not():
    x = torch.zeros(2, 1)
    assert Labelled.of(x, np.array([0, 1])).y.dtype == torch.long
    assert Labelled.of(x, np.array([0.5, 1.0])).y.dtype == torch.float32
    assert Labelled.of(x, np.array([0, 1]), np.array([1.0, 2.0])).weight.tolist() == [1, 2]


def test_outputs_of_a_wrong_shape_are_one_line():
    with pytest.raises(LearnerError, match=r"net.forward returned shape \(4, 3\); wants a tensor of shape"):
        outputs(torch.nn.Linear(2, 3), torch.zeros(4, 2), 5, "net")
    assert outputs(torch.nn.Linear(2, 3), torch.zeros(4, 2), 3, "net").shape == (4, 3)
