import math
import sys
from collections import defaultdict
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosilo.aggregation.voting import Elected, agreement, counting, elect, election, vote_dtype
from cosilo.errors import BadMessage, ConfigError, CosiloError

ALPHAS = [0.0, 1.0, 1 / 3, 2 / 3, 0.3, 0.5, 0.1, 0.29, 0.2, 0.7, math.nextafter(0.5, 0), 5e-324]


def algorithm_1(votes, tasks, alpha, weights=None):
    """Algorithm 1 as printed, with the weights of section 4.6: dictionaries, loops, Python floats."""
    weights = [1.0] * len(votes) if weights is None else [float(w) for w in weights]
    total, elected = {}, {}
    for c in sorted(set().union(*map(set, tasks))):
        total[c] = 0.0
        for task, weight in zip(tasks, weights, strict=True):
            if c in task:
                total[c] = total[c] + weight
        elected[c] = set()
    for index in range(len(votes[0])):
        count = defaultdict(float)
        for row, weight in zip(votes, weights, strict=True):
            if row[index] != -1:
                count[int(row[index])] = count[int(row[index])] + weight
        for c in count:
            if total[c] > 0 and count[c] / total[c] > alpha:
                elected[c].add(index)
    return elected


def literal_for_task(elected, task):
    """Eq. 19, then "the indices contained by different P_k should be removed from R_i"."""
    mine = {c: elected[c] for c in elected if c in task}
    return {
        (x, c)
        for c, members in mine.items()
        for x in members
        if sum(x in others for others in mine.values()) == 1
    }


def sets(elected):
    found = defaultdict(set)
    for x, c in zip(elected.index.tolist(), elected.label.tolist(), strict=True):
        assert x not in found[c]
        found[c].add(x)
    return dict(found)


def nonempty(elected):
    return {c: members for c, members in elected.items() if members}


def assert_same(ours, theirs):
    assert ours.n_classes == theirs.n_classes
    np.testing.assert_array_equal(ours.index, theirs.index)
    np.testing.assert_array_equal(ours.label, theirs.label)


def table_only():
    return mock.patch.object(counting.Digits, "passing", return_value=None)


@st.composite
def ballots(draw, max_silos=9, max_instances=12, max_classes=11):
    """Tasks that overlap in part, and votes inside them, with abstentions."""
    n_classes = draw(st.integers(1, max_classes))
    n_silos = draw(st.integers(1, max_silos))
    length = draw(st.integers(0, max_instances))
    tasks, votes = [], []
    for _ in range(n_silos):
        task = draw(st.lists(st.integers(0, n_classes - 1), min_size=1, unique=True))
        dtype = draw(st.sampled_from([np.int8, np.int16, np.int32, np.int64]))
        # Small classes first, so that silos agree often enough for something to be elected.
        vote = st.one_of(st.sampled_from(sorted(task)[:2]), st.sampled_from([*task, -1]))
        tasks.append(task)
        votes.append(np.array(draw(st.lists(vote, min_size=length, max_size=length)), dtype=dtype))
    return votes, tasks, n_classes


@st.composite
def credibilities(draw, n_silos):
    kind = draw(st.sampled_from(["none", "equal", "random", "zeros"]))
    if kind == "none":
        return None
    if kind == "equal":
        return [draw(st.sampled_from([1.0, 0.1, 1 / 3, 7.0, 1e-300, 5e-324, 1e300]))] * n_silos
    smallest = 0.0 if kind == "zeros" else 1e-3
    some = st.one_of(
        st.sampled_from([smallest, 0.1, 0.2, 0.3, 1.0]), st.floats(smallest, 1e6, allow_subnormal=False)
    )
    weights = draw(st.lists(some, min_size=n_silos, max_size=n_silos))
    if not any(weights):
        weights[draw(st.integers(0, n_silos - 1))] = 0.7
    return weights


