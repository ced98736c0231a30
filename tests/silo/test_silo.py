import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from cosilo import Silo
from cosilo.errors import ConfigError, DataError, LearnerError, Refused
from cosilo.learners import Network, Training, zoo
from cosilo.protocol.allow import Allow
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure, Score, Stage

X, Y = np.arange(40.0).reshape(20, 2), np.array(list("ab" * 10))


class Spy:
    """Remembers the instances of every training; always predicts the first class."""

    seen: list[set[tuple[float, ...]]]

    def fit(self, X, y):
        Spy.seen.append({tuple(row) for row in X})

    def predict(self, X):
        return np.zeros(len(X), int)


class Sure:
    """The first feature is the probability of the first class."""

    def fit(self, X, y):
        pass

    def predict(self, X):
        return (X[:, 0] < 0.5).astype(int)

    def predict_proba(self, X):
        return np.stack([X[:, 0], 1 - X[:, 0]], axis=1)


def silo(**options) -> Silo:
    return Silo(
        "a", *options.pop("data", (X, Y)), options.pop("learner", DecisionTreeClassifier()), **options
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": (X[:0], Y[:0])}, "data is empty"),
        ({"data": (X, np.array(["a"] * 20))}, "all 20 instances are of class 'a'"),
        ({"data": (X, np.array(["a"] * 20)), "task": ["a", "b"]}, "only class 'a' is in the training data"),
        ({"data": (X, Y[:5])}, "20 instances but 5 labels"),
        (
            {"data": (X * np.nan, Y), "learner": GaussianNB()},
            "column 0, column 1 have missing values, which GaussianNB does not take; put an imputer",
        ),
        ({"task": ["a", "c"]}, "label 'b' is outside the task {a, c}"),
        ({"task": ["a", "a", "b"]}, "names class 'a' twice"),
        ({"test": (X[:, :1], Y)}, r"test data is numbers of shape \(1,\)"),
        ({"test": (X, np.array(["c"] * 20))}, "test data: label 'c' is outside"),
        (
            {"pool": np.zeros((3, 5))},
            r"its pool is numbers of shape \(5,\); its data is numbers of shape \(2,\)",
        ),
        (
            {"pool": np.array([[1.0, np.nan]]), "learner": GaussianNB()},
            "pool: column 1 has missing values, which GaussianNB does not take",
        ),
    ],
)
def test_bad_data_is_refused_when_the_silo_is_made(options, words):
    with pytest.raises(DataError, match=words) as error:
        silo(**options)
    assert str(error.value).startswith("silo 'a'")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"test": 1.5}, "test = 1.5"),
        ({"validation": 0}, "validation = 0"),
        ({"shares": ["label"]}, "shares 'label'; wants some of labels"),
    ],
)
def test_bad_settings_are_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        silo(**options)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 65])
def test_names_are_safe_as_folder_names(name):
    with pytest.raises(ConfigError, match="silo name"):
        Silo(name, X, Y, DecisionTreeClassifier())


def test_the_test_set_is_held_out_of_every_class_and_never_trained_on():
    seen = Spy.seen = []
    one = silo(learner=Spy(), test=0.3)
    one.data.split(seed=1)
    one.fit(LOCAL)
    trained = seen[0]
    assert len(trained) == 14
    assert one.scores[LOCAL] == {Measure.OWN: Score(0.5, 6)}  # three of each class; the spy says the first
    one.data.split(seed=1)
    one.fit(Stage.after_round(1))
    assert seen[1] == trained
    one.data.split(seed=2)
    one.fit(Stage.after_round(2))
    assert seen[2] != trained


def test_a_class_with_one_instance_stays_in_training():
    labels = np.array(["a"] * 10 + ["b"] * 9 + ["rare"])
    one = silo(data=(X, labels), test=0.5)
    one.data.split(seed=0)
    assert one.task.classes == ("a", "b", "rare")
    one.fit(LOCAL)
    assert "rare" in one.predict(X[-1:])


def test_validation_data_is_the_same_every_time_and_holds_no_pseudo_label():
    Spy.seen = []
    one = silo(learner=Spy(), test=None, pool=X + 1000)
    one.fit(LOCAL, validate=True)
    one.fit(FEDERATED, lessons=one.pool_lessons(np.array([3]), np.array([0])), validate=True)
    first, everything, second, all_and_more = Spy.seen
    assert len(first) == 16
    assert second - first == {tuple(X[3] + 1000)}
    assert all_and_more - everything == {tuple(X[3] + 1000)}
    assert len(everything) == 20
    assert one.validation_accuracy() == 0.5


