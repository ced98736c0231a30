"""What every split is: parts, tasks, a picture."""

import numpy as np
import pytest

from cosilo.data import by_value, iid
from cosilo.errors import DataError


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([], "y: is empty"),
        ([[0, 1]], r"y: got int64 of shape \(1, 2\)"),
        (["a", "b"], r"y: got <U1 of shape \(2,\); wants one integer code per instance"),
        ([0.0, 1.0], "y: got float64"),
        ([0, -1], "y: holds the code -1; wants codes from 0"),
    ],
)
def test_codes_are_checked(y, words):
    with pytest.raises(DataError, match=words):
        iid(y, 1)


class TestPlot:
    def test_a_bubble_for_each_silo_and_class(self):
        y = np.array([0, 0, 0, 0, 1])
        split = by_value(["a", "a", "b", "b", "b"], y)
        figure = split.plot(y, ["cat", "dog"])
        axes = figure.axes[0]
        (bubbles,) = axes.collections
        assert bubbles.get_offsets().tolist() == [[0, 0], [1, 0], [1, 1]]
        sizes = bubbles.get_sizes()
        assert sizes[0] == pytest.approx(2 * sizes[2])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]

    def test_can_be_saved_and_leaves_nothing_global(self, tmp_path):
        import matplotlib.pyplot as plt

        y = np.repeat(np.arange(20), 50)
        iid(y, 100).plot(y, [f"class {code}" for code in range(20)]).savefig(tmp_path / "split.png")
        assert (tmp_path / "split.png").stat().st_size > 1000
        assert plt.get_fignums() == []

    def test_another_y(self):
        with pytest.raises(DataError, match="y: has 2 labels, but the split holds index 4"):
            iid(np.zeros(5, int), 2).plot([0, 0], ["a"])
        with pytest.raises(DataError, match="y: holds the code 3, but there are 1 classes"):
            iid(np.zeros(5, int), 2).plot([0, 0, 0, 0, 3], ["a"])
