import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Local, Silo
from cosilo.errors import ConfigError, RunError
from cosilo.runs.silo_state import last_state


class Constant:
    """Says one class of its task for everything, however it is trained, and remembers its trainings."""

    fits: dict[str, list[tuple[np.ndarray, np.ndarray]]]

    def __init__(self, owner, says):
        self.owner, self.says = owner, says

    def fit(self, X, y):
        Constant.fits.setdefault(self.owner, []).append((X, y))

    def predict(self, X):
        return np.full(len(X), self.says)


POOL = np.arange(100.0, 110.0).reshape(5, 2)


def constant(name, classes, says, n=12, **options) -> Silo:
    """A silo that calls every pool instance `says`."""
    y = [classes[i % len(classes)] for i in range(n)]
    X = np.arange(2.0 * n).reshape(n, 2)
    learner = Constant(name, sorted(classes).index(says))
    return Silo(name, X, y, learner, **{"test": None, "shares": ["labels", "size", "metrics"], **options})


@pytest.fixture(autouse=True)
def _forget():
    Constant.fits = {}


def received(name) -> list[int]:
    """How many pseudo-labelled instances the update training of a silo had."""
    X, y = Constant.fits[name][-1]
    return y[X[:, 0] >= 100].tolist()


def test_a_vote_by_hand(tmp_path):
    # Classes a: silos 1, 2, 3 have it; b: 1, 2; c: 2, 3. Silos 1 and 2 say a, silo 3 says c.
    # a: 2/3 of its silos, c: 1/2 of its silos, b: none. At alpha 0.4 both a and c are elected everywhere.
    silos = [
        constant("one", ["a", "b"], "a"),
        constant("two", ["a", "b", "c"], "a"),
        constant("three", ["a", "c"], "c"),
    ]
    run = Federation(silos, POOL, CoFED(rule="paper", alpha=0.4)).run(tmp_path / "low")
    assert received("one") == [0] * 5  # c is not its class: no conflict
    assert len(Constant.fits["two"]) == 1  # a and c contradict each other: nothing left, no update training
    assert len(Constant.fits["three"]) == 1
    (voting,) = run.result["voting"]
    assert voting["elected"] == {"a": 5, "b": 0, "c": 5}
    assert voting["received"] == {"one": 5, "two": 0, "three": 0}

    # At alpha = 1/2, c (exactly one half) does not pass: strictly more is needed.
    run = Federation(silos, POOL, CoFED(rule="paper", alpha=0.5)).run(tmp_path / "half")
    assert run.result["voting"][0]["elected"] == {"a": 5, "b": 0, "c": 0}
    assert received("two") == received("three") == [0] * 5


def test_the_order_of_a_silos_own_classes_does_not_matter(tmp_path):
    silos = [
        constant("one", ["a", "b"], "b", task=["b", "a"]),
        constant("two", ["a", "b"], "b"),
    ]
    silos[0].learner.model.says = 0  # its code for b
    Federation(silos, POOL, CoFED(rule="paper", alpha=0.5)).run(tmp_path / "run")
    assert received("one") == [0] * 5
    assert received("two") == [1] * 5


def three(**options):
    return [
        constant("big", ["a", "b"], "a", n=30),
        constant("small", ["a", "b"], "b", n=10),
        constant("tiny", ["a", "b"], "b", n=10),
    ]


@pytest.mark.parametrize(
    ("weights", "elected"),
    [
        ("equal", {"a": 0, "b": 5}),  # 1/3 against 2/3
        ("size", {"a": 5, "b": 0}),  # 30/50 against 20/50
        ({"big": 1, "small": 0, "tiny": 0}, {"a": 5, "b": 0}),
    ],
)
def test_weights_by_hand(tmp_path, weights, elected):
    run = Federation(three(), POOL, CoFED(rule="paper", alpha=0.5, weights=weights)).run(tmp_path / "run")
    assert run.result["voting"][0]["elected"] == elected


def test_weights_by_validation_accuracy(tmp_path):
    # "big" always says a, and 3 of 4 of its instances are; the others are right half of the time.
    y = ["a", "a", "a", "b"] * 10
    right = Silo("big", np.arange(80.0).reshape(40, 2), y, Constant("big", 0), test=None)
    run = Federation([right, *three()[1:]], POOL, CoFED(rule="paper", alpha=0.5, weights="accuracy")).run(
        tmp_path / "run"
    )
    assert run.result["voting"][0]["weights"] == [0.75, 0.5, 0.5]
    # Validation instances were not trained on: 20 % of 40 are held out.
    assert len(Constant.fits["big"][0][1]) == 32


