"""What a silo derives from tallies against what the coordinator told it before, label by label.

`told_before` is the code that made those messages, kept as it was: it looks at all votes, and knows
nothing of tallies.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cosilo.aggregation.voting import (
    FEWEST,
    Rule,
    Tallies,
    VoteTable,
    elect,
    labels_from,
    vote_shares,
    whole_weights,
)


def share_bytes(votes, tasks, n_classes, weights):
    holders = np.bincount([code for task in tasks for code in task], minlength=n_classes)
    blocks = [found for _, found in vote_shares(votes, tasks, n_classes, weights)]
    return np.rint(255 * np.concatenate(blocks) * (holders >= FEWEST)).astype(np.uint8)


def winners_before(votes, tasks, n_classes, weights, alpha):
    """By instance the class that leads or −1, its share, and that of the next."""
    found = np.concatenate([share for _, share in vote_shares(votes, tasks, n_classes, weights)])
    rows, best = np.arange(len(found)), found.argmax(axis=1)
    largest = found[rows, best]
    found[rows, best] = 0.0
    second = found.max(axis=1)
    label = np.where((largest > second + 1e-6) & (largest > alpha), best, -1)
    return label, largest.astype(np.float32), second.astype(np.float32)


def told_before(rule, votes, tasks, n_classes, weights, unit, task, voter):
    """Labels, weights, shares and `stands` as the coordinator's message had them."""
    totals = np.zeros(n_classes)
    for theirs, weight in zip(tasks, weights, strict=True):
        totals[theirs] += weight
    own_codes = np.zeros(n_classes, np.int32)
    own_codes[task] = np.arange(len(task))
    if rule.name == "paper":
        index, label = elect(votes, tasks, n_classes, rule.alpha, weights).for_task(task)
        label = own_codes[label]
        stands = np.ones(len(index), bool)
        if voter is not None:
            code = np.array(task)[label]
            rest, count = totals[code] - weights[voter], np.zeros(len(index))
            for place, (said, weight) in enumerate(zip(votes, weights, strict=True)):
                if place != voter:
                    count += weight * (said[index] == code)
            stands = np.divide(count, rest, out=np.zeros(len(index)), where=rest > 1e-12) > rule.alpha
        return {"index": index, "label": label, "stands": stands}
    holders = np.bincount([code for theirs in tasks for code in theirs], minlength=n_classes)
    winner, share, second = winners_before(votes, tasks, n_classes, weights, rule.alpha)
    index = np.flatnonzero(np.isin(winner, task))
    label = own_codes[winner[index]]
    own = 0.0 if voter is None else weights[voter]
    part = np.divide(own, totals[task], out=np.zeros(len(task)), where=totals[task] > 0)
    stands = np.ones(len(index), bool)
    if voter is not None:
        rest = np.maximum(1 - part, 1e-9)
        mine = votes[voter][index] == np.array(task)[label]
        left = (share[index] - np.where(mine, part[label], 0)) / rest[label]
        stands = (left > second[index] / rest.min() + 1e-6) & (left > rule.alpha)
    code = np.array(task)[label]
    ahead = (share[index] - second[index]) * totals[code]
    counts = np.where(holders[code] < FEWEST, 0.5, np.minimum(ahead / (2 * unit), 1))
    told = {"index": index, "label": label, "stands": stands, "part": part.astype(np.float32)}
    told["weight"] = np.maximum(np.rint(255 * counts), 1).astype(np.uint8)
    if rule.name == "shares":
        told["shares"] = share_bytes(votes, tasks, n_classes, weights)[index[:, None], task]
    return told


@st.composite
def elections(draw):
    n_classes, length = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    tasks, votes = [], []
    for _ in range(draw(st.integers(1, 8))):
        task = sorted(draw(st.sets(st.integers(0, n_classes - 1), min_size=1)))
        tasks.append(task)
        said = st.sampled_from([-1, *task])
        votes.append(np.array(draw(st.lists(said, min_size=length, max_size=length)), np.int8))
    equal = st.just([1.0] * len(votes))
    some = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.77, 1.0])
    unequal = st.lists(some, min_size=len(votes), max_size=len(votes)).filter(any)
    alpha = draw(st.sampled_from([0.0, 0.2, 0.25, 0.3, 1 / 3, 0.5, 0.75, 1.0]))
    name = draw(st.sampled_from(["paper", "winner", "shares"]))
    return votes, tasks, n_classes, draw(st.one_of(equal, equal, unequal)), Rule(name, alpha)