def correlated(rng, silos, instances, classes, right=0.6, abstain=0.05):
    truth = rng.integers(classes, size=instances)
    votes, tasks = [], []
    for _ in range(silos):
        task = rng.permutation(classes)[: rng.integers(max(1, classes // 3), classes + 1)]
        row = rng.choice(task, size=instances)
        row = np.where(np.isin(truth, task) & (rng.random(instances) < right), truth, row)
        row[rng.random(instances) < abstain] = -1
        votes.append(row.astype(vote_dtype(classes)))
        tasks.append(task.tolist())
    return votes, tasks


# A hand-made example: three silos, four classes, six instances.
#        x:  0  1  2   3   4  5
VOTES = [
    np.array([0, 1, 0, -1, -1, 2], dtype=np.int8),  # has 0, 1, 2
    np.array([0, 1, 1, 1, -1, 3], dtype=np.int8),  # has 0, 1, 3
    np.array([1, 1, 2, 2, -1, 3], dtype=np.int8),  # has 1, 2, 3
]
TASKS = [[0, 1, 2], [0, 1, 3], [1, 2, 3]]
# TOTAL: 0 -> 2, 1 -> 3, 2 -> 2, 3 -> 2


def test_worked_example():
    # x=0: class 0 has 2/2, class 1 has 1/3; x=1: class 1 has 3/3; x=2: 1/2, 1/3, 1/2; x=3: 1 has 1/3, 2 has
    # 1/2; x=5: 2 has 1/2, 3 has 2/2.
    assert sets(elect(VOTES, TASKS, 4, 0.3)) == {0: {0, 2}, 1: {0, 1, 2, 3}, 2: {2, 3, 5}, 3: {5}}
    assert sets(elect(VOTES, TASKS, 4, 0.4)) == {0: {0, 2}, 1: {1}, 2: {2, 3, 5}, 3: {5}}
    # Strictly more than alpha: a half is not more than 0.5, all is not more than 1.
    assert sets(elect(VOTES, TASKS, 4, 0.5)) == {0: {0}, 1: {1}, 3: {5}}
    assert len(elect(VOTES, TASKS, 4, 1.0)) == 0
    assert sets(elect(VOTES, TASKS, 4, 0.0)) == sets(elect(VOTES, TASKS, 4, 0.3))


def test_worked_example_with_weights():
    # TOTAL: 0 -> 4, 1 -> 5, 2 -> 4, 3 -> 2
    elected = elect(VOTES, TASKS, 4, 0.5, weights=[3, 1, 1])
    assert sets(elected) == {0: {0, 2}, 1: {1}, 2: {5}, 3: {5}}


def test_worked_example_of_the_conflict_rule():
    elected = elect(VOTES, TASKS, 4, 0.4)  # {0: {0, 2}, 1: {1}, 2: {2, 3, 5}, 3: {5}}
    index, label = elected.for_task([0, 1, 2])  # 2 stands in P_0 and P_2; 5 conflicts only with class 3
    assert (index.tolist(), label.tolist()) == ([0, 1, 3, 5], [0, 1, 2, 2])
    index, label = elected.for_task([0, 1, 3])  # 2 conflicts only with class 2
    assert (index.tolist(), label.tolist()) == ([0, 1, 2, 5], [0, 1, 0, 3])
    index, label = elected.for_task([1, 2, 3])
    assert (index.tolist(), label.tolist()) == ([1, 2, 3], [1, 2, 2])


def test_elected_is_compact_and_sorted():
    elected = elect(VOTES, TASKS, 4, 0.0)
    assert elected.index.dtype == np.int32
    assert elected.label.dtype == np.int8
    pairs = list(zip(elected.index.tolist(), elected.label.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert len(elected) == len(pairs)
    assert elected.per_class().tolist() == [2, 4, 3, 1]
    assert elect(VOTES, TASKS, 129, 0.0).label.dtype == np.int16


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_equals_algorithm_1(data):
    votes, tasks, n_classes = data.draw(ballots())
    alpha = data.draw(st.one_of(st.sampled_from(ALPHAS), st.floats(0, 1)))
    weights = data.draw(credibilities(len(votes)))
    expected = algorithm_1(votes, tasks, alpha, weights)
    elected = elect(votes, tasks, n_classes, alpha, weights)
    assert sets(elected) == nonempty(expected)
    with table_only():
        assert_same(elect(votes, tasks, n_classes, alpha, weights), elected)
    with mock.patch.object(election, "BLOCK", 20), mock.patch.object(counting, "TILE", 12):
        assert_same(elect(votes, tasks, n_classes, alpha, weights), elected)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_for_task_equals_the_literal_rule(data):
    votes, tasks, n_classes = data.draw(ballots())
    alpha = data.draw(st.sampled_from(ALPHAS))
    expected = algorithm_1(votes, tasks, alpha)
    elected = elect(votes, tasks, n_classes, alpha)
    other = data.draw(st.lists(st.integers(0, n_classes - 1)))
    for task in [*tasks, other]:
        index, label = elected.for_task(task)
        assert index.tolist() == sorted(set(index.tolist()))
        assert set(zip(index.tolist(), label.tolist(), strict=True)) == literal_for_task(expected, task)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_silos", [1, 3, 10, 100, 254])
@pytest.mark.parametrize("weight", [1.0, 0.1, 3.7])
def test_every_count_against_the_division(n_silos, alpha, weight):
    # Instance k has k votes for class 0: every threshold is hit from both sides, rounding included.
    votes = [np.where(np.arange(n_silos + 1) > i, 0, -1).astype(np.int8) for i in range(n_silos)]
    tasks = [[0]] * n_silos
    expected = algorithm_1(votes, tasks, alpha, [weight] * n_silos)
    assert sets(elect(votes, tasks, 1, alpha, [weight] * n_silos)) == nonempty(expected)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.3, 1 / 3, 0.5, 0.9])
@pytest.mark.parametrize("classes", [2, 5, 20, 62, 100, 127, 128, 129, 300])
def test_both_ways_of_counting_and_algorithm_1(alpha, classes):
    rng = np.random.default_rng(classes)
    votes, tasks = correlated(rng, 30, 400, classes)
    elected = elect(votes, tasks, classes, alpha)
    assert sets(elected) == nonempty(algorithm_1(votes, tasks, alpha))
    with table_only():
        assert_same(elect(votes, tasks, classes, alpha), elected)


def test_the_digits_count_where_they_should():
    votes, tasks = correlated(np.random.default_rng(0), 60, 3000, 100)
    with mock.patch.object(counting.CountTable, "passing", side_effect=AssertionError) as table:
        # No second high digit comes near 0.6 here, so that no instance has to go to the table.
        elected = elect(votes, tasks, 100, 0.6)
        assert not table.called
    assert sets(elected) == nonempty(algorithm_1(votes, tasks, 0.6))


@pytest.mark.parametrize("n_silos", [253, 254, 255, 256, 300])
def test_many_silos_do_not_overflow(n_silos):
    votes = [np.array([0, 1, -1, i % 2], dtype=np.int8) for i in range(n_silos)]
    tasks = [[0, 1]] * n_silos
    for alpha in (0.0, 0.3, 0.5, 0.999):
        expected = nonempty(algorithm_1(votes, tasks, alpha))
        assert sets(elect(votes, tasks, 2, alpha)) == expected
        assert expected[0] >= {0}


@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize("around", [-1, 0, 1])
@pytest.mark.parametrize("blocks", [1, 2])
def test_block_borders(weights, around, blocks):
    rng = np.random.default_rng(3)
    silos, classes = 40, 11
    step = election.BLOCK // silos
    votes, tasks = correlated(rng, silos, blocks * step + around, classes)
    given_weights = None if weights is None else rng.random(silos)
    whole = elect(votes, tasks, classes, 0.3, given_weights)
    halves = [
        elect([row[part] for row in votes], tasks, classes, 0.3, given_weights)
        for part in (slice(0, 1000), slice(1000, None))
    ]
    np.testing.assert_array_equal(whole.index, np.concatenate([halves[0].index, halves[1].index + 1000]))
    np.testing.assert_array_equal(whole.label, np.concatenate([halves[0].label, halves[1].label]))
    border = slice(step - 20, step + 20)
    near = nonempty(algorithm_1([row[border] for row in votes], tasks, 0.3, given_weights))
    found = defaultdict(set)
    for x, c in zip(whole.index.tolist(), whole.label.tolist(), strict=True):
        if step - 20 <= x < step + 20:
            found[c].add(x - step + 20)
    assert found == near


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_order_of_silos_and_missing_silos(data):
    votes, tasks, n_classes = data.draw(ballots())
    alpha = data.draw(st.sampled_from(ALPHAS))
    elected = elect(votes, tasks, n_classes, alpha)
    order = data.draw(st.permutations(range(len(votes))))
    assert_same(elect([votes[i] for i in order], [tasks[i] for i in order], n_classes, alpha), elected)
    # A silo of weight 0 counts as one that never took part, and so does one that is left out.
    gone = data.draw(st.integers(0, len(votes) - 1))
    left = [i for i in range(len(votes)) if i != gone]
    if left:
        without = elect([votes[i] for i in left], [tasks[i] for i in left], n_classes, alpha)
        weights = [float(i != gone) for i in range(len(votes))]
        assert_same(elect(votes, tasks, n_classes, alpha, weights), without)
        expected = algorithm_1([votes[i] for i in left], [tasks[i] for i in left], alpha)
        assert sets(without) == nonempty(expected)


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_crowd_kit_majority_vote(data):
    import pandas as pd
    from crowdkit.aggregation import MajorityVote

    n_silos = data.draw(st.sampled_from([1, 3, 5, 7]))
    n_classes = data.draw(st.integers(2, 4))
    length = data.draw(st.integers(1, 15))
    codes = st.lists(st.integers(0, n_classes - 1), min_size=length, max_size=length)
    votes = np.array([data.draw(codes) for _ in range(n_silos)], dtype=np.int8)
    elected = elect(list(votes), [range(n_classes)] * n_silos, n_classes, 0.5)
    silo, instance = np.indices(votes.shape)
    frame = pd.DataFrame({"task": instance.ravel(), "worker": silo.ravel(), "label": votes.ravel()})
    majority = MajorityVote().fit_predict(frame)
    assert majority.loc[elected.index].tolist() == elected.label.tolist()
    if n_classes == 2:
        assert elected.index.tolist() == list(range(length))


def test_votes_may_be_read_only_files_of_different_types(tmp_path):
    rng = np.random.default_rng(0)
    votes, tasks = correlated(rng, 6, 500, 9)
    files = []
    for i, (row, dtype) in enumerate(
        zip(votes, [np.int8, np.int16, np.int32, np.int64, ">i4", np.int8], strict=True)
    ):
        np.save(tmp_path / f"{i}.npy", row.astype(dtype))
        files.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    assert_same(elect(files, tasks, 9, 0.4), elect(votes, tasks, 9, 0.4))
    np.testing.assert_array_equal(agreement(files, tasks, 9), agreement(votes, tasks, 9))
    for before, after in zip(votes, files, strict=True):
        np.testing.assert_array_equal(before, after)


def test_votes_are_left_as_they_are():
    votes, tasks = correlated(np.random.default_rng(0), 20, 300, 30)
    before = [row.copy() for row in votes]
    elect(votes, tasks, 30, 0.3)
    agreement(votes, tasks, 30)
    np.testing.assert_array_equal(votes, before)


def test_empty_pool_and_a_class_nobody_has():
    empty = elect([np.empty(0, dtype=np.int8)], [[0]], 2, 0.5)
    assert len(empty) == 0
    assert empty.per_class().tolist() == [0, 0]
    assert [len(a) for a in empty.for_task([0, 1])] == [0, 0]
    # A vote for a class that no task has elects nothing, harms nobody.
    votes = [np.array([2, 0]), np.array([1, 0])]
    for weights in (None, [1.0, 0.5]):
        assert sets(elect(votes, [[0], [0, 1]], 3, 0.0, weights)) == {0: {1}, 1: {0}}


def test_class_of_silos_without_weight_elects_nothing():
    votes = [np.array([0, 0]), np.array([1, 1])]
    assert sets(elect(votes, [[0], [1]], 2, 0.0, [0.0, 2.0])) == {1: {0, 1}}


GOOD = [np.array([0, 1, -1]), np.array([1, 1, 0])]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"votes": [], "tasks": []}, BadMessage, "no silo"),
        ({"votes": [GOOD[0], GOOD[1][:2]]}, BadMessage, r"votes\[1\]: 2 votes; wants 3"),
        ({"votes": [GOOD[0], np.array([0, 2, 0])]}, BadMessage, r"votes\[1\]: instance 1 got class code 2;"),
        (
            # 256 is 0 in one byte: a vote is checked before it is cut to the smallest type.
            {"votes": [GOOD[0], np.array([0, 256, 0])]},
            BadMessage,
            r"votes\[1\]: instance 1 got class code 256;",
        ),
        (
            {"votes": [np.array([0, 0, -2]), GOOD[1]]},
            BadMessage,
            r"votes\[0\]: instance 2 got class code -2;",
        ),
        ({"votes": [GOOD[0], GOOD[1].astype(float)]}, BadMessage, r"votes\[1\]: got float64"),
        ({"votes": [GOOD[0], GOOD[1].astype(np.uint8)]}, BadMessage, r"votes\[1\]: got uint8"),
        ({"votes": [GOOD[0], GOOD[1].reshape(1, 3)]}, BadMessage, r"votes\[1\]: got int64 of shape"),
        ({"votes": [3, GOOD[1]]}, BadMessage, r"votes\[0\]: got int;"),
        ({"tasks": [[0, 1]]}, ConfigError, "1 tasks for 2 silos"),
        ({"tasks": [[0, 1], [0, 2]]}, ConfigError, r"tasks\[1\]: class code 2;"),
        ({"tasks": [[0, -1], [0, 1]]}, ConfigError, r"tasks\[0\]: class code -1;"),
        ({"n_classes": 0}, ConfigError, "n_classes is 0"),
        ({"alpha": -0.1}, ConfigError, "alpha is -0.1"),
        ({"alpha": 1.1}, ConfigError, "alpha is 1.1"),
        ({"alpha": math.nan}, ConfigError, "alpha is nan"),
        ({"weights": [1.0]}, ConfigError, "1 weights for 2 silos"),
        ({"weights": [1.0, -1.0]}, ConfigError, r"weights\[1\] is -1.0"),
        ({"weights": [math.nan, 1.0]}, ConfigError, r"weights\[0\] is nan"),
        ({"weights": [math.inf, 1.0]}, ConfigError, r"weights\[0\] is inf"),
        ({"weights": [0.0, 0.0]}, ConfigError, "add up to 0"),
        ({"weights": [1.7e308, 1.7e308]}, ConfigError, "add up to inf"),
    ],
)
def test_errors(change, error, words):
    arguments = {"votes": GOOD, "tasks": [[0, 1], [0, 1]], "n_classes": 2, "alpha": 0.5}
    elect(**arguments)
    with pytest.raises(error, match=words) as caught:
        elect(**{**arguments, **change})
    assert isinstance(caught.value, CosiloError)
    assert "\n" not in str(caught.value)


