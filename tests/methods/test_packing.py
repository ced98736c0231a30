"""Several models in one field."""

import numpy as np
import pytest

from cosilo.protocol.wire import encode

torch = pytest.importorskip("torch")
from cosilo.methods.packing import pack, unpack  # noqa: E402


def test_packing():
    models = {"a-b.c_1": {"w": np.ones((2, 2)), "n/x": np.array(3)}, "b": {"w": np.zeros(1)}}
    back = unpack(pack(models))
    assert back.keys() == models.keys()
    assert back["a-b.c_1"]["n/x"] == 3
    assert encode({"models": pack(models)})
