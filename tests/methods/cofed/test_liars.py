"""What liars among the voters can do to what honest silos get."""

import numpy as np
import pytest

from cosilo.aggregation.voting import labels_from
from cosilo.methods.cofed.elections import Ballots, ByShares

KINDS = ("random", "one class", "permutation", "pairwise", "colluding", "copies")


def honest_ballots(seed, silos=10, classes=8, n=600):
    """Silos with five of eight classes, right in eight of ten cases; they guess where they cannot be."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    tasks = [sorted(rng.choice(classes, 5, replace=False).tolist()) for _ in range(silos)]
    votes = [
        np.where(np.isin(truth, task) & (rng.random(n) < 0.8), truth, rng.choice(task, n)) for task in tasks
    ]
    return Ballots([f"s{i}" for i in range(silos)], votes, tasks, classes), truth


def lie(ballots, kind, liars, seed):
    rng = np.random.default_rng(seed)
    votes, tasks = list(ballots.votes), list(ballots.tasks)
    for place in liars:
        task, said = np.array(tasks[place]), votes[place]
        says = np.arange(ballots.n_classes)
        if kind == "pairwise":
            says[task[0]] = task[1]
        elif kind == "permutation":
            order = rng.permutation(task)
            says[order] = np.roll(order, 1)
        else:
            says[task] = np.roll(task, -1)
        votes[place] = {
            "random": rng.choice(task, len(said)),
            "one class": np.full(len(said), task[0]),
        }.get(kind, says[said])
    if kind == "copies":
        for place in liars[1:]:
            votes[place], tasks[place] = votes[liars[0]], tasks[liars[0]]
    return Ballots(ballots.names, votes, tasks, ballots.n_classes)


def right(ballots, truth, who, weights):
    """The mean share of the labels that these silos get that is right, each by what it counts for."""
    outcome, found = ByShares(ballots, weights), []
    for place in who:
        task, nothing = ballots.tasks[place], np.full(len(truth), -1)
        told = labels_from(outcome.tallies(task), outcome.rule, nothing)
        good = np.array(task)[told.label] == truth[told.index]
        found.append(np.average(good, weights=told.weight.astype(float)))
    return float(np.mean(found))


@pytest.mark.parametrize("kind", KINDS)
def test_forty_percent_of_liars_do_little_more_than_to_be_missing(kind):
    lied, bare, missing = [], [], []
    for seed in range(3):
        ballots, truth = honest_ballots(seed)
        rng = np.random.default_rng(seed)
        liars = sorted(rng.choice(10, 4, replace=False).tolist())
        honest = [place for place in range(10) if place not in liars]
        told = lie(ballots, kind, liars, seed)
        credible = told.credibility()
        lied.append(right(told.read(credible), truth, honest, credible.weight.tolist()))
        bare.append(right(told, truth, honest, [1.0] * 10))
        left = [0.0 if place in liars else 1.0 for place in range(10)]
        missing.append(right(ballots, truth, honest, left))
    assert np.mean(lied) > np.mean(missing) - 0.03
    if kind != "pairwise":  # who lies about one class of five is right about the others
        assert np.mean(lied) > np.mean(bare) + 0.02
    if kind in ("permutation", "colluding"):  # what they know is not lost: their votes are read in order
        assert np.mean(lied) > np.mean(missing) + 0.01


def test_without_liars_votes_of_honest_silos_count_fully():
    ballots, _ = honest_ballots(7)
    assert ballots.credibility().weight.tolist() == [1.0] * 10
