"""When a number is reached and a claim holds, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.config.reproduces import Claim, Number, Reproduces
from cosilo.reproduce.paper_verdict import judge_claim, judge_number, number_values
from cosilo.reproduce.sentences import overall, shown, shown_average, verdict_of


def number(**given):
    return Number(**{"text": "n", "of": "all.cofed.relative", **given})


def test_a_number_is_reached_when_its_spread_reaches_the_papers():
    # mean 1.2, sample standard deviation 0.1
    values = {"all.cofed.relative": [1.1, 1.2, 1.3]}
    assert judge_number(number(paper=1.3), values).reached is True
    assert judge_number(number(paper=1.31), values).reached is False
    assert judge_number(number(paper=0.5), values).reached is True  # better than the paper
    assert judge_number(number(), values).reached is None
    assert verdict_of(number(paper=1.35), values) == "not reached (−0.150)"
    assert verdict_of(number(paper=1.15), values) == "reached"
    assert verdict_of(number(paper=0.5), values) == "exceeded (+0.700)"


def test_where_less_is_better_more_is_not_reached():
    values = {"all.cofed.relative": [10.0, 10.0]}
    assert judge_number(number(paper=12.0, less=True), values).reached is True
    assert judge_number(number(paper=9.0, less=True), values).reached is False
    assert verdict_of(number(paper=9.0, less=True), values) == "not reached (+1.000)"


def test_one_seed_has_no_spread_to_excuse_it():
    assert judge_number(number(paper=1.2), {"all.cofed.relative": [1.19]}).reached is False


def test_a_quotient_is_taken_seed_by_seed():
    quotient = number(of="a.b.accuracy", over="a.c.accuracy")
    values = {"a.b.accuracy": [0.4, 0.9, None], "a.c.accuracy": [0.8, 0.6, 0.5]}
    assert number_values(quotient, values) == [0.5, pytest.approx(1.5), None]
    assert shown_average(quotient, judge_number(quotient, values).average) == "1.000 ± 0.707"


def test_numbers_are_written_with_their_units():
    assert shown(number(of="a.b.share"), 0.9) == "90.0 %"
    assert shown(number(of="a.b.elected"), 12345.0) == "12,345.0"
    assert shown_average(number(of="a.b.accuracy"), None) == "–"


def claim(more, than):
    return Claim(text="c", more=more, than=than)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"x": [2.0, 3.0], "y": [1.0, 1.0]}, "holds on all 2 seeds"),
        ({"x": [2.0, 1.0], "y": [1.0, 1.5]}, "holds on average, on 1 of 2 seeds"),
        ({"x": [1.0, 1.0], "y": [1.0, 1.0]}, "does not hold (0 of 2 seeds)"),  # a tie is no lead
        ({"x": [1.0, 1.1], "y": [2.0, 1.0]}, "does not hold (1 of 2 seeds)"),
        ({"x": [2.0], "y": [1.0]}, "holds"),
    ],
)
def test_a_claim(values, text):
    assert judge_claim(claim(["x"], ["y"]), values).text == text


def test_the_least_has_to_be_above_the_largest():
    values = {"a": [3.0], "b": [2.0], "c": [1.0], "d": [2.5]}
    assert judge_claim(claim(["a", "b"], ["c"]), values).mean
    assert not judge_claim(claim(["a", "b"], ["c", "d"]), values).mean


def test_a_given_number_has_to_be_reached_only():
    assert judge_claim(claim(["x"], 0.9), {"x": [0.9, 0.9]}).everywhere
    assert not judge_claim(claim(["x"], 0.9), {"x": [0.89, 0.9]}).mean


def test_a_claim_with_a_missing_value_has_no_verdict():
    assert judge_claim(claim(["x"], ["y"]), {"x": [1.0, None], "y": [0.0, 0.0]}) is None
    assert judge_claim(claim(["x"], ["y"]), {"x": [1.0]}) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_a_claim_and_its_opposite_never_both_hold(pairs):
    values = {"x": [x for x, _ in pairs], "y": [y for _, y in pairs]}
    one, other = judge_claim(claim(["x"], ["y"]), values), judge_claim(claim(["y"], ["x"]), values)
    assert not (one.mean and other.mean)
    assert one.seeds + other.seeds <= len(pairs)
    if one.everywhere:
        assert one.mean or one.by == pytest.approx(0, abs=1e-12)


def test_the_verdict_on_all_counts_numbers_and_claims():
    about = Reproduces(
        paper="FML",
        what="Table 1",
        shows="",
        methods=["cofed"],
        minutes={"laptop": 1},
        number=[number(paper=1.0), number(paper=2.0), number()],
        claim=[claim(["all.cofed.relative"], 1.0)],
    )
    assert overall(about, {"all.cofed.relative": [1.1]}) == "1 of 2 numbers reached, 1 of 1 claims hold"
