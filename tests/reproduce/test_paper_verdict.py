"""When a number is reached and a claim holds, by hand."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from cosilo.config.reproduces import Claim, Number, Reproduces
from cosilo.reproduce.paper_verdict import judge_claim, judge_number, number_values
from cosilo.reproduce.record import ReproductionRecord
from cosilo.reproduce.sentences import claim_text, overall, shown, shown_average, verdict_of

ABOUT = Reproduces(
    paper="CoFED", what="Fig. 2", shows="", methods=["cofed", "fedavg", "alpha_03"], minutes={"laptop": 1}
)


def number(**given):
    return Number(**{"text": "n", "of": "all.cofed.relative", **given})


def record(values, silos=None):
    return ReproductionRecord("n", "night", [0], values, 1.0, "", "", "", "", "", silos=silos or {})


def test_a_number_is_reached_when_its_spread_reaches_the_papers():
    # mean 1.2, sample standard deviation 0.1
    values = {"all.cofed.relative": [1.1, 1.2, 1.3]}
    assert judge_number(number(paper=1.3), values).reached is True
    assert judge_number(number(paper=1.31), values).reached is False
    assert judge_number(number(paper=0.5), values).reached is True  # better than the paper
    assert judge_number(number(), values).reached is None
    assert verdict_of(ABOUT, number(paper=1.35), record(values)) == "not reached (−0.150)"
    assert verdict_of(ABOUT, number(paper=1.15), record(values)) == "reached"
    assert verdict_of(ABOUT, number(paper=0.5), record(values)) == "exceeded (+0.700)"


def test_where_less_is_better_more_is_not_reached():
    values = {"all.cofed.relative": [10.0, 10.0]}
    assert judge_number(number(paper=12.0, less=True), values).reached is True
    assert judge_number(number(paper=9.0, less=True), values).reached is False
    assert verdict_of(ABOUT, number(paper=9.0, less=True), record(values)) == "not reached (+1.000)"


def test_a_rival_is_above_or_below_the_paper_and_never_reached():
    """FedAvg at twice the paper's accuracy is no success of the paper's method."""
    rival = number(of="all.fedavg.accuracy", paper=0.18)
    for values, text in [
        ([0.40, 0.42], "above the paper's (+23.0)"),
        ([0.10, 0.10], "below the paper's (−8.0)"),
        ([0.17, 0.19], "as in the paper"),
    ]:
        assert verdict_of(ABOUT, rival, record({"all.fedavg.accuracy": values})) == text
    alone = number(of="all.cofed.local", paper=0.15)  # training alone is a rival too
    assert verdict_of(ABOUT, alone, record({"all.cofed.local": [0.5, 0.5]})) == "above the paper's (+35.0)"
    assert ABOUT.is_own(number(of="all.alpha_03.relative"))
    assert ABOUT.is_own(number(of="all.fedavg.accuracy", over="all.cofed.accuracy"))


def test_one_seed_has_no_spread_to_excuse_it():
    assert judge_number(number(paper=1.2), {"all.cofed.relative": [1.19]}).reached is False


def test_a_verdict_on_one_seed_goes_by_the_standard_error_that_stands_beside_it():
    by_silo = {"w": 1.0, "x": 1.1, "y": 1.2, "z": 1.3}  # 1.150 (± 0.065, 4 silos)
    one = record({"all.cofed.relative": [1.15]}, {"all.cofed.relative": [by_silo]})
    assert verdict_of(ABOUT, number(paper=1.14), one) == "reached"  # and by no means exceeded
    assert verdict_of(ABOUT, number(paper=1.21), one) == "reached"
    assert verdict_of(ABOUT, number(paper=1.22), one) == "not reached (−0.070)"
    assert verdict_of(ABOUT, number(paper=1.08), one) == "exceeded (+0.070)"
    assert overall(ABOUT.model_copy(update={"number": [number(paper=1.21)]}), one) == (
        "1 of 1 numbers reached"
    )


def test_a_quotient_is_taken_seed_by_seed():
    quotient = number(of="a.b.accuracy", over="a.c.accuracy")
    values = {"a.b.accuracy": [0.4, 0.9, None], "a.c.accuracy": [0.8, 0.6, 0.5]}
    assert number_values(quotient, values) == [0.5, pytest.approx(1.5), None]
    assert shown_average(quotient, record(values)) == "1.000 ± 0.707"


def test_of_one_seed_the_standard_error_is_that_over_silos():
    relative = number(of="a.b.relative")
    by_silo = {"w": 1.0, "x": 1.1, "y": 1.2, "z": 1.3}  # standard deviation 0.129, divided by √4
    one = record({"a.b.relative": [1.15]}, {"a.b.relative": [by_silo]})
    assert shown_average(relative, one) == "1.150 (± 0.065, 4 silos)"
    late = record({"a.b.relative": [None, 1.15]}, {"a.b.relative": [None, by_silo]})
    assert shown_average(relative, late) == "1.150 (± 0.065, 4 silos)"
    two = record({"a.b.relative": [1.15, 1.25]}, {"a.b.relative": [by_silo, by_silo]})
    assert shown_average(relative, two) == "1.200 ± 0.071"
    # Of a mean of ratios it is that of the ratios: 0.5, 1, 1.5.
    quotient = number(of="a.b.accuracy", over="a.c.accuracy")
    silos = {
        "a.b.accuracy": [{"x": 0.2, "y": 0.4, "z": 0.6, "only here": 0.9}],
        "a.c.accuracy": [{"x": 0.4, "y": 0.4, "z": 0.4}],
    }
    values = {quotient.key: [1.0], "a.b.accuracy": [0.4], "a.c.accuracy": [0.4]}
    assert shown_average(quotient, record(values, silos)) == "1.000 (± 0.289, 3 silos)"


def test_numbers_are_written_with_their_units():
    assert shown(number(of="a.b.share"), 0.9) == "90.0 %"
    assert shown(number(of="a.b.elected"), 12345.0) == "12,345.0"
    assert shown(number(of="a.b.bytes"), 10661.1) == "10.7 kB"
    assert shown_average(number(of="a.b.accuracy"), record({})) == "–"


def claim(more, than):
    return Claim(text="c", more=more, than=than)


@pytest.mark.parametrize(
    ("x", "y", "verdict"),
    [
        ([2.0, 3.0, 2.5], [1.0, 1.5, 1.4], "holds"),
        ([2.0, 1.0, 2.0], [1.0, 1.5, 1.0], "not decided"),  # better on average, and on two of three seeds
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], "does not hold"),  # a tie is no lead
        ([1.0, 1.5, 1.4], [2.0, 3.0, 2.5], "does not hold"),
        ([2.0], [1.0], "not decided"),  # one seed says nothing about the next
    ],
)
def test_a_claim(x, y, verdict):
    assert judge_claim(claim(["x"], ["y"]), {"x": x, "y": y}).verdict == verdict


def test_the_interval_is_students_by_hand():
    # Differences 1, 2, 3: mean 2, standard deviation 1, t(2) = 4.303.
    lead = judge_claim(claim(["x"], ["y"]), {"x": [2.0, 4.0, 6.0], "y": [1.0, 2.0, 3.0]}).lead
    half = 4.302653 / 3**0.5
    assert (lead.mean, lead.low, lead.high) == pytest.approx((2, 2 - half, 2 + half), abs=1e-5)
    assert (lead.pairs, lead.over) == (3, "seeds")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6, unique=True))
def test_intervals_are_those_of_scipys_paired_test(pairs):
    x, y = ([pair[place] for pair in pairs] for place in (0, 1))
    differences = np.subtract(x, y)
    assume(differences.std() > 1e-6)
    expected = stats.ttest_rel(x, y).confidence_interval(0.95)
    lead = judge_claim(claim(["x"], ["y"]), {"x": x, "y": y}).lead
    assert (lead.low, lead.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_all_leads_have_to_be_clear():
    values = {"a": [3.0, 3.1, 3.2], "b": [2.0, 2.1, 2.2], "c": [1.0, 1.1, 1.0], "d": [2.5, 2.5, 2.6]}
    assert judge_claim(claim(["a", "b"], ["c"]), values).verdict == "holds"
    assert judge_claim(claim(["a", "b"], ["c", "d"]), values).verdict == "does not hold"  # b is below d
    values["d"] = [2.2, 1.9, 2.2]
    assert judge_claim(claim(["a", "b"], ["c", "d"]), values).verdict == "not decided"


def test_a_given_number_has_to_be_reached_only():
    assert judge_claim(claim(["x"], 0.9), {"x": [0.9, 0.9, 0.9]}).verdict == "holds"
    assert judge_claim(claim(["x"], 0.9), {"x": [0.89, 0.9, 0.9]}).verdict == "not decided"
    assert judge_claim(claim(["x"], 0.9), {"x": [0.7, 0.72, 0.71]}).verdict == "does not hold"


def test_a_claim_may_leave_a_margin():
    values = {"x": [0.795, 0.796, 0.795], "y": [0.8, 0.8, 0.8]}
    assert judge_claim(claim(["x"], ["y"]), values).verdict == "does not hold"
    little = Claim(text="little is lost", more=["x"], than=["y"], by=-0.01)
    assert judge_claim(little, values).verdict == "holds"
    much = Claim(text="much is won", more=["y"], than=["x"], by=0.1)
    assert judge_claim(much, values).verdict == "does not hold"


def test_with_one_seed_silos_are_the_pairs():
    values = {"x": [0.8], "y": [0.6]}
    silos = {
        "x": [{"a": 0.7, "b": 0.8, "c": 0.9, "only x": 0.0}],
        "y": [{"a": 0.5, "b": 0.65, "c": 0.65, "only y": 1.0}],
    }
    found = judge_claim(claim(["x"], ["y"]), values, silos)
    assert (found.verdict, found.lead.pairs, found.lead.over) == ("holds", 3, "silos")
    assert (
        judge_claim(claim(["x"], 0.75), values, {"x": [{"a": 0.7, "b": 0.8, "c": 0.9}]}).lead.over == "silos"
    )
    # Three seeds are enough to look at nothing else.
    more = {path: row * 3 for path, row in values.items()}
    assert judge_claim(claim(["x"], ["y"]), more, silos).lead.over == "seeds"


def shares(*counts):
    """By seed, of ten silos so many gained; and what a claim of nine in ten comes to."""
    path = "all.cofed.share"
    silos = [{f"silo-{place}": float(place < gained) for place in range(10)} for gained in counts]
    return judge_claim(claim([path], 0.9), {path: [gained / 10 for gained in counts]}, {path: silos})


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ([10, 10], "not decided"),  # with 85 % that gain, all of twenty are seen in 4 of 100 cases
        ([10, 10, 10], "not decided"),  # three seeds without a spread are no proof either
        ([10, 10, 10, 10], "holds"),
        ([9, 9, 9, 9], "not decided"),
        ([5, 6], "does not hold"),
    ],
)
def test_that_nine_in_ten_gain_takes_more_than_twenty_silos(counts, verdict):
    found = shares(*counts)
    assert (found.verdict, found.lead.over) == (verdict, "silos")
    expected = stats.binomtest(sum(counts), 10 * len(counts)).proportion_ci(0.95, "exact")
    assert (found.lead.low + 0.9, found.lead.high + 0.9) == pytest.approx((expected.low, expected.high))
    assert found.lead.pairs == 10 * len(counts)


def test_a_seed_compares_the_silos_that_both_methods_have():
    claim = Claim(text="ahead", more=["c"], than=["f"])
    values = {"c": [0.5, 0.5, 0.6], "f": [0.6, 0.6, 0.7]}  # means over other silos: one that is better
    mine = [{"a": 0.5}, {"a": 0.5}, {"a": 0.6}]
    theirs = [{"a": 0.4, "b": 0.8}, {"a": 0.39, "b": 0.81}, {"a": 0.5, "b": 0.9}]
    found = judge_claim(claim, values, {"c": mine, "f": theirs})
    assert found.verdict == "holds"
    assert found.lead.mean == pytest.approx((0.1 + 0.11 + 0.1) / 3)
    assert (found.lead.pairs, found.lead.over) == (3, "seeds")


def test_seeds_that_one_side_lacks_are_left_out():
    values = {"x": [2.0, None, 2.1, 2.2], "y": [1.0, 9.0, 1.2, 1.1]}
    assert judge_claim(claim(["x"], ["y"]), values).lead.pairs == 3


def test_a_claim_without_a_pair_has_no_verdict():
    assert judge_claim(claim(["x"], ["y"]), {"x": [1.0, None], "y": [None, 0.0]}) is None
    assert judge_claim(claim(["x"], ["y"]), {"x": [1.0]}) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_a_claim_and_its_opposite_never_both_hold(pairs):
    values = {"x": [x for x, _ in pairs], "y": [y for _, y in pairs]}
    verdicts = [judge_claim(claim([one], [other]), values).verdict for one, other in ("xy", "yx")]
    assert verdicts.count("holds") < 2
    assert (verdicts[0] == "holds") <= (verdicts[1] == "does not hold")


def test_a_verdict_says_by_how_much_in_its_unit():
    def told(measure, *values):
        path = f"all.cofed.{measure}"
        one = claim([path], 0.5)
        return claim_text(one, judge_claim(one, {path: list(values)}))

    assert told("accuracy", 0.75) == "not decided (+25.0 points, one seed)"
    assert told("accuracy", 0.75, 0.75, 0.75) == "holds (+25.0 to +25.0 points, 3 seeds)"
    assert told("relative", 0.25, 0.25) == "does not hold (−0.250 to −0.250, 2 seeds)"
    assert told("taught", 0.75, 0.75) == "holds (+0.250 to +0.250, 2 seeds)"
    assert told("bytes", 6.2e6) == "not decided (+6.2 MB, one seed)"
    assert told("rounds_to", 4.5) == "not decided (+4.0 rounds, one seed)"
    assert claim_text(claim(["x"], 0.5), None) == "no result"


def test_the_verdict_on_all_counts_the_papers_own_numbers_and_the_claims():
    path, other = "all.cofed.relative", "all.fedavg.relative"
    about = ABOUT.model_copy(
        update={
            "number": [
                number(paper=1.0),
                number(paper=2.0),
                number(),
                number(of=other, paper=1.0),  # a rival's does not count
            ],
            "claim": [claim([path], 1.0), claim([other], [path]), claim([path], ["all.cofed.share"])],
        }
    )
    values = {path: [1.1, 1.1, 1.1], other: [1.0, 1.0, 1.0]}
    assert overall(about, record(values)) == "1 of 2 numbers reached, 1 of 2 claims hold, 1 does not"
    assert (
        overall(about, record({path: [1.1]})) == "1 of 2 numbers reached, 0 of 1 claims hold, 1 not decided"
    )
    assert overall(about, record({})) == "nothing to judge in the cases that were run"


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([0.001, -0.001, 0.0], "holds"),
        ([0.001, -0.001, 0.03], "not decided"),
        ([0.020, 0.021, 0.022], "does not hold"),  # too much of a gain is no small effect either
        ([-0.020, -0.021, -0.022], "does not hold"),
    ],
)
def test_a_claim_that_something_changes_little_is_two_sided(differences, verdict):
    claim = Claim(text="", more=["all.cofed.accuracy"], than=["all.fedavg.accuracy"], within=0.01)
    values = {"all.cofed.accuracy": [0.5 + d for d in differences], "all.fedavg.accuracy": [0.5] * 3}
    found = judge_claim(claim, values)
    assert found.verdict == verdict
    interval = stats.t.interval(0.95, 2, np.mean(differences), stats.sem(differences))
    assert (found.lead.low, found.lead.high) == pytest.approx(interval)
    with pytest.raises(ValueError, match="either by or within"):
        Claim(text="little", more=["a"], than=["b"], within=0.01, by=0.1)
