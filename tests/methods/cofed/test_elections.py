"""What silos are told, by the paper's rule and by shares; and what they make of it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from cosilo import CoFED, Federation, Silo
from cosilo.aggregation.voting import labels_from
from cosilo.errors import Refused
from cosilo.learners import Network, Training
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold

# Three silos with classes 0 and 1, one with 1 and 2; four instances.
BALLOTS = Ballots(
    names=["a", "b", "c", "d"],
    votes=[np.array(v, np.int8) for v in ([0, 1, 0, 1], [0, 1, 1, -1], [0, 0, 1, 1], [1, 1, 2, 2])],
    tasks=[[0, 1], [0, 1], [0, 1], [1, 2]],
    n_classes=3,
)


def taught(outcome, task, voter=None):
    """What a silo makes of its tallies."""
    votes = np.full(4, -1)
    if voter is not None:
        votes = np.array([task.index(code) if code >= 0 else -1 for code in BALLOTS.votes[voter]])
    tallies = replace(outcome.tallies(task), own=outcome.own_weight(voter))
    return labels_from(tallies, outcome.rule, votes)


def test_by_threshold_a_silo_gets_what_more_than_alpha_gave_it():
    outcome = ByThreshold(BALLOTS, 0.5, [1.0] * 4)
    # 0: x0 3/3, x1 1/3, x2 1/3; 1: x0 1/4, x1 3/4, x2 2/4, x3 2/4; 2: x2 1/1, x3 1/1
    assert outcome.per_class().tolist() == [1, 1, 2]
    index, label = outcome.labels([1, 2])
    assert (index.tolist(), label.tolist()) == ([1, 2, 3], [0, 1, 1])  # in the silo's own codes
    found = taught(outcome, [1, 2])
    assert (found.index.tolist(), found.label.tolist()) == ([1, 2, 3], [0, 1, 1])
    assert found.weight is None
    assert found.shares is None
    assert outcome.tallies([0, 1]).other is None  # the paper's rule looks at no other class


def test_by_shares_the_class_that_leads_over_all_wins():
    outcome = ByShares(BALLOTS, [1.0] * 4, soft=True)
    assert outcome.per_class().tolist() == [1, 1, 2]
    found = taught(outcome, [0, 1])
    # Where class 2 leads, a silo without it learns nothing.
    assert (found.index.tolist(), found.label.tolist()) == ([0, 1], [0, 1])
    # Ahead by (1 − 1/4) of three votes, which is more than two, and by (3/4 − 1/3) of four.
    assert found.weight.tolist() == [255, 212]
    assert found.shares.tolist() == [[255, 64], [85, 191]]
    # Class 2 has one holder, whose votes its shares would show: its labels count half, whatever the vote.
    other = taught(outcome, [1, 2])
    assert other.shares.tolist() == [[191, 0], [128, 0], [128, 0]]
    assert (other.index.tolist(), other.label.tolist()) == ([1, 2, 3], [0, 1, 1])
    assert other.weight.tolist() == [212, 128, 128]


def test_only_soft_targets_need_all_shares():
    assert taught(ByShares(BALLOTS, [1.0] * 4), [0, 1], 0).shares is None


def test_the_winner_needs_more_than_alpha():
    assert taught(ByShares(BALLOTS, [1.0] * 4, alpha=0.75), [0, 1]).index.tolist() == [0]


def test_an_outcome_that_is_only_looked_at_counts_no_tallies():
    outcome = ByThreshold(BALLOTS, 0.5, [1.0] * 4)
    outcome.labels([0, 1]), outcome.per_class()
    assert "_table" not in vars(outcome)


MEANS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])


def points(classes, n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n)
    return (MEANS[y] + rng.normal(size=(n, 2))).astype(np.float32), y


def network():
    return Network(lambda shape, k: nn.Linear(shape[0], k), Training(lr=0.05, epochs=15, batch=10))


def federation(method, learners, n=24):
    tasks = [[0, 1], [0, 1, 2], [1, 2], [0, 1, 2]]
    silos = [
        Silo(
            f"s{i}",
            *points(task, n, i),
            learner,
            test=points(task, 300, 50 + i),
            shares=["labels", "metrics"],
        )
        for i, (task, learner) in enumerate(zip(tasks, learners, strict=True))
    ]
    return Federation(silos, points([0, 1, 2], 400, 99)[0], method)


@pytest.mark.parametrize("rule", ["paper", "winner", "shares"])
@pytest.mark.parametrize("weights", ["equal", "agreement"])
def test_every_rule_teaches_every_kind_of_learner(rule, weights, tmp_path):
    learners = [network(), LogisticRegression(), KNeighborsClassifier(), network()]
    run = federation(CoFED(rule=rule, weights=weights), learners).run(tmp_path / "run")
    assert not run.result["failures"]
    relative = run.relative_accuracy()
    assert len(relative) == 4
    assert min(relative.values()) > 0.9
    vote = run.result["voting"][0]
    assert set(vote["kappa"]) == {"s0", "s1", "s2", "s3"}
    assert min(vote["kappa"].values()) > 0.5
    if weights == "agreement":
        assert vote["weights"] == [1, 1, 1, 1]  # nobody is less than a fifth as credible as the best


def test_networks_get_soft_targets(monkeypatch, tmp_path):
    seen = {}
    fit = Network.fit

    def spy(self, X, y, **options):
        seen.setdefault("network", []).append((y, options["sample_weight"]))
        fit(self, X, y, **options)

    monkeypatch.setattr(Network, "fit", spy)

    federation(
        CoFED(rule="shares", own_weight=8, control=False),
        [network(), LogisticRegression(), LogisticRegression(), network()],
    ).run(tmp_path / "run")
    soft, weight = seen["network"][-1]
    assert soft.ndim == 2
    assert weight is None
    np.testing.assert_allclose(soft[:24].sum(axis=1), 8)  # its own instances, whose classes it knows
    np.testing.assert_allclose(soft[24:].sum(axis=1), 1)
    assert ((soft[24:] > 0) & (soft[24:] < 1)).any()


def test_a_class_that_only_a_few_have_is_taught_by_its_labels(monkeypatch, tmp_path):
    """Two silos are fewer than three: no share is told, and yet a network learns what was elected."""
    silos = [
        Silo(f"s{i}", *points([0, 1, 2], 24, i), learner, test=points([0, 1, 2], 300, 50 + i))
        for i, learner in enumerate([network(), LogisticRegression()])
    ]
    seen = []
    fit = Network.fit

    def spy(self, X, y, **options):
        seen.append(y)
        fit(self, X, y, **options)

    monkeypatch.setattr(Network, "fit", spy)
    run = Federation(silos, points([0, 1, 2], 400, 99)[0], CoFED(control=False)).run(tmp_path / "run")
    received = run.result["voting"][0]["received"]["s0"]
    assert received > 100
    assert len(seen[-1]) == 24 + received
    assert set(seen[-1][24:].ravel().tolist()) == {0.0, 1.0}


def test_soft_targets_of_a_wrong_shape_are_refused():
    X, y = points([0, 1], 20, 0)
    silo = Silo("a", X, y, network(), pool=X)
    with pytest.raises(Refused, match=r"pseudo-labels of shape \(2, 3\); wants one for each of 2 instances"):
        silo.pool_lessons(np.array([0, 1]), np.zeros((2, 3)))


def test_which_labels_stand_without_the_silos_own_vote():
    outcome = ByThreshold(BALLOTS, 0.5, [1.0] * 4)
    # Silo a: x0 is class 0 by two of two others; x1 is class 1 by two of three others.
    assert taught(outcome, [0, 1], 0).stands.tolist() == [True, True]
    # Silo d alone has class 2: without it there is no such label.
    assert taught(outcome, [1, 2], 3).stands.tolist() == [True, False, False]
    assert taught(outcome, [0, 1]).stands.tolist() == [True, True]
    shares = ByShares(BALLOTS, [1.0] * 4, soft=True)
    assert taught(shares, [1, 2], 3).stands.tolist() == [False, False, False]
    assert taught(shares, [0, 1], 0).stands.tolist() == [True, True]
    part = replace(shares.tallies([0, 1]), own=shares.own_weight(0)).part
    np.testing.assert_allclose(part, [1 / 3, 1 / 4])
