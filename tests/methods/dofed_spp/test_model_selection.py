import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cosilo.errors import ConfigError, CosiloError, DataError
from cosilo.methods.dofed_spp.model_selection import Choice, Costs, best, feasible, greedy, total

# A round by hand: I = 5 iterations over D = 1000 instances with C_tra = 2e6 cycles on f = 2e9 Hz take 5 s;
# C_SR = 1e9 takes 0.5 s, C_pse = 0.5e9 takes 0.25 s a model. m = 1 MB over b = 1 MHz with g·p = 3·N0·b, that
# is 1e6 · log2(4) = 2e6 bit/s, takes 8e6 / 2e6 = 4 s.
COSTS = Costs(5 * 2e6 * 1000 / 2e9, 1e9 / 2e9, 0.5e9 / 2e9, 8e6 / (1e6 * math.log2(1 + 3)))


def rho(matrix, chosen, B):
    """The total similarity of a set: for each silo its B best models of the set."""
    return sum(sum(sorted((row[i] for i in chosen), reverse=True)[:B]) for row in matrix)


def algorithm_1(matrix, K, B):
    """Algorithm 1 as printed; the first of equals is taken."""
    chosen, left = [], list(range(len(matrix[0])))
    while len(chosen) < K:
        n = max(left, key=lambda n: (rho(matrix, [*chosen, n], B) - rho(matrix, chosen, B), -n))
        chosen.append(n)
        left.remove(n)
    return chosen


def optimum(matrix, K, B):
    return max(rho(matrix, chosen, B) for chosen in itertools.combinations(range(len(matrix[0])), K))


def equations_27_to_31(matrix, chosen, B):
    """The largest sum over x, given which models are uploaded (y): every x that the constraints allow."""
    uses = [use for size in range(B + 1) for use in itertools.combinations(chosen, size)]
    return sum(max(sum(row[i] for i in use) for use in uses) for row in matrix)


@st.composite
def cases(draw, most=6):
    """A matrix of whole 64ths, in which sums are exact and ties are frequent, and a pair (K, B)."""
    silos, models = draw(st.integers(1, most)), draw(st.integers(1, most))
    value = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 64)]))
    matrix = draw(arrays(np.float64, (silos, models), elements=value.map(lambda v: v / 64)))
    K = draw(st.integers(1, models))
    return matrix, K, draw(st.integers(1, K))


def test_a_round_by_hand():
    assert (COSTS.training, COSTS.similarity, COSTS.labelling, COSTS.upload) == (5.0, 0.5, 0.25, 4.0)
    assert COSTS.seconds(K=3, B=2) == 5 + 0.5 + 2 * 0.25 + 3 * 4


def test_feasible_pairs_by_hand():
    # T / G = 14.25: C1 = 8.75 s are left. K = 1: 4.75 for labels, B = 1 is all there is to use. K = 2: 0.75 s
    # are left for labels, three models would fit, two are there. K = 3 takes 12.
    assert feasible(COSTS, 14.25, silos=25) == [(1, 1), (2, 2)]
    # C1 = 12.5: K = 3 leaves 0.5 s, two models; 12.25 one; 12.2 none.
    assert feasible(COSTS, 18.0, silos=25) == [(1, 1), (2, 2), (3, 2)]
    assert feasible(COSTS, 17.75, silos=25) == [(1, 1), (2, 2), (3, 1)]
    assert feasible(COSTS, 17.7, silos=25) == [(1, 1), (2, 2)]
    assert feasible(COSTS, 18.0, silos=2) == [(1, 1), (2, 2)]
    assert feasible(COSTS, math.inf, silos=3) == [(1, 1), (2, 2), (3, 3)]


def test_rounding_does_not_cost_a_pair():
    # 0.1 + 0.2 is more than 0.3 in floats.
    assert feasible(Costs(0.0, 0.0, 0.1, 0.2), 0.3, silos=2) == [(1, 1)]
    assert feasible(Costs(0.0, 0.0, 0.1, 0.0), 0.3, silos=9)[-1] == (9, 3)


def test_what_costs_nothing():
    assert feasible(Costs(1.0, 0.0, 0.0, 0.0), 1.0, silos=3) == [(1, 1), (2, 2), (3, 3)]
    assert feasible(Costs(1.0, 0.0, 0.0, 1.0), 3.0, silos=3) == [(1, 1), (2, 2)]
    assert feasible(Costs(1.0, 0.0, 1.0, 0.0), 2.0, silos=3) == [(1, 1), (2, 1), (3, 1)]


eighths = st.integers(0, 24).map(lambda v: v / 8)