def in_own_codes(votes, task):
    return np.array([task.index(code) if code >= 0 else -1 for code in votes.tolist()])


def derived(votes, tasks, n_classes, weights, rule, voter=None, task=None):
    """What a silo derives that is a voter, or that only has this task."""
    task = tasks[voter] if task is None else task
    table = VoteTable.of(votes, tasks, n_classes, weights)
    won = None if rule.name == "paper" else table.winners(rule.alpha)
    own = 0 if voter is None else int(whole_weights(weights)[0][voter])
    tallies = replace(table.tallies(task, rule, won), own=own)
    said = np.full(len(votes[0]), -1) if voter is None else in_own_codes(votes[voter], task)
    return labels_from(tallies, rule, said), tallies


@settings(max_examples=600, deadline=None)
@given(elections(), st.data())
@example(  # one holder, two and three of a class
    (
        [np.array(v, np.int8) for v in ([0, 1, 0, 1], [0, 1, 1, -1], [0, 0, 1, 1], [1, 1, 2, 2])],
        [[0, 1], [0, 1], [0, 1], [1, 2]],
        3,
        [1.0] * 4,
        Rule("shares", 0.0),
    ),
    None,
)
def test_a_silo_derives_from_tallies_what_it_was_told_before(given_election, data):
    votes, tasks, n_classes, weights, rule = given_election
    units, unit = whole_weights(weights)
    holders = np.bincount([code for task in tasks for code in task], minlength=n_classes)
    asked = [(place, task) for place, task in enumerate(tasks)]
    if data is not None:  # a late silo, or one that did not vote, may have any task
        asked.append((None, sorted(data.draw(st.sets(st.integers(0, n_classes - 1), min_size=1)))))
    for voter, task in asked:
        before = told_before(rule, votes, tasks, n_classes, units.astype(float), unit, task, voter)
        after, tallies = derived(votes, tasks, n_classes, weights, rule, voter, task)
        assert after.index.tolist() == before["index"].tolist()
        assert after.label.tolist() == before["label"].tolist()
        if rule.name == "paper":
            assert after.weight is None
            assert after.shares is None
        else:
            assert after.weight.tobytes() == before["weight"].tobytes()
            assert tallies.part.astype(np.float32).tobytes() == before["part"].tobytes()
        if rule.name == "shares":
            assert after.shares.tobytes() == before["shares"].tobytes()
        # `stands` told how the other one of two holders voted: such a label now stands as if all of them did.
        # Nothing that stood before falls, and all stand that are not what the silo voted for.
        said = np.full(len(votes[0]), -1) if voter is None else in_own_codes(votes[voter], task)
        mine = said[after.index] == after.label
        assert after.stands[~mine].all()
        if (holders >= FEWEST).all():
            assert after.stands[mine].tolist() == before["stands"][mine].tolist()
        assert (after.stands | ~before["stands"]).all()
        if tallies.own:
            alone = tallies.total[after.label] == tallies.own
            assert not after.stands[alone & mine].any()


@given(elections())
def test_of_a_class_with_few_holders_only_what_it_won_is_told(given_election):
    """Two elections that differ in such votes alone, and come to the same labels, are told the same."""
    votes, tasks, n_classes, weights, rule = given_election
    holders = np.bincount([code for task in tasks for code in task], minlength=n_classes)
    for task in tasks:
        after, tallies = derived(votes, tasks, n_classes, weights, rule, task=task)
        few = np.flatnonzero(holders[task] < FEWEST)
        assert (~tallies.counted).nonzero()[0].tolist() == few.tolist()
        won = np.zeros((len(votes[0]), len(task)), bool)
        won[after.index, after.label] = True
        for column in few:
            told = np.concatenate(tallies.counts)[:, column]
            assert told.tolist() == np.where(won[:, column], tallies.total[column], 0).tolist()