@pytest.mark.parametrize(
    ("method", "kind", "reason"),
    [
        (CoFED(weights="size"), "size", "step 'size', field 'size'"),
        (CoFED(weights="accuracy"), "metrics", "step 'credibility', field 'accuracy'"),
    ],
)
def test_a_weight_is_asked_for_only_if_it_is_used_and_allowed(tmp_path, method, kind, reason):
    silos = [constant(name, ["a", "b"], "a", shares=["labels"]) for name in ("one", "two")]
    Federation(silos, POOL, CoFED()).run(tmp_path / "equal")
    with pytest.raises(RunError, match=f"does not share '{kind}', which cofed needs \\({reason}\\)"):
        Federation(silos, POOL, method).run(tmp_path / "weighted")


class Failing(Constant):
    def predict(self, X):
        raise RuntimeError("no")


def test_a_silo_that_does_not_vote_is_not_in_the_total(tmp_path):
    silos = [
        constant("one", ["a", "b"], "a"),
        constant("two", ["a", "b"], "a"),
        Silo("lost", np.ones((4, 2)), list("abab"), Failing("lost", 0), test=None),
    ]
    # 2 of 3 would not pass alpha = 0.7; 2 of the 2 that voted do.
    run = Federation(silos, POOL, CoFED(rule="paper", alpha=0.7)).run(tmp_path / "run")
    assert run.result["voting"][0]["elected"] == {"a": 5, "b": 0}
    assert run.result["voting"][0]["voters"] == ["one", "two"]
    (failure,) = run.result["failures"]
    assert failure["silo"] == "lost"
    assert failure["text"] == "silo 'lost': Failing.predict raised RuntimeError"
    # It still learns from the others.
    assert received("lost") == [0] * 5


def test_rounds_repeat_the_vote(tmp_path):
    run = Federation(three(), POOL, CoFED(rule="paper", alpha=0.5, rounds=3)).run(tmp_path / "run")
    assert [voting["stage"] for voting in run.result["voting"]] == ["round 1", "round 2", "federated"]
    assert len(Constant.fits["big"]) == 4


@pytest.mark.parametrize(
    ("learner", "method", "words"),
    [
        (Constant("x", 0), CoFED(margin=0.3), "Constant has no predict_proba, so it cannot abstain"),
        (SVC(), CoFED(margin=0.1), "SVC has no predict_proba"),
        (
            DecisionTreeClassifier(),
            CoFED(update_from="local"),
            "DecisionTreeClassifier cannot go on training",
        ),
        (Constant("x", 0), CoFED(class_weights="equal"), "Constant takes no sample weights"),
    ],
)
def test_what_a_learner_cannot_do_is_said_before_training(tmp_path, learner, method, words):
    silos = [Silo("x", np.eye(8), list("abababab"), learner), constant("one", ["a", "b"], "a", pool=None)]
    silos[1] = Silo("y", np.eye(8), list("abababab"), GaussianNB())
    with pytest.raises(RunError, match=f"silo 'x': {words}"):
        Federation(silos, np.eye(8), method).run(tmp_path / "run")
    assert Constant.fits == {}


def test_a_silo_whose_task_overlaps_nobodys(tmp_path):
    silos = [
        constant("one", ["a", "b"], "a"),
        constant("two", ["a", "b"], "a"),
        constant("odd", ["x", "y"], "x"),
    ]
    federation = Federation(silos, POOL, CoFED())
    with pytest.raises(
        RunError, match=r"silo 'odd': its task \{x, y\} shares no class with any other"
    ) as error:
        federation.run(tmp_path / "run")
    assert Constant.fits == {}
    assert federation.check() == [str(error.value)]


def test_a_single_silo_has_nobody_to_learn_from(tmp_path):
    with pytest.raises(RunError, match="silo 'one': is alone; CoFED wants two silos or more"):
        Federation([constant("one", ["a", "b"], "a")], POOL, CoFED()).run(tmp_path / "run")


def test_given_weights_name_the_silos_there_are(tmp_path):
    with pytest.raises(RunError, match="weights are given for other silos than there are"):
        Federation(three(), POOL, CoFED(weights={"big": 1.0, "smal": 1.0, "tiny": 1.0})).run(tmp_path / "run")


def test_the_papers_rule_is_the_paper_to_the_letter_unless_told_otherwise():
    best, paper = CoFED(), CoFED(rule="paper")
    assert (best.rule, best.weights, best.accept) == ("shares", "agreement", "better")
    assert (paper.weights, paper.accept) == ("equal", "always")
    mixed = CoFED(rule="paper", weights="agreement", accept="better")
    assert (mixed.weights, mixed.accept) == ("agreement", "better")
    assert CoFED(**paper.model_dump()) == paper
    assert CoFED(**mixed.model_dump()) == mixed