def test_for_task_refuses_a_class_outside_the_vocabulary():
    elected = Elected(np.array([0], dtype=np.int32), np.array([0], dtype=np.int8), 2)
    with pytest.raises(ConfigError, match="class code 2"):
        elected.for_task([0, 2])


def naive_agreement(votes, tasks):
    n = len(votes)
    share = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(n):
            common = set(tasks[i]) & set(tasks[j])
            pairs = [
                (a, b) for a, b in zip(votes[i].tolist(), votes[j].tolist(), strict=True) if {a, b} <= common
            ]
            if pairs:
                share[i, j] = sum(a == b for a, b in pairs) / len(pairs)
        share[i, i] = 1.0
    return share


@settings(deadline=None, max_examples=150)
@given(ballots(max_instances=30))
def test_agreement_against_a_loop(ballot):
    votes, tasks, n_classes = ballot
    expected = naive_agreement(votes, tasks)
    np.testing.assert_array_equal(agreement(votes, tasks, n_classes), expected)
    with mock.patch.object(sys.modules["cosilo.aggregation.voting.agreement"], "BITS", 1):
        np.testing.assert_array_equal(agreement(votes, tasks, n_classes), expected)


def test_agreement_over_several_blocks():
    votes, tasks = correlated(np.random.default_rng(5), 17, 3000, 12)
    expected = naive_agreement(votes, tasks)
    np.testing.assert_array_equal(agreement(votes, tasks, 12), expected)
    with mock.patch.object(sys.modules["cosilo.aggregation.voting.agreement"], "BITS", 17 * 17 * 200):
        np.testing.assert_array_equal(agreement(votes, tasks, 12), expected)
    with pytest.raises(BadMessage, match=r"votes\[2\]: instance 0 got class code 12"):
        agreement([*votes[:2], np.full_like(votes[2], 12), *votes[3:]], tasks, 12)
