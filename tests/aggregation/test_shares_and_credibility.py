"""Shares, winners and credibility against literal transcriptions of their definitions."""

import importlib
import sys
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from cosilo.aggregation.voting import credibility, kappa, vote_shares, winners

#: The module, which the function of the same name hides.
module = importlib.import_module("cosilo.aggregation.voting.credibility")


@st.composite
def ballots(draw):
    n_classes, length = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    tasks, votes = [], []
    for _ in range(draw(st.integers(1, 6))):
        task = sorted(draw(st.sets(st.integers(0, n_classes - 1), min_size=1)))
        tasks.append(task)
        said = st.sampled_from([-1, *task])
        votes.append(np.array(draw(st.lists(said, min_size=length, max_size=length)), np.int8))
    return votes, tasks, n_classes


def by_definition(votes, tasks, n_classes, weights):
    """COUNT / TOTAL as fractions: nothing is rounded."""
    found = []
    for x in range(len(votes[0])):
        row = []
        for c in range(n_classes):
            total = sum((w for task, w in zip(tasks, weights, strict=True) if c in task), Fraction(0))
            count = sum((w for vote, w in zip(votes, weights, strict=True) if vote[x] == c), Fraction(0))
            row.append(count / total if total else Fraction(0))
        found.append(row)
    return found


@given(ballots(), st.data())
def test_shares_are_count_over_total(given_ballots, data):
    votes, tasks, n_classes = given_ballots
    whole = st.lists(st.integers(0, 4), min_size=len(votes), max_size=len(votes)).filter(any)
    weights = data.draw(whole)
    found = np.concatenate([block for _, block in vote_shares(votes, tasks, n_classes, weights)])
    wanted = by_definition(votes, tasks, n_classes, [Fraction(w) for w in weights])
    np.testing.assert_allclose(found, np.array(wanted, float), rtol=1e-12)
    won = winners(votes, tasks, n_classes, weights)
    for x, row in enumerate(wanted):
        alone = max(row) and sorted(row)[-2:].count(max(row)) == 1
        assert won.label[x] == (row.index(max(row)) if alone else -1)
        assert won.share[x] == pytest.approx(float(max(row)))


def test_blocks_do_not_change_anything(monkeypatch):
    rng = np.random.default_rng(0)
    votes = [rng.integers(-1, 4, 100).astype(np.int8) for _ in range(5)]
    whole = winners(votes, [[0, 1, 2, 3]] * 5, 4)
    monkeypatch.setattr("cosilo.aggregation.voting.shares.TILE", 40)
    monkeypatch.setattr("cosilo.aggregation.voting.shares.BLOCK", 170)
    small = winners(votes, [[0, 1, 2, 3]] * 5, 4)
    assert (whole.label == small.label).all()
    assert (whole.share == small.share).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30))
def test_kappa_is_that_of_scikit_learn(pairs):
    one, other = (np.array(codes) for codes in zip(*pairs, strict=True))
    if len({*one.tolist(), *other.tolist()}) > 1:
        assert kappa(one, other, 4) == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)
    else:
        assert kappa(one, other, 4) == 0.0  # no chance to disagree


def literal_credibility(votes, tasks, n_classes, iterations=3):
    """The definition, word for word, one silo and one instance at a time."""
    alike = [sum(np.mean(one == other) > 0.995 for other in votes) for one in votes]
    weights = [1 / n for n in alike]
    for _ in range(iterations):
        kappas = []
        for i, task in enumerate(tasks):
            said, best = [], []
            for x in range(len(votes[0])):
                share = []
                for c in range(n_classes):
                    others = [j for j in range(len(votes)) if j != i and c in tasks[j]]
                    total = sum(weights[j] for j in others)
                    count = sum(weights[j] for j in others if votes[j][x] == c)
                    share.append(count / total if total > 0 else 0.0)
                top = max(range(n_classes), key=lambda c: (round(share[c], 9), -c))
                if share[top] > 1e-12 and top in task and votes[i][x] >= 0:
                    said.append(int(votes[i][x]))
                    best.append(top)
            kappas.append(kappa(np.array(said, int), np.array(best, int), n_classes))
        most = max([*kappas, 0.0])
        weights = [
            (min(1.0, 5 * max(0.0, k) / most) if most > 0 else 1.0) / n
            for k, n in zip(kappas, alike, strict=True)
        ]
    return kappas, weights


