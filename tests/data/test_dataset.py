"""A dataset: rows, labels and groups belong together."""

import numpy as np

from cosilo.data import Dataset


def test_take_keeps_rows_together():
    data = Dataset(
        "toy",
        np.arange(6).reshape(3, 2),
        np.array([0, 1, 1]),
        ("a", "b"),
        groups={"place": np.array([0, 1, 2])},
        group_names={"place": ("x", "y", "z")},
    )
    part = data.take(np.array([2, 0]))
    assert part.X.tolist() == [[4, 5], [0, 1]]
    assert part.y.tolist() == [1, 0]
    assert part.groups["place"].tolist() == [2, 0]
    assert len(part) == 2