@given(eighths, eighths, eighths, eighths, st.integers(1, 200).map(lambda v: v / 8), st.integers(1, 12))
def test_no_feasible_pair_is_missed(training, similarity, labelling, upload, budget, silos):
    costs = Costs(training, similarity, labelling, upload)
    fits = {
        (K, B)
        for K in range(1, silos + 1)
        for B in range(1, K + 1)
        if Fraction(costs.seconds(K, B)) <= Fraction(budget)
    }
    if not fits:
        with pytest.raises(ConfigError, match="the budget is"):
            feasible(costs, budget, silos)
        return
    found = feasible(costs, budget, silos)
    assert set(found) <= fits
    most = {K: max(B for other, B in fits if other == K) for K, _ in fits}
    assert found == sorted(most.items())
    if (
        labelling and upload
    ):  # the enumeration of the paper is a part of it, and it holds all that can be best
        c1 = budget - training - similarity
        lowest = max(1, math.floor(c1 / (labelling + upload)))
        highest = min(silos, math.floor((c1 - labelling) / upload))
        printed = [(K, min(K, math.floor((c1 - K * upload) / labelling))) for K in range(lowest, highest + 1)]
        assert [pair for pair in found if pair[0] >= lowest] == printed
        assert all(B == K for K, B in found if lowest > K)


@pytest.mark.parametrize(
    ("costs", "most"),
    [
        (Costs(10.0, 1.0, 0.5, 1.0), "most is training:"),
        (Costs(1.0, 10.0, 0.5, 1.0), "most is the similarity ratios:"),
        (Costs(1.0, 1.0, 10.0, 0.5), "most is labelling with one model:"),
        (Costs(1.0, 1.0, 0.5, 10.0), "most is one upload:"),
    ],
)
def test_too_small_a_budget(costs, most):
    with pytest.raises(ConfigError, match=most) as caught:
        feasible(costs, 8.0, silos=5, rounds=20)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("the budget is 8 s a round; wants at least 12.5 s, 250 s for 20 rounds: ")


@given(st.lists(st.floats(1e-6, 1e5), min_size=4, max_size=4), st.integers(1, 500))
def test_what_the_error_asks_for_does(seconds, rounds):
    costs = Costs(*seconds)
    with pytest.raises(ConfigError) as caught:
        feasible(costs, costs.seconds(1, 1) * 0.99, silos=3, rounds=rounds)
    words = str(caught.value).split("at least ")[1].split()
    assert feasible(costs, float(words[0]), silos=3)[0] == (1, 1)
    assert feasible(costs, float(words[2]) / rounds, silos=3)[0] == (1, 1)
    assert float(words[0]) <= costs.seconds(1, 1) * 1.0011


def test_a_choice_by_hand():
    ratios = np.array(
        [
            [0.0, 0.5, 0.25, 0.25],
            [0.5, 0.0, 0.25, 0.25],
            [0.5, 0.5, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0],
        ]
    )
    # Columns: 1, 1, 1.5, 0.5. B = 1: model 2 first; then model 0 adds 0 + 0.25 + 0.5 + 0 = 0.75, model 1
    # 0.25 + 0 + 0.5 = 0.75, the lower index; then model 1 adds 0.25 (silo 0 has 0.25, silo 2 has its 0.5).
    assert greedy(ratios, 3, 1).tolist() == [2, 0, 1]
    assert total(ratios, [2], 1) == 1.5
    assert total(ratios, [2, 0], 1) == 2.25
    assert total(ratios, [2, 0, 1], 1) == 2.5
    # B = 2: two models count in full: 1.5 + 1; with model 1 silo 0 has 0.75, silo 1 0.75, silo 2 1, silo 3 1.
    assert greedy(ratios, 3, 2).tolist() == [2, 0, 1]
    assert total(ratios, [2, 0], 2) == 2.5
    assert total(ratios, [0, 1, 2], 2) == 3.5
    assert best(ratios, [(2, 2), (3, 1)]) == Choice(2, 2, (2, 0), 2.5)  # equal sums: fewer uploads
    assert best(ratios, [(3, 2), (2, 2), (3, 1)]) == Choice(3, 2, (2, 0, 1), 3.5)


@given(cases())
def test_greedy_equals_algorithm_1(case):
    matrix, K, B = case
    assert greedy(matrix, K, B).tolist() == algorithm_1(matrix.tolist(), K, B)


@given(cases())
def test_greedy_reaches_its_share_of_the_optimum(case):
    matrix, K, B = case
    reached, most = total(matrix, greedy(matrix, K, B), B), optimum(matrix.tolist(), K, B)
    assert (1 - 1 / math.e) * most <= reached <= most
    if K in (B, matrix.shape[1]):
        assert reached == most  # every model counts in full, or all travel


@given(cases(), st.data())
def test_the_sum_is_what_the_paper_says(case, data):
    matrix, K, B = case
    chosen = data.draw(st.permutations(range(matrix.shape[1])))[:K]
    assert total(matrix, chosen, B) == equations_27_to_31(matrix.tolist(), chosen, B)


