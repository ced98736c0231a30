"""The verdict follows the evidence."""

import pytest

from cosilo.protocol.stage import FEDERATED, LOCAL, Score
from cosilo.report.phrases import _gains
from cosilo.report.results import SiloResult, _spread


def told(*scores: tuple[float, float], instances: int = 400) -> str:
    """The verdict on silos with these accuracies before and after."""
    silos = [
        SiloResult(
            str(place),
            ("a", "b"),
            {LOCAL: Score(before, instances), FEDERATED: Score(after, instances)},
            after / before,
            (),
        )
        for place, (before, after) in enumerate(scores)
    ]
    spread = _spread(silos)
    assert spread is not None
    return _gains(spread)


@pytest.mark.parametrize(
    ("scores", "head"),
    [
        ([(0.7, 0.8), (0.6, 0.7), (0.7, 0.82), (0.65, 0.75)], "The federation helped: mean relative "),
        ([(0.8, 0.7), (0.7, 0.6), (0.82, 0.7), (0.75, 0.65)], "The federation did not help: "),
        # Four of six gained a little: the issue's own case.
        (
            [(0.8, 0.81), (0.8, 0.82), (0.8, 0.83), (0.8, 0.82), (0.8, 0.79), (0.8, 0.7)],
            "Not decided whether the federation helped: mean relative accuracy 0.994, 95 % interval",
        ),
        ([(0.8, 0.8), (0.7, 0.7)], "Nothing changed: 2 of 2 silos stayed the same."),
        (
            [(0.5, 0.8)],
            "The federation helped: relative accuracy 1.600, 95 % interval 1.425 to 1.775",
        ),
        ([(0.5, 0.52)], "Not decided whether the federation helped: relative accuracy 1.040"),
    ],
)
def test_the_head_is_what_the_interval_allows(scores, head):
    assert told(*scores).startswith(head)


def test_silos_that_were_harmed_are_counted_whatever_the_mean_says():
    text = told(*[(0.5, 0.9)] * 8, (0.9, 0.7))
    assert text.startswith("The federation helped: ")
    assert text.endswith("It harmed 1 silo beyond what the size of the test set can explain.")
    text = told(*[(0.5, 0.9)] * 8, (0.9, 0.89))
    assert "harmed" not in text
    assert text.endswith(" The loss is within what the size of the test set can explain.")
    text = told(*[(0.5, 0.9)] * 8, (0.9, 0.89), (0.9, 0.88))
    assert text.endswith(" The losses are within what the size of the test set can explain.")
    assert "explain" not in told(*[(0.5, 0.9)] * 8)


def test_much_data_decides_that_there_is_nothing():
    little = [(0.8, 0.801), (0.8, 0.799), (0.8, 0.8005)]
    assert told(*little, instances=100_000).startswith("The federation did not help: ")
    assert told(*little, instances=100).startswith("Not decided")


def test_silos_that_gain_differently_are_still_helped():
    """Three that gain for certain, by 1.09 to 1.6: that they differ does not make it doubtful."""
    assert told((0.7, 0.763), (0.6, 0.75), (0.5, 0.8)).startswith("The federation helped: ")
    assert told((0.7, 0.763), (0.6, 0.75), (0.5, 0.8), instances=20).startswith("Not decided")


def test_the_interval_by_hand():
    """Silos with 96 test instances: 48 and 72 right, as 50 and 74 of 100; then 60 and 60, as 62 of 100."""
    before, after, same = (0.5 * 0.5 / 100) ** 0.5, (0.74 * 0.26 / 100) ** 0.5, (0.62 * 0.38 / 100) ** 0.5
    first = (after**2 + (1.5 * before) ** 2) ** 0.5 / 0.5
    second = (same**2 + same**2) ** 0.5 / 0.625
    half = 1.96 * (first**2 + second**2) ** 0.5 / 2
    text = told((0.5, 0.75), (0.625, 0.625), instances=96)
    assert f"mean relative accuracy 1.250, 95 % interval {1.25 - half:.3f} to {1.25 + half:.3f}" in text


def test_an_interval_holds_what_can_be():
    assert "95 % interval 0.000 to " in told((0.1, 0.2), (0.1, 0.1), instances=10)