def test_a_network_that_stops_early_looks_at_a_part_of_the_pseudo_labels_too(monkeypatch):
    one = silo(learner=Network(zoo.mlp, Training(epochs=2, patience=1)), test=None, pool=X + 1000)
    seen = []
    fit = Network.fit

    def spy(network, data, y, **options):
        held = options["validation"]
        if held is not None:
            seen.append([set(map(tuple, part)) for part in (data, held[0])])
            assert len(held[0]) == len(held[1])
        fit(network, data, y, **options)

    monkeypatch.setattr(Network, "fit", spy)
    one.fit(LOCAL)
    index, label = np.arange(15), np.arange(15) % 2
    one.fit(FEDERATED, lessons=one.pool_lessons(index, label), update=True)
    (kept, held), (more, watched) = seen
    assert (len(kept), len(held), len(more), len(watched)) == (16, 4, 16 + 12, 4 + 3)  # a fifth of each class
    assert kept < more
    assert held < watched
    assert not more & watched
    assert (more | watched) - kept - held == set(map(tuple, X[:15] + 1000))


def test_a_silo_that_nobody_has_is_gone_with_its_data():
    gc.disable()  # which would find it in the end, hundreds of silos later
    try:
        one = silo()
        one.fit(LOCAL)
        gone = weakref.ref(one.data)
        del one
        assert gone() is None
    finally:
        gc.enable()


def test_without_test_data_there_is_no_score():
    one = silo(test=None)
    one.fit(LOCAL)
    assert one.scores == {}
    assert not one.data.has_test


def test_the_margin_decides_who_abstains():
    data = np.array([[0.9, 0], [0.65, 0], [0.6, 0], [0.1, 0]])
    one = silo(data=(data, list("aabb")), learner=Sure(), test=None, pool=data)
    one.fit(LOCAL)
    assert one.label_pool(margin=0.0).tolist() == [0, 0, 0, 1]
    # The lead is .8, .3, .2, .8 (0.65 − 0.35 is just above 0.3 in floats); it has to be more than the margin.
    assert one.label_pool(margin=0.25).tolist() == [0, 0, -1, 1]
    assert one.label_pool(margin=0.8).tolist() == [-1, -1, -1, -1]


def test_the_votes_that_left_are_kept_and_abstentions_too():
    data = np.array([[0.9, 0], [0.65, 0], [0.6, 0], [0.1, 0]])
    one = silo(data=(data, list("aabb")), learner=Sure(), test=None, pool=data)
    assert one.sent_votes.tolist() == [-1, -1, -1, -1]
    one.fit(LOCAL)
    one.label_pool(margin=0.25)
    assert one.sent_votes.tolist() == [0, 0, -1, 1]


def judged(one, label, index=None):
    """Whether a silo that limits its coordinator takes labels of its pool."""
    one.allow = Allow()
    index = np.arange(len(label)) if index is None else index
    try:
        one.hold_against_votes(one.pool_lessons(index, np.asarray(label)))
    except Refused:
        return False
    return True


def voter(votes):
    one = silo(pool=np.resize(X, (len(votes), X.shape[1])))
    one.notes["votes"] = np.array(votes, np.int8)
    return one


def test_labels_are_held_against_the_votes_that_left_where_there_are_twenty():
    votes = [0, 1] * 20
    assert judged(voter(votes), votes)
    wrong = [1, 0] * 20
    assert not judged(voter(votes), wrong)
    # A quarter of them right is less than chance. Half of them is chance, which forty do not decide.
    assert not judged(voter(votes), votes[:10] + wrong[:30])
    assert judged(voter(votes), votes[:20] + wrong[:20])
    assert judged(voter(votes), votes[:30] + wrong[:10])
    # Where it abstained there is nothing to compare; of nineteen votes nothing is said.
    assert judged(voter([*votes[:19], *[-1] * 21]), wrong)
    assert not judged(voter([*votes[:20], *[-1] * 20]), wrong)
    assert judged(voter([-1] * 40), wrong)
    assert judged(voter(votes), wrong[:19], np.arange(19))