def test_a_tie_with_a_class_of_few_holders_shows_nobodys_vote():
    # Class 0 has three holders that all say so; classes 1 and 2 have one holder each.
    votes = [np.array(v, np.int8) for v in ([0, 0], [0, 0], [0, 0], [1, -1], [-1, 2])]
    tasks, rule = [[0]] * 3 + [[1], [2]], Rule("winner", 0.0)
    after, tallies = derived(votes, tasks, 3, [1.0] * 5, rule, voter=0)
    assert len(after.index) == 0
    assert np.concatenate(tallies.counts).ravel().tolist() == [3, 3]
    assert tallies.other.tolist() == [1, 1]
    for own in (1, 2):
        _, theirs = derived(votes, tasks, 3, [1.0] * 5, rule, voter=2 + own)
        assert np.concatenate(theirs.counts).ravel().tolist() == [0, 0]


def test_a_class_of_few_holders_that_contests_an_instance_shows_nobodys_vote():
    # All four say class 0 of the first instance; of the second, one of two holders says class 1.
    votes = [np.array(v, np.int8) for v in ([0, 0], [0, 0], [0, 1], [0, -1])]
    tasks = [[0, 1], [0], [0, 1], [0]]
    after, tallies = derived(votes, tasks, 2, [1.0] * 4, Rule("paper", 0.3), voter=0)
    assert (after.index.tolist(), after.label.tolist()) == ([0], [0])
    # Two of four would pass; one is the most that does not.
    assert np.concatenate(tallies.counts).tolist() == [[4, 0], [1, 0]]


def test_blocks_do_not_change_anything(monkeypatch):
    rng = np.random.default_rng(0)
    tasks = [[0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 2, 3], [0, 1]]
    votes = [rng.choice([-1, *task], 100).astype(np.int8) for task in tasks]
    for name in ("paper", "winner", "shares"):
        whole, _ = derived(votes, tasks, 4, [1.0] * 5, Rule(name, 0.2), voter=3)
        with monkeypatch.context() as small:
            small.setattr("cosilo.aggregation.voting.vote_table.ROWS", 7)
            small.setattr("cosilo.aggregation.voting.vote_table.CELLS", 12)
            parts, tallies = derived(votes, tasks, 4, [1.0] * 5, Rule(name, 0.2), voter=3)
        assert [len(block) for block in tallies.counts] == [7] * 14 + [2]
        for field, one in vars(whole).items():
            other = getattr(parts, field)
            assert (one is None and other is None) or one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("voters", "kind"), [(65_535, np.uint16), (65_536, np.uint32)])
def test_counts_are_as_wide_as_the_largest_total(voters, kind):
    votes = [np.zeros(1, np.int8)] * voters
    table = VoteTable.of(votes, [[0]] * voters, 1, [1.0] * voters)
    assert table.counts.dtype == kind
    assert table.counts.tolist() == [[voters]]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8))
def test_whole_weights_keep_who_has_a_vote_and_their_order(weights):
    units, unit = whole_weights(weights)
    assert ((units > 0) == (np.array(weights) > 0)).all()
    assert units.max() <= 1000
    order = np.argsort(weights, kind="stable")
    assert (np.diff(units[order]) >= 0).all()
    heavy = np.array(weights) >= max(weights) / 100
    if max(weights) > 1e-290:
        assert np.allclose(units[heavy], np.array(weights)[heavy] * unit, atol=0.5 + 1e-9)


def test_a_pool_of_50000_and_20_classes_takes_as_many_bytes_as_promised():
    votes = [np.zeros(50_000, np.int8)] * 3
    table = VoteTable.of(votes, [list(range(20))] * 3, 20, [1.0] * 3)
    tallies = table.tallies(list(range(20)), Rule("shares", 0.0), table.winners(0.0))
    assert sum(block.nbytes for block in tallies.counts) + tallies.other.nbytes == 2_200_000
    assert isinstance(tallies, Tallies)
    assert len(tallies) == 50_000