@settings(max_examples=60)
@given(ballots())
def test_credibility_is_what_its_definition_says(given_ballots):
    votes, tasks, n_classes = given_ballots
    found = credibility(votes, tasks, n_classes, iterations=1)
    kappas, weights = literal_credibility(votes, tasks, n_classes, 1)
    np.testing.assert_allclose(found.kappa, kappas, atol=1e-9)
    np.testing.assert_allclose(found.weight, weights, atol=1e-9)


def noisy(tasks, wrong, n=60, seed=3):
    """Votes of silos of which each is wrong so often."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    return [
        np.where(np.isin(truth, task) & (rng.random(n) > often), truth, rng.choice(task, n)).astype(np.int8)
        for task, often in zip(tasks, wrong, strict=True)
    ]


def test_three_iterations_by_the_literal_definition():
    tasks = [[0, 1, 2, 3], [0, 1, 2], [1, 2, 3], [0, 3], [0, 1, 2, 3]]
    votes = noisy(tasks, (0.1, 0.3, 0.2, 0.2, 0.9))
    found = credibility(votes, tasks, 4)
    kappas, weights = literal_credibility(votes, tasks, 4)
    np.testing.assert_allclose(found.kappa, kappas, atol=1e-9)
    np.testing.assert_allclose(found.weight, weights, atol=1e-9)
    assert found.kappa.argmin() == 4
    assert found.weight.max() == 1


def test_who_says_one_class_all_the_time_has_no_say():
    truth = np.arange(300) % 5
    honest = [np.where(np.arange(300) % 7 == i, (truth + 1) % 5, truth) for i in range(4)]
    liars = [np.full(300, 2)] * 2
    found = credibility([*honest, *liars], [list(range(5))] * 6, 5).weight
    assert (found[:4] > 0.9).all()
    assert (found[4:] == 0).all()


def test_copies_have_one_vote_between_them():
    """Three honest silos against four names of one liar, who would have the majority."""
    every = [0, 1, 2, 3]
    honest = noisy([every] * 3, (0.2, 0.2, 0.2), n=400)
    lie = np.where(honest[0] == 3, 2, 3).astype(np.int8)  # in no order of its classes is this the truth
    votes = [*honest, *[lie] * 4]
    found = credibility(votes, [every] * 7, 4)
    assert (found.weight[:3] > 0.7).all()
    assert found.weight[3:].sum() < 0.1
    assert found.readings == {}
    won = winners(votes, [every] * 7, 4, found.weight.tolist())
    bare = winners(votes, [every] * 7, 4)
    assert np.mean(won.label == honest[1]) > 0.7
    assert np.mean(bare.label == lie) > 0.9


def test_who_takes_its_classes_for_each_other_is_read_as_it_is_meant():
    tasks = [[0, 1, 2, 3], [0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 3]]
    votes = noisy(tasks, (0.1, 0.2, 0.2, 0.2, 0.1), n=400)
    order = np.array([3, 0, 2, 1, -1])  # says 3 for 0, 0 for 1 and 1 for 3
    votes[4][votes[4] == 0] = np.where(np.arange(np.sum(votes[4] == 0)) % 9 == 0, -1, 0)
    said = [*votes[:4], order[votes[4]].astype(np.int8)]
    found = credibility(said, tasks, 4)
    assert found.kappa[4] < 0.2
    assert list(found.readings) == [4]
    assert found.readings[4].tolist() == [1, 3, 2, 0]
    assert found.weight[4] == 1
    read = found.read(said)
    np.testing.assert_array_equal(read[4], votes[4])  # abstentions stay
    assert read[4].dtype == np.int8
    assert all(one is other for one, other in zip(read[:4], said[:4], strict=True))


@pytest.mark.parametrize("n", [30, 400])
def test_guesses_are_read_in_no_order(n):
    every = list(range(4))
    votes = noisy([every] * 5, (0.2, 0.2, 0.2, 0.2, 1.0), n=n)
    found = credibility(votes, [every] * 5, 4)
    assert found.readings == {}
    assert found.weight[4] < 0.7


def test_a_large_pool_is_sampled(monkeypatch):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 5000)
    votes = [np.where(rng.random(5000) < 0.8, truth, rng.integers(0, 3, 5000)) for _ in range(4)]
    whole = credibility(votes, [[0, 1, 2]] * 4, 3).kappa
    monkeypatch.setattr(sys.modules["cosilo.aggregation.voting.credibility"], "SAMPLE", 1000)
    np.testing.assert_allclose(credibility(votes, [[0, 1, 2]] * 4, 3).kappa, whole, atol=0.08)


def _others_best_literally(votes, tasks, n_classes, weights):
    """For each silo anew: take its vote away, and see which class leads."""
    found = []
    for i, own in enumerate(votes):
        count, total = np.zeros((len(own), n_classes)), np.zeros(n_classes)
        for row, task, weight in zip(votes, tasks, weights, strict=True):
            total[task] += weight
            there = np.flatnonzero(row >= 0)
            np.add.at(count, (there, row[there]), weight)
        rest = total.copy()
        rest[tasks[i]] -= weights[i]
        inverse = np.divide(1.0, rest, out=np.zeros(n_classes), where=rest > 1e-9 * np.maximum(total, 1e-300))
        share = count * inverse
        there = np.flatnonzero(own >= 0)
        share[there, own[there]] = (count[there, own[there]] - weights[i]) * inverse[own[there]]
        best = share.round(9).argmax(axis=1)
        leads = share[np.arange(len(own)), best] > 1e-12
        found.append(np.where(leads & np.isin(best, tasks[i]), best, -1))
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_leads_among_the_others_is_what_it_is_without_ones_vote(data):
    n_classes, length = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 12))
    votes, tasks, weights = [], [], []
    for _ in range(data.draw(st.integers(1, 7))):
        task = sorted(data.draw(st.sets(st.integers(0, n_classes - 1), min_size=1)))
        votes.append(
            np.array(data.draw(st.lists(st.sampled_from([-1, *task]), min_size=length, max_size=length)))
        )
        tasks.append(np.array(task, np.intp))
        weights.append(data.draw(st.sampled_from([0.0, 0.25, 0.5, 1 / 3, 1.0])))
    with patch.object(module, "CELLS", data.draw(st.sampled_from([1, 8, 1 << 18]))):
        found = module._others_best(votes, tasks, n_classes, np.array(weights))
    for row, expected in zip(found, _others_best_literally(votes, tasks, n_classes, weights), strict=True):
        assert row.tolist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 1500), st.integers(1, 12))
def test_copies_are_found_as_if_each_were_compared_with_each(seed, length, silos):
    rng = np.random.default_rng(seed)
    votes = []
    for _ in range(silos):
        row = rng.integers(-1, 3, length)
        if votes and rng.random() < 0.7:  # one of the others, with a few changes
            row = votes[rng.integers(len(votes))].copy()
            changed = rng.choice(length, min(length, int(rng.integers(0, 9))), replace=False)
            row[changed] = rng.integers(-1, 3, len(changed))
        votes.append(row)
    each = [sum(np.mean(one == other) > module.COPY for other in votes) for one in votes]
    assert module.copies(votes).tolist() == each