@given(cases(), st.data())
def test_the_sum_is_monotone_and_submodular(case, data):
    matrix, K, B = case
    larger = data.draw(st.permutations(range(matrix.shape[1])))[:K]
    smaller = larger[: data.draw(st.integers(0, K - 1))]
    assert total(matrix, smaller, B) <= total(matrix, larger, B) <= total(matrix, larger, B + 1)
    for extra in set(range(matrix.shape[1])) - set(larger):
        adds = total(matrix, [*smaller, extra], B) - total(matrix, smaller, B)
        assert adds >= total(matrix, [*larger, extra], B) - total(matrix, larger, B) >= 0


@given(cases())
def test_one_pass_serves_every_size(case):
    matrix, _, B = case
    whole = greedy(matrix, matrix.shape[1], B).tolist()
    assert sorted(whole) == list(range(matrix.shape[1]))
    for K in range(B, matrix.shape[1] + 1):
        assert greedy(matrix, K, B).tolist() == whole[:K]


@given(cases(), st.data())
def test_the_best_is_the_best_of_all_pairs(case, data):
    matrix, _, _ = case
    every = [(K, B) for K in range(1, matrix.shape[1] + 1) for B in range(1, K + 1)]
    pairs = data.draw(st.lists(st.sampled_from(every), min_size=1))
    rows = matrix.tolist()
    reached = {(K, B): rho(rows, algorithm_1(rows, K, B), B) for K, B in pairs}
    K, B = min(pair for pair in pairs if reached[pair] == max(reached.values()))
    assert best(matrix, iter(pairs)) == Choice(K, B, tuple(algorithm_1(rows, K, B)), reached[K, B])


@pytest.mark.parametrize(
    "tenths", [[[0, 3, 0], [7, 0, 3], [0, 0, 3]], [[1, 2, 5], [5, 1, 0], [1, 2, 0]]], ids=["13", "12"]
)
def test_equal_sums_in_another_order_are_equal(tenths):
    # Two models in full are as good as the best of three (13 tenths, 12 tenths); as floats the second
    # sum, made in another order, is larger by its last bit. Fewer uploads win all the same.
    found = best(np.array(tenths) / 10, [(2, 2), (3, 1)])
    assert (found.K, found.B) == (2, 2)
    assert found.chosen == best(tenths, [(2, 2), (3, 1)]).chosen


def test_two_hundred_silos():
    rng = np.random.default_rng(0)
    ratios = rng.exponential(size=(200, 200)) ** 3
    ratios /= ratios.sum(axis=1, keepdims=True)
    pairs = feasible(Costs(1.0, 1.0, 1.0, 1.0), 202.0, silos=200)
    assert len(pairs) == 199
    found = best(ratios, pairs)
    assert (found.K, found.B) in pairs
    assert found.chosen == tuple(greedy(ratios, found.K, found.B).tolist())
    assert found.total == pytest.approx(rho(ratios.tolist(), found.chosen, found.B))
    for K, B in pairs[::15]:
        assert total(ratios, greedy(ratios, K, B), B) <= found.total * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: greedy(r, 4, 1), "K is 4 uploads; wants 1 to 3"),
        (lambda r: greedy(r, 0, 1), "K is 0 uploads"),
        (lambda r: greedy(r, 2, 3), "B is 3 models to label with; wants 1 to K = 2"),
        (lambda r: greedy(r, 2, 0), "B is 0 models"),
        (lambda r: best(r, [(1, 1), (2, 3)]), "B is 3 models"),
        (lambda r: best(r, []), "there is no pair"),
        (lambda r: total(r, [0], 0), "B is 0; wants at least 1"),
        (lambda r: total(r, [0, 0], 1), "twice; wants each once"),
        (lambda r: total(r, [3], 1), "got model 3; wants 0 to 2"),
        (lambda r: total(r, [-1], 1), "got model -1"),
        (lambda r: greedy(-r, 1, 1), "silo 0 gives model 0 -1.0"),
        (lambda r: greedy(r * np.nan, 1, 1), "silo 0 gives model 0 nan"),
        (lambda r: greedy(r[0], 1, 1), r"ratios: got shape \(3,\); wants silos × models"),
        (lambda r: feasible(COSTS, 20.0, 0), "silos is 0"),
        (lambda r: feasible(COSTS, 0.0, 3), "the budget is 0.0 s a round; wants more than 0"),
        (lambda r: feasible(COSTS, float("nan"), 3), "the budget is nan"),
        (lambda r: feasible(COSTS, 20.0, 3, rounds=0), "rounds is 0"),
        (lambda r: Costs(-1.0, 0.0, 0.0, 0.0), "training takes -1.0 s; wants a finite number of at least 0"),
        (lambda r: Costs(0.0, 0.0, 0.0, math.inf), "upload takes inf s"),
    ],
)
def test_what_is_out_of_range(call, words):
    with pytest.raises(CosiloError, match=words) as caught:
        call(np.ones((3, 3)))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ConfigError | DataError)
