"""A silo with a target: what it is made of, what it predicts, and the labels it keeps."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Local, Silo, Target
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError, DataError, RunError
from cosilo.methods import Method, step
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure, Score
from cosilo.runs.durable_files import read_json, write_json
from cosilo.silo.target import untaught

DIGITS_X, DIGITS_Y = load_digits(return_X_y=True)
#: The fields of the scores of a model, and of labels.
SCORE, LABELLING = ["accuracy", "instances"], ["labelling_accuracy", "labelling_instances"]
X, Y = np.arange(40.0).reshape(20, 2), np.array(list("ab" * 10))


class Chances:
    """A learner whose features are the probabilities of the classes, in their order."""

    def fit(self, X, y):
        self.columns = np.unique(y)

    def predict_proba(self, X):
        return X / X.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.columns[X.argmax(axis=1)]


class Largest:
    """A learner without probabilities: the largest feature."""

    fit = Chances.fit
    predict = Chances.predict


def digits(classes: list[int], start: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    index = np.flatnonzero(np.isin(DIGITS_Y, classes))
    index = index[index >= start][:n]
    return DIGITS_X[index], DIGITS_Y[index]


def target_of(classes: list[int], *, truth: bool = True, start: int = 700) -> Target:
    (X, y), (more, real) = digits(classes, start, 8), digits(classes, start + 200, 40)
    return Target(X, y, more, real if truth else None)


def aiming(name: str, trained: list[int], wanted: list[int], learner, **options) -> Silo:
    options.setdefault("target", target_of(wanted))
    options.setdefault("test", digits(wanted, 1200, 60))
    return Silo(name, *digits(trained, 0, 60), learner, **options)


def make_silos(**options) -> list[Silo]:
    """Two silos that want what the other one has, and a third that wants nothing special."""
    return [
        aiming("low", [0, 1, 2], [3, 4], DecisionTreeClassifier(max_depth=4), **options),
        aiming("high", [3, 4, 5], [1, 2], GaussianNB(var_smoothing=0.01), **options),
        Silo("plain", *digits([1, 2, 3, 4], 300, 60), DecisionTreeClassifier()),
    ]


# ---------------------------------------------------------------------- what it is made of


def test_the_task_is_all_classes_and_those_of_the_target_are_wanted():
    one = aiming("a", [8, 9], [1, 9], GaussianNB())
    assert one.task.classes == ("1", "8", "9")
    assert one.wanted.classes == ("1", "9")
    assert len(one.data.own[1]) == 60
    assert len(one.data.target.labelled[1]) == 8
    assert one.size == len(one.data.train[1]) == len(one.data.all[1]) == 68
    assert np.array_equal(one.data.all[0], np.concatenate([one.data.own[0], one.data.target.labelled[0]]))
    assert len(one.data.target.unlabelled) == len(one.data.target.truth) == 40
    assert set(one.task.decode(one.data.target.truth)) == {"1", "9"}
    plain = Silo("b", X, Y, GaussianNB())
    assert plain.wanted == plain.task
    assert plain.data.target is None
    assert plain.data.own is plain.data.all


def test_a_given_task_sets_the_order():
    one = Silo("a", X, Y, GaussianNB(), task=["d", "b", "c", "a"], target=Target(X[:2], ["c", "d"], X))
    assert one.task.classes == ("d", "b", "c", "a")
    assert one.wanted.classes == ("d", "c")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target(X[:0], [], X), "silo 'a': no labelled target point; label some points of each class"),
        (
            Target(X[:2], ["c", "c"], X),
            "silo 'a': all 2 labelled target points are of class 'c'; a classifier",
        ),
        (Target(X[:3], ["c", "d"], X), "silo 'a', target: 3 instances but 2 labels; wants one each"),
        (Target(X[:2], [["c", "d"]], X), r"silo 'a', target: labels of shape \(1, 2\); wants one class per"),
        (Target(X[:2], ["c", None], X), "silo 'a', target: 1 of 2 labels are missing, .* as unlabelled"),
        (Target(X[:2, :1], ["c", "d"], X), r"silo 'a': its target is numbers of shape \(1,\); its data is"),
        (Target(X[:2], ["c", "d"], X[:, :1]), r"silo 'a': its unlabelled target is numbers of shape \(1,\)"),
        (Target(X[:2].astype(np.uint8), ["c", "d"], X), "silo 'a': its target is bytes, its data other"),
        (Target(X[:2], ["c", "d"], X + np.inf), "silo 'a', unlabelled target: instance 0 holds infinity"),
        (Target(X[:2], ["c", "d"], X, ["c"] * 19), "truth of the target: 20 instances but 19 labels"),
        (Target(X[:2], ["c", "d"], X, ["x"] * 20), "truth of the target: label 'x' is outside the task"),
        (
            Target(X[:2], ["c", "d"], X, ["a"] * 20),
            r"truth of the target: label 'a' is outside the target classes \{c, d\} \(20 such instances\)",
        ),
    ],
)
def test_a_bad_target_is_refused_when_the_silo_is_made(target, words):
    with pytest.raises(DataError, match=words) as error:
        Silo("a", X, Y, GaussianNB(), target=target)
    assert str(error.value).startswith("silo 'a'")
    assert "\n" not in str(error.value)


def test_labelled_target_points_are_no_training_data():
    with pytest.raises(DataError, match="silo 'a': only class 'a' is in the training data"):
        Silo("a", X, ["a"] * 20, GaussianNB(), task=list("abcd"), target=Target(X[:2], ["c", "d"], X))


def test_what_is_no_target():
    with pytest.raises(ConfigError, match=r"silo 'a': target is a tuple; wants Target\(X, y, unlabelled\)"):
        Silo("a", X, Y, GaussianNB(), target=(X, Y))


def test_test_data_is_of_target_classes_or_there_is_none():
    target = Target(X[:2], ["c", "d"], X)
    assert not Silo("a", X, Y, GaussianNB(), target=target).data.has_test
    one = Silo("a", X, Y, GaussianNB(), target=target, test=(X[:2], ["d", "c"]))
    assert one.task.decode(one.data.test[1]).tolist() == ["d", "c"]
    with pytest.raises(DataError, match="silo 'a', test data: label 'a' is outside the target classes"):
        Silo("a", X, Y, GaussianNB(), target=target, test=(X[:2], ["d", "a"]))
    with pytest.raises(ConfigError, match=r"silo 'a': test = 0\.25, but it has a target.*leave test out"):
        Silo("a", X, Y, GaussianNB(), target=target, test=0.25)


def test_the_fingerprint_covers_all_of_it():
    y, more = ["c", "d"], X + 1
    plain = Silo("a", X, Y, GaussianNB(), test=None).data.fingerprints()
    variants = [
        Target(X[:2], y, more),
        Target(X[:2], y[::-1], more),
        Target(X[2:4], y, more),
        Target(X[:2], y, more[:-1]),
        Target(X[:2], y, more[:0]),
        Target(X[:2], y, more, ["c"] * 20),
        Target(X[:2], y, more, ["d"] * 20),
        Target(X[:2], y, more, hidden=True),
    ]
    prints = [Silo("a", X, Y, GaussianNB(), target=v).data.fingerprints() for v in variants]
    assert len({str(one) for one in (plain, *prints)}) == 1 + len(variants)
    assert prints[0] == Silo("a", X, Y, GaussianNB(), target=variants[0]).data.fingerprints()
    # A point that moves from the training data to the target makes other data, though all of it is the same.
    moved = Silo("a", X, [*Y[:-2], "c", "d"], GaussianNB(), target=Target(X[:2], y, more)).data.fingerprints()
    joined = Silo(
        "a", X[:-2], Y[:-2], GaussianNB(), target=Target(np.r_[X[-2:], X[:2]], y * 2, more)
    ).data.fingerprints()
    assert moved != joined


def test_frames_and_text_can_be_targets():
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) % 3})
    target = Target(frame[["y", "x"]][:4], list("cdcd"), frame[["y", "x"]])
    one = Silo("f", frame, Y, DecisionTreeClassifier(), target=target)
    one.fit(LOCAL)
    assert set(one.target_labels()["label"]) <= {"c", "d"}
    assert list(one.data.all[0].columns) == ["x", "y"]


# ---------------------------------------------------------------------- what it predicts


def chances_silo(**options) -> Silo:
    """Its task is a, b, c, d, its target c, d; features are the four probabilities."""
    points = np.array([[8, 0, 1, 1], [0, 5, 2, 3], [1, 1, 4, 4], [10, 10, 0, 0], [0, 0, 9, 1.0]])
    target = Target(np.eye(4)[2:], ["c", "d"], points, options.pop("truth", None))
    learner = options.pop("learner", Chances())
    one = Silo("a", np.eye(4)[[0, 1] * 2], list("abab"), learner, target=target, pool=points, **options)
    one.fit(LOCAL)
    return one


def test_it_predicts_among_the_target_classes_for_its_owner_by_hand():
    one = chances_silo(test=(np.array([[8, 0, 1, 2.0], [0, 5, 3, 1]]), ["d", "c"]))
    points = one.data.target.unlabelled
    assert one.predict(points).tolist() == ["c", "d", "c", "c", "c"]
    assert one.scores[LOCAL] == {Measure.OWN: Score(1.0, 2)}
    labels = one.target_labels()
    assert list(labels.columns) == ["label", "confidence", "speakers"]
    assert labels["label"].tolist() == ["c", "d", "c", "c", "c"]
    # 1 of 2; 3 of 5; 4 of 8; nothing is known, so one of two; 9 of 10.
    assert labels["confidence"].tolist() == pytest.approx([0.5, 0.6, 0.5, 0.5, 0.9])
    assert labels["speakers"].tolist() == [""] * 5


def test_a_hidden_target_is_not_learnt_and_not_told():
    (points, y), (more, real) = digits([3, 4], 700, 8), digits([3, 4], 900, 40)
    one = aiming("a", [0, 1, 3], [3, 4], GaussianNB(), target=Target(points, y, more, real, hidden=True))
    assert one.wanted.classes == ("3", "4")
    assert one.data.train is one.data.own
    one.fit(LOCAL)
    test, labels = digits([3, 4], 1200, 60)
    alone = GaussianNB().fit(*digits([0, 1, 3], 0, 60)).predict(test)  # has never seen a 4
    assert one.predict(test).tolist() == alone.tolist()
    assert one.scores[LOCAL][Measure.OWN] == Score(np.mean(alone == labels), 60)
    assert set(one.target_labels()["label"]) > {3}


def test_it_votes_and_validates_in_its_whole_task():
    one = chances_silo()
    assert one.label_pool().tolist() == [0, 1, 2, 0, 2]
    assert one.label_pool(margin=0.5).tolist() == [0, -1, -1, -1, 2]
    bayes = aiming("b", [0, 1, 2], [3, 4], GaussianNB(var_smoothing=0.01))
    bayes.fit(LOCAL, validate=True)
    held = bayes.data.validation()[0]
    assert len(np.unique(held[1])) == 5
    assert bayes.validation_accuracy() == np.mean(bayes.trial.predict(held[0]) == held[1]) > 0.8


def test_a_learner_without_probabilities_predicts_as_it_does():
    one = chances_silo(learner=Largest())
    labels = one.target_labels()
    assert labels["label"].tolist() == ["a", "b", "c", "a", "c"]
    assert labels["confidence"].isna().all()


def test_without_unlabelled_points_there_are_no_labels():
    one = Silo("a", X, Y, GaussianNB(), target=Target(X[:4], list("cdcd"), X[:0], []))
    one.fit(LOCAL)
    assert one.scores == {}
    with pytest.raises(DataError, match="silo 'a': has no labels for its target yet; run a method first"):
        one.target_labels()
    with pytest.raises(DataError, match="silo 'b': has no target; give it one"):
        Silo("b", X, Y, GaussianNB()).target_labels()


# ---------------------------------------------------------------------- labels


def test_labels_are_judged_where_the_truth_is_known():
    one = chances_silo(truth=["c", "d", "d", "d", "c"])
    assert one.scores == {LOCAL: {Measure.LABELLING: Score(0.6, 5)}}
    one.keep_score(FEDERATED)
    assert one.scores[FEDERATED] == {Measure.LABELLING: Score(0.6, 5)}


def test_the_last_scores_are_kept_each_for_its_own():
    one = chances_silo(truth=["c", "d", "d", "d", "c"], test=(np.eye(4)[2:], ["c", "d"]))
    one.keep_score(FEDERATED)
    kept = {Measure.OWN: Score(1.0, 2), Measure.LABELLING: Score(0.6, 5)}
    assert one.scores == {LOCAL: kept, FEDERATED: kept}


def test_a_method_may_know_better():
    one = chances_silo(truth=["c", "d", "d", "d", "c"])
    codes = np.array([2, 3, 3, 3, 3])
    one.keep_labels(codes, np.full(5, 0.9), ["b", "c"])
    one.take_score(FEDERATED)  # the model's own labels do not replace them
    assert one.scores[FEDERATED][Measure.LABELLING] == Score(0.8, 5)
    labels = one.target_labels()
    assert labels["label"].tolist() == ["c", "d", "d", "d", "d"]
    assert labels["confidence"].tolist() == [0.9] * 5
    assert labels["speakers"].tolist() == ["b,c"] * 5
    assert "target labels" in one.notes
    assert one.fresh().notes == {}


def test_labels_are_checked():
    one = chances_silo()
    for codes, confidence, words in [
        ([2, 3], [1.0, 1.0], r"got labels of shape \(2,\) .* its 5 unlabelled target points"),
        ([2] * 5, [1.0], r"confidence of shape \(1,\); wants one each"),
        ([2, 3, 4, 2, 2], [1.0] * 5, "got labels for its target that are outside its task"),
        ([2, 3, -1, 2, 2], [1.0] * 5, "got labels for its target that are outside its task"),
    ]:
        with pytest.raises(DataError, match=f"^silo 'a': .*{words}"):
            one.keep_labels(np.array(codes), np.array(confidence))
    with pytest.raises(DataError, match="silo 'b': has no target"):
        Silo("b", X, Y, GaussianNB()).keep_labels(np.zeros(1, int), np.zeros(1))


# ---------------------------------------------------------------------- in a federation


def test_the_coordinator_knows_who_trains_on_what_and_who_wants_what(tmp_path):
    class Curious(Local):
        name: ClassVar[str] = "curious"

        def check_targets(self, training, wanted):
            seen.append((dict(training), dict(wanted)))

    seen: list = []
    federation = Federation(make_silos(), method=Curious())
    assert federation.check() == []
    run = federation.run(tmp_path / "run")
    known = (
        {"low": ["0", "1", "2"], "high": ["3", "4", "5"], "plain": ["1", "2", "3", "4"]},
        {"low": ["3", "4"], "high": ["1", "2"], "plain": []},
    )
    assert seen == [known, known]  # by `check` here, and by the coordinator from what silos said
    assert run.result["wanted"] == {"low": ["3", "4"], "high": ["1", "2"]}
    assert run.result["tasks"]["low"] == ["0", "1", "2", "3", "4"]
    assert [ask["step"] for ask in run.asks()] == ["hello", "wants", "train", "evaluate"]
    assert run.asks()[1]["silos"] == ["low", "high"]
    assert sorted(run.asks()[3]["arrivals"]["low"]["fields"]) == [*SCORE, *LABELLING]
    assert sorted(run.asks()[3]["arrivals"]["plain"]["fields"]) == SCORE
    assert [entry["step"] for entry in run.audit("plain")] == ["hello", "train", "evaluate"]
    assert [sorted(entry["fields"]) for entry in run.audit("low")][1] == ["training", "wanted"]


def test_target_classes_that_nobody_else_trains_on_have_a_name():
    training = {"a": ["1", "2"], "b": ["3", "1"], "c": ["5", "6"]}
    wanted = {"a": ["3", "7"], "b": ["1", "2"], "c": ["6", "1"]}
    # a wants 7, which nobody has; c wants 6, which only c has itself.
    assert untaught(training, wanted) == {"a": ["7"], "c": ["6"]}


def test_a_method_may_refuse_targets_in_one_line(tmp_path):
    class Picky(Local):
        name: ClassVar[str] = "picky"

        def check_targets(self, training, wanted):
            for name, classes in untaught(training, wanted).items():
                raise ConfigError(f"silo {name!r}: nobody else trains on {classes[0]!r}")

    alone = Federation(make_silos()[:1], method=Picky())
    line = "silo 'low': nobody else trains on '3'"
    assert alone.check() == [line]
    with pytest.raises(RunError, match=line):
        alone.run(tmp_path / "run")


@pytest.mark.parametrize("workers", [0, 2])
def test_local_and_cofed_with_trees_and_bayes(tmp_path, workers):
    runs = {}
    for method, pool in ((Local(), None), (CoFED(alpha=0.3), DIGITS_X[1000:1200])):
        run = Federation(make_silos(), pool, method, engine=LocalEngine(workers)).run(tmp_path / method.name)
        stage = "local" if pool is None else "federated"
        labelled = run.result["labelling"][stage]
        assert sorted(labelled) == ["high", "low"]
        assert all(score["instances"] == 40 for score in labelled.values())
        assert sorted(run.scores(stage)) == ["high", "low", "plain"]
        for name in ("low", "high"):
            silo = run.silos[name]
            frame = silo.target_labels()
            truth = silo.as_given(silo.data.target.truth)
            assert np.mean(frame["label"] == truth) == labelled[name]["accuracy"]
            assert set(frame["label"]) <= set(silo.classes)
            assert set(silo.predict(DIGITS_X)) <= set(silo.classes)
        runs[method.name] = run
    assert runs["cofed"].result["labelling"]["federated"]["high"]["accuracy"] > 0.5
    once = Federation(make_silos(), DIGITS_X[1000:1200], CoFED(alpha=0.3)).run(tmp_path / "again")
    assert once.result == runs["cofed"].result
    for name in ("low", "high"):
        assert once.silos[name].target_labels().equals(runs["cofed"].silos[name].target_labels())


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"shares": ["labels"]}, set()),  # not even that there is a truth is said
        ({"test": None}, {"labelling"}),
        ({"target": target_of([3, 4], truth=False)}, {"scores"}),
    ],
)
def test_scores_are_those_that_can_and_may_be_shared(tmp_path, options, found):
    silo = aiming("low", [0, 1, 2], [3, 4], GaussianNB(), **options)
    run = Federation([silo], method=Local()).run(tmp_path / "run")
    assert bool(run.scores("local")) == ("scores" in found)
    assert ("labelling" in run.result) == ("labelling" in found)
    assert len(run.silos["low"].target_labels()) == 40
    left = {field for entry in run.audit("low") for field in entry["fields"]}
    assert left <= {
        "classes",
        "pool",
        "offers",
        "training",
        "wanted",
        "version",
        *SCORE,
        *LABELLING,
    }  # no label


class Knows(Method):
    """Trains, finds labels in a second step, and judges in a third, which may fail."""

    name: ClassVar[str] = "knows"
    broken: ClassVar[bool] = False

    def coordinate(self, silos):
        if silos.marked is None:
            silos.ask("train", quorum=1.0)
            silos.ask("label", quorum=1.0)
            silos.mark(done=1)
        assert silos.wanted["low"] == ["3", "4"]
        silos.ask("judge", quorum=1.0)
        silos.evaluate(FEDERATED, to=silos.names)

    @step()
    def train(self, silo):
        silo.fit(LOCAL)

    @step()
    def label(self, silo):
        points = len(silo.data.target.unlabelled)
        silo.keep_labels(np.full(points, len(silo.task) - 1), np.linspace(0, 1, points), ["x", "y"])

    @step()
    def judge(self, silo):
        if self.broken:
            raise ValueError("a crash")
        silo.take_score(FEDERATED)


def test_labels_survive_a_run_that_stopped(tmp_path, monkeypatch):
    """They come from the step before the failure; the run meets its silos again, targets and all."""
    monkeypatch.setattr(Knows, "broken", True)
    with pytest.raises(RunError, match="judge raised ValueError"):
        Federation(make_silos()[:2], method=Knows()).run(tmp_path / "run")
    monkeypatch.setattr(Knows, "broken", False)
    run = Federation(make_silos()[:2], method=Knows()).run(tmp_path / "run")
    assert run.result["wanted"] == {"low": ["3", "4"], "high": ["1", "2"]}
    labels = run.silos["low"].target_labels()
    assert set(labels["label"]) == {4}
    assert labels["speakers"].tolist() == ["x,y"] * 40
    assert labels["confidence"].tolist() == np.linspace(0, 1, 40).tolist()
    truth = run.silos["low"].task.decode(run.silos["low"].data.target.truth)
    assert run.result["labelling"]["federated"]["low"]["accuracy"] == np.mean(truth == "4")


def test_a_run_goes_on_with_the_same_target_only(tmp_path):
    Federation(make_silos(), method=Local()).run(tmp_path / "run")
    about = read_json(tmp_path / "run/run.json")
    write_json(tmp_path / "run/run.json", {**about, "status": "stopped"})
    others = [aiming("low", [0, 1, 2], [3, 4], DecisionTreeClassifier(), target=target_of([3, 4], start=720))]
    with pytest.raises(RunError, match=r"silo 'low': is not what it was .*: target, unlabelled target"):
        Federation([*others, *make_silos()[1:]], method=Local()).run(tmp_path / "run")


def test_without_targets_nothing_is_asked_or_said_that_was_not_before(tmp_path, federation):
    run = federation(CoFED(rule="paper")).run(tmp_path / "run")
    assert [ask["step"] for ask in run.asks()] == [
        "hello",
        "train",
        "evaluate",
        "label",
        "update",
        "evaluate",
    ]
    assert "wanted" not in run.result
    assert "labelling" not in run.result
    assert sorted(run.audit("tree")[0]["fields"]) == ["classes", "offers", "pool", "version"]
    # What it voted, what it learnt from, and what its data said.
    assert set(run.silos["tree"].notes) <= {"votes", "lessons", "guard"}