def test_a_class_that_one_vote_decides_is_named_by_the_papers_rule(tmp_path, capsys):
    silos = [
        constant("one", ["a", "b"], "a"),
        constant("two", ["a", "b"], "a"),
        constant("x", ["a", "c"], "a"),
    ]
    run = Federation(silos, POOL, CoFED(rule="paper", alpha=0.4)).run(tmp_path / "run")
    line = "at α = 0.4 one vote decides in 2 of 3 classes (b, c): fewer than 3 silos have them"
    assert run.result["voting"][0]["alarms"] == [
        "silos hardly agree on this pool (median κ 0.00, below 0.25): it is unlike their data, or they mean "
        "different things by their classes",
        line,
    ]
    assert f"warning: {line}" in capsys.readouterr().err
    assert '"warning"' in (run.folder / "events.jsonl").read_text()


def test_cofed_needs_a_pool():
    with pytest.raises(ConfigError, match="cofed needs a pool"):
        Federation(three(), method=CoFED())


def test_a_pool_of_another_fingerprint(tmp_path):
    other = constant("two", ["a", "b"], "a", pool=POOL[::-1])
    with pytest.raises(RunError, match="silo 'two': its pool has fingerprint"):
        Federation([constant("one", ["a", "b"], "a"), other], POOL).run(tmp_path / "run")


@pytest.mark.parametrize(
    "bad", [{"alpha": 1.5}, {"margin": -0.1}, {"rounds": 0}, {"weights": "luck"}, {"alfa": 1}]
)
def test_parameters_are_checked(bad):
    with pytest.raises(ConfigError):
        CoFED(**bad)


def test_alpha_one_elects_nothing_and_changes_nothing(tmp_path, federation):
    run = federation(CoFED(rule="paper", alpha=1.0)).run(tmp_path / "run")
    assert sum(run.result["voting"][0]["elected"].values()) == 0
    assert set(run.relative_accuracy().values()) == {1.0}


def test_local_and_cofed_train_the_same_local_models(tmp_path, federation):
    alone = federation(Local()).run(tmp_path / "local")
    together = federation(CoFED(rule="paper", alpha=0.5)).run(tmp_path / "cofed")
    assert alone.scores("local") == together.scores("local")
    assert alone.scores("federated") == {}
    assert together.scores("federated") != together.scores("local")


def test_warm_start_goes_on_and_scratch_does_not(tmp_path, pool, silos):
    network = MLPClassifier((8,), max_iter=1, random_state=0)
    X, y = silos()[0].data.all
    members = [Silo("net", X, y, network), Silo("line", X, y, LogisticRegression(max_iter=1000))]
    moved = {}
    for start in ("local", "scratch"):
        run = Federation(members, pool, CoFED(rule="paper", alpha=0.5, update_from=start)).run(
            tmp_path / start
        )
        moved[start] = run.silos["net"].learner.model_.t_
    # t_ counts the samples seen since the weights were drawn.
    assert moved["local"] > moved["scratch"]


def test_a_silo_without_metrics_keeps_its_score_and_the_others_share_theirs(tmp_path, pool, silos):
    members = silos()
    members[0] = silos(shares=["labels"])[0]
    run = Federation(members, pool, CoFED(alpha=0.5)).run(tmp_path / "run")
    assert sorted(run.scores("federated")) == ["bayes", "nearest"]
    assert run.result["failures"] == []
    assert "federated" in last_state(run.folder / "silos/tree").scores
    assert all("accuracy" not in entry["fields"] for entry in run.audit("tree"))


# ---------------------------------------------------------------------- what networks stop by


class Listener:
    """A learner that stops early, as far as a silo can tell, and keeps what it was given to stop by."""

    name, warm_starts_by_default, can_warm_start = "listener", False, False
    has_probabilities, can_weigh, weighs_by_itself, wants_validation = False, False, False, True
    has_weights = False
    heard: list[tuple[int, np.ndarray]]

    def fit(self, X, y, *, validation=None, **options):
        Listener.heard.append((len(y), None if validation is None else validation[0]))

    def predict(self, X):
        return np.zeros(len(X), int)


@pytest.mark.parametrize("selection", ["validation", "test"])
def test_what_early_stopping_looks_at(selection, monkeypatch):
    Listener.heard = []
    X, y = np.arange(80.0).reshape(40, 2), np.array(["a", "b"] * 20)
    test = (X[:6] + 1000, y[:6])
    silo = Silo("s", X, y, DecisionTreeClassifier(), test=test)
    monkeypatch.setattr(silo, "learner", Listener())
    CoFED(selection=selection).train(silo)
    (trained, held), *then = Listener.heard
    if selection == "test":
        assert trained == 40
        assert (held == test[0]).all()
        assert not then
    else:
        assert trained == 32
        assert held.max() < 1000
        assert len(held) == 8
        assert then == [(40, None)]  # the choice is made: now with all data


def test_choosing_on_test_data_needs_some():
    silos = [constant("a", ["x", "y"], "x"), constant("b", ["x", "y"], "y")]
    (line, _) = Federation(silos, POOL, CoFED(selection="test")).check()
    assert line == "silo 'a': has no test data, which selection = 'test' looks at"