def test_labels_that_are_chance_are_refused_where_there_are_enough():
    votes = np.arange(300) % 6
    by_chance = np.random.default_rng(0).permutation(votes)
    one = Silo("a", np.zeros((12, 2)), np.arange(12) % 6, GaussianNB(), pool=np.zeros((300, 2)))
    one.notes["votes"] = votes.astype(np.int8)
    assert not judged(one, by_chance)
    assert judged(one, by_chance[:60], np.arange(60))
    assert judged(one, votes)


def test_a_silo_that_gives_most_of_the_pool_one_class_refuses_nothing():
    labels = [0, 1] * 20
    assert judged(voter([0] * 40), labels)
    assert judged(voter([1, *[0] * 39]), labels)
    # How it votes is looked up in the whole pool: a choice of instances of one vote does not help.
    votes = [0, 1] * 40
    assert not judged(voter(votes), [1] * 40, np.arange(0, 80, 2))


def test_what_the_model_says_is_not_asked(monkeypatch):
    def fail(*_):
        raise AssertionError("was asked")

    monkeypatch.setattr("cosilo.silo.predicting.predict", fail)
    assert not judged(voter([0, 1] * 20), [1, 0] * 20)


def test_the_silo_does_not_trust_the_coordinator():
    one = silo(pool=X)
    for index, label in [([20], [0]), ([-1], [0]), ([0], [2]), ([0], [-1]), ([0, 1], [0])]:
        with pytest.raises(Refused, match="silo 'a': got pseudo-labels"):
            one.pool_lessons(np.array(index), np.array(label))


def test_asked_too_early():
    one = silo(pool=X)
    with pytest.raises(LearnerError, match="no model yet"):
        one.label_pool()
    with pytest.raises(DataError, match="has no pool"):
        silo().label_pool()


def test_a_fresh_silo_shares_data_but_not_what_was_learnt():
    one = silo()
    one.fit(LOCAL)
    other = one.fresh()
    assert one.trained
    assert not other.trained
    assert other.learner is not one.learner
    assert other.scores == {}


def test_text_and_frames_are_instances_too():
    texts = ["red apple", "green pear", "fast car", "slow truck"] * 5
    labels = ["fruit", "fruit", "vehicle", "vehicle"] * 5
    reader = Silo("t", texts, labels, make_pipeline(TfidfVectorizer(), MultinomialNB()), pool=["red car"])
    reader.fit(LOCAL)
    assert reader.predict(["apple and pear", "truck"]).tolist() == ["fruit", "vehicle"]
    frame = pd.DataFrame({"x": np.arange(20), "y": np.arange(20) % 3})
    table = Silo("f", frame, Y, DecisionTreeClassifier(), pool=frame[["y", "x"]])
    table.fit(LOCAL)
    assert len(table.label_pool()) == 20


class Weighed(Spy):
    """Remembers the sample weights of its last training."""

    def fit(self, X, y, sample_weight=None):
        Weighed.last = None if sample_weight is None else sample_weight.tolist()


@pytest.mark.parametrize(
    ("classes", "weights"),
    [
        # Own data: 10 a, 10 b. Pseudo-labels: 20 a. To count the same, each a weighs 20/30, each b 20/10.
        ("equal", [2 / 3, 2.0]),
        ("own", [2 / 3, 2.0]),
        ("auto", [2 / 3, 2.0]),
        ("none", [1.0, 1.0]),
        (None, None),
    ],
)
def test_class_weights_by_hand(classes, weights):
    one = silo(learner=Weighed(), test=None, pool=X)
    one.fit(FEDERATED, lessons=one.pool_lessons(np.arange(20), np.zeros(20, int)), classes=classes)
    if weights is None:
        assert Weighed.last is None
    else:
        assert sorted(set(Weighed.last)) == pytest.approx(sorted(set(weights)))


def test_own_proportions_are_those_of_the_silo():
    labels = ["a"] * 15 + ["b"] * 5
    one = silo(data=(X, labels), learner=Weighed(), test=None, pool=X)
    one.fit(FEDERATED, lessons=one.pool_lessons(np.arange(20), np.ones(20, int)), classes="own")
    # 15 a and 25 b are to count 3 : 1, so a weighs 30/15 and b 10/25.
    assert sorted(set(Weighed.last)) == pytest.approx([0.4, 2.0])
