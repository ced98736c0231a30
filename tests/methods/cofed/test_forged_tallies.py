"""A coordinator forges tallies: half of the labels wrong, and whatever may hide them from the silo's guard.

The silo is one of other owners (`silo.allow`), and is asked through its boundary. Its data is four hundred
digits; the pool has four hundred others. The coordinator knows the votes that left.
"""

import numpy as np
import pytest
from boundaries import asked, opened
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from cosilo import CoFED, Silo
from cosilo.learners import Network, Training
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Failure
from cosilo.protocol.wire import decode, encode

X, Y = load_digits(return_X_y=True)
LEARNERS = {
    "nearest": KNeighborsClassifier(3),
    "tree": DecisionTreeClassifier(random_state=0),
    "logistic": LogisticRegression(max_iter=300),
    "bayes": GaussianNB(),
}
SILOS, POOL = 5, 400


def honest(label, votes, own=1):
    """Tallies of five silos: four say the label, and this one what it voted."""
    counts = (SILOS - 1) * np.eye(10, dtype=np.uint16)[label]
    counts[np.arange(POOL), votes] += own
    return {
        "counts": {"000000000": counts},
        "other": np.zeros(POOL, np.float32),
        "total": np.full(10, SILOS, np.uint16),
        "counted": np.ones(10, np.uint8),
        "own": own,
        "unit": 1.0,
        "agreement": 1.0,
        "stage": "federated",
    }


def best_share(message):
    return message["counts"]["000000000"].max(axis=1) / message["total"][0]


def as_they_are(label, votes):
    return honest(label, votes)


def narrow_counts(label, votes):
    """The label leads by one unit of very many."""
    counts = np.full((POOL, 10), 30_000, np.uint16)
    counts[np.arange(POOL), label] += 1
    total = np.full(10, 60_000, np.uint16)
    return {**honest(label, votes), "counts": {"000000000": counts}, "total": total, "own": 1000}


def large_totals(label, votes):
    """Few of all did vote, it seems, and the own vote weighs nearly as much as the others."""
    return {**honest(label, votes, own=3), "total": np.full(10, 12, np.uint16)}


def one_small_total(label, votes):
    """One class has no holder but this silo, it seems: its share could grow without bound."""
    message = honest(label, votes)
    total = np.full(10, SILOS, np.uint16)
    total[9] = 1
    counts = np.minimum(message["counts"]["000000000"], total)
    other = np.full(POOL, 0.1, np.float32)
    return {**message, "counts": {"000000000": counts}, "total": total, "other": other}


def close_other(label, votes, lead=0.1):
    """Some other class has nearly as large a share, it seems: by default half a vote less."""
    message = honest(label, votes)
    return {**message, "other": (best_share(message) - lead).astype(np.float32)}


def no_own_weight(label, votes):
    return {**honest(label, votes), "own": 0}


def huge_own_weight(label, votes):
    return {**honest(label, votes), "own": SILOS}


def nothing_counted(label, votes):
    """All classes have few holders, it seems, so that only what was elected is told."""
    marks = SILOS * np.eye(10, dtype=np.uint16)[label]
    return {**honest(label, votes), "counts": {"000000000": marks}, "counted": np.zeros(10, np.uint8)}


def nothing_counted_and_own_weight_all(label, votes):
    return {**nothing_counted(label, votes), "own": SILOS}


FORGERIES = [
    as_they_are,
    narrow_counts,
    large_totals,
    one_small_total,
    close_other,
    no_own_weight,
    huge_own_weight,
    nothing_counted,
    nothing_counted_and_own_weight_all,
]


class Victim:
    """A silo after its vote."""

    def __init__(self, folder, learner, seed, method=None):
        order = np.random.default_rng(seed).permutation(len(X))
        instances, self.truth = X[order], Y[order]
        self.silo = Silo(
            "victim",
            instances[:200],
            self.truth[:200],
            learner,
            test=(instances[1000:], self.truth[1000:]),
            pool=instances[200 : 200 + POOL],
            task=map(str, range(10)),
        )
        self.silo.allow = Allow()
        self.border, self.number = opened(self.silo, method or CoFED(control=False), folder, seed), 0
        self.ask("hello"), self.ask("train")
        self.votes = self.ask("label")["votes"]
        self.label = self.truth[200 : 200 + POOL]

    @property
    def half_wrong(self):
        return np.where(np.arange(POOL) % 2 == 0, (self.label + 1) % 10, self.label)

    def ask(self, step, **message):
        self.number += 1
        content = asked(self.border, self.number, step, encode(message)).content
        return content.text if isinstance(content, Failure) else decode(content)

    def takes(self, message):
        """Whether it takes the offer, and the accuracy of the model that it uses then."""
        assert self.ask("update", **message) == {}
        taken = self.ask("decision")["taken"]
        X_test, y_test = self.silo.data.test
        return bool(taken), float(np.mean(self.silo.learner.predict(X_test) == y_test))


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda one: one.__name__)
def test_no_forgery_hides_wrong_labels_from_the_guard(tmp_path, forge):
    taken = []
    for name, learner in LEARNERS.items():
        for seed in range(3):
            victim = Victim(tmp_path / f"{name}-{seed}", learner, seed)
            taken.append(victim.takes(forge(victim.half_wrong, victim.votes))[0])
    print(f"{forge.__name__}: {sum(taken)} of {len(taken)} offers taken")
    assert len(taken) == 12
    assert sum(taken) == 0


def test_labels_that_hardly_lead_count_for_too_little_to_do_harm(tmp_path):
    """A forger who makes all labels close makes them weigh nothing; the guard looks at them all the same."""
    for name, learner in LEARNERS.items():
        for seed in range(3):
            victim = Victim(tmp_path / f"{name}-{seed}", learner, seed)
            X_test, y_test = victim.silo.data.test
            before = float(np.mean(victim.silo.learner.predict(X_test) == y_test))
            taken, after = victim.takes(close_other(victim.half_wrong, victim.votes, lead=1e-4))
            if taken:
                assert name == "bayes"  # whose update is hardly one
            assert after > before - 0.03


def test_honest_tallies_are_taken(tmp_path):
    """The guard would be worth nothing if it refused everything."""
    taken = []
    for name, learner in LEARNERS.items():
        victim = Victim(tmp_path / name, learner, 0)
        taken.append(victim.takes(honest(victim.label, victim.votes))[0])
    assert sum(taken) >= 3


def test_labels_that_are_all_the_own_votes_leave_the_guard_nothing_to_test(tmp_path):
    """A network that stops early holds a part of the labels out; there may be none."""
    training = Training(lr=0.05, epochs=4, batch=20, patience=2)
    network = Network(lambda shape, k: nn.Linear(shape[0], k), training)
    victim = Victim(tmp_path / "net", network, 0)
    assert isinstance(victim.takes(nothing_counted_and_own_weight_all(victim.votes, victim.votes))[0], bool)
