"""A silo with more data, and one that comes late: as if it had been there; nobody else does anything."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from tests.conftest import DIGITS_X, DIGITS_Y

from cosilo import CoFED, ConfigError, Federation, Local, Run, RunError, Silo, data


def part(place, size=120):
    return DIGITS_X[size * place : size * place + size], DIGITS_Y[size * place : size * place + size]


def members():
    """The last one is late in some tests; it learns without chance, whatever the number of its asks."""
    return [
        Silo("tree", *part(0), DecisionTreeClassifier()),
        Silo("svm", *part(1), SVC()),
        Silo("bayes", *part(2), GaussianNB()),
        Silo("late", *part(6, 60), LogisticRegression(max_iter=200), test=part(4)),
    ]


POOL = DIGITS_X[1000:1400]


@pytest.mark.parametrize(
    "method", [CoFED(alpha=0.4), CoFED(rule="winner", weights="size", rounds=2, accept="always")]
)
def test_a_late_silo_gains_as_if_it_had_been_there(method, tmp_path):
    shares = ("labels", "metrics", "size")
    for silo in (silos := members()):
        silo.shares = frozenset(shares)
    whole = Federation(silos, POOL, method, seed=1).run(tmp_path / "whole")
    run = Federation(silos[:3], POOL, method, seed=1).run(tmp_path / "run")
    before = {name: sorted(path.name for path in run.record(name).rglob("*")) for name in run.silos}
    asked, scores = len(run.asks()), run.scores("federated")
    run.add(silos[3])
    if method.rounds == 1:  # what others voted did not depend on it: the very same model
        assert np.array_equal(run.model("late").predict_proba(POOL), whole.model("late").predict_proba(POOL))
        assert run.result["voting"][-1]["received"]["late"] == whole.result["voting"][-1]["received"]["late"]
    gain, wanted = run.relative_accuracy()["late"], whole.relative_accuracy()["late"]
    assert abs(gain - wanted) < 2 * np.sqrt(0.25 / 120) / run.scores("local")["late"]  # within the spread
    # Nobody else was asked, or has changed.
    assert all(ask["silos"] in (["late"], []) for ask in run.asks()[asked:])
    assert {name: sorted(path.name for path in run.record(name).rglob("*")) for name in before} == before
    assert {name: run.scores("federated")[name] for name in scores} == scores
    opened = Run.open(run.folder)
    assert opened.to_frame().index.tolist() == ["tree", "svm", "bayes", "late"]
    assert opened.bytes_sent("late") > 0
    assert "late" in opened.report().read_text()
    again = Federation(silos[:3], POOL, method, seed=1).run(run.folder)  # it is still the run it was
    assert sorted(again.silos) == ["bayes", "svm", "tree"]


@pytest.mark.slow
@pytest.mark.usefixtures("real_data")
def test_over_seeds_a_late_writer_gains_as_much(tmp_path):
    """On real handwriting: the mean difference is within the spread between seeds."""
    train, test = data.load("mnist"), data.load("mnist", "test")
    gaps = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(train))[:1600]
        X, y = train.X[order].reshape(1600, -1), train.y[order]
        judged = test.X[:1000].reshape(1000, -1), test.y[:1000]
        kinds = [DecisionTreeClassifier(), SVC(), GaussianNB(), LogisticRegression(max_iter=100)]
        silos = [
            Silo(f"w{i}", X[100 * i : 100 * i + 100], y[100 * i : 100 * i + 100], kind, test=judged)
            for i, kind in enumerate(kinds)
        ]
        whole = Federation(silos, X[600:], CoFED(alpha=0.4), seed=seed).run(tmp_path / f"whole{seed}")
        run = Federation(silos[1:], X[600:], CoFED(alpha=0.4), seed=seed).run(tmp_path / f"run{seed}")
        run.add(silos[0])
        gaps.append(run.relative_accuracy()["w0"] - whole.relative_accuracy()["w0"])
        assert run.relative_accuracy()["w0"] > 1
    assert abs(np.mean(gaps)) <= 2 * np.std(gaps, ddof=1) / np.sqrt(len(gaps)) + 1e-9


def test_who_cannot_join(federation, tmp_path, silos, pool):
    run = federation(CoFED(alpha=0.3)).run(tmp_path / "run")
    with pytest.raises(ConfigError, match="has a silo 'tree' already; give the new one another name"):
        run.add(silos()[0])
    other = Silo("other", *silos()[0].data.all, GaussianNB(), pool=pool[:50])
    with pytest.raises(RunError, match="silo 'other': its pool has fingerprint"):
        run.add(other)
    alone = Federation(silos(), method=Local()).run(tmp_path / "alone")
    with pytest.raises(ConfigError, match="local: nobody can join when a run is over; cofed keeps votes"):
        alone.add(Silo("other", *silos()[0].data.all, GaussianNB()))


def test_more_data_and_what_others_taught(tmp_path):
    silos = members()
    run = Federation(silos, POOL, CoFED(alpha=0.4)).run(tmp_path / "run")
    X, y = part(5)
    model = run.train_on("late", X, y)
    # By hand: the same learner on its own data, the new data and what was elected for it.
    lessons = run.silos["late"].remembered_lessons()
    assert len(lessons) == run.result["voting"][-1]["received"]["late"]
    own = run.silos["late"].data.train
    assert len(own[1]) == 60
    judged, truth = part(4)
    assert model.which == "continued"
    assert model.score(judged, truth) > run.model("late", "federated").score(judged, truth)
    assert Run.open(run.folder).model("late").which == "continued"
    run.train_on("late", X[:30], y[:30])
    assert sorted(path.name for path in (run.record("late") / "continued").iterdir()) == ["00001", "00002"]
    run.use("late", "federated")
    assert Run.open(run.folder).model("late").which == "federated"
    with pytest.raises(Exception, match="new data: label 'ten' is outside the task"):
        run.train_on("late", X[:1], ["ten"])


def test_continue_and_add_as_an_owner_types_them(tmp_path, cosilo, monkeypatch):
    names = [f"p{i}" for i in range(64)]

    def write(name, place, labelled=True):
        frame = pd.DataFrame(part(place)[0], columns=names).assign(digit=[f"d{v}" for v in part(place)[1]])
        (frame if labelled else frame.drop(columns="digit")).to_csv(tmp_path / name, index=False)

    for place, name in enumerate(("north.csv", "south.csv", "more.csv", "west.csv")):
        write(name, place)
    write("pool.csv", 8, labelled=False)
    silo = 'path = "{0}.csv"\nlabel = "digit"\nlearner = {{ use = "sklearn.naive_bayes.GaussianNB" }}\n'
    text = '[method]\nuse = "cofed"\n[pool]\npath = "pool.csv"\n'
    for name in ("north", "south"):
        text += f'[[silo]]\nname = "{name}"\n' + silo.format(name)
    (tmp_path / "recipe.toml").write_text(text)
    (tmp_path / "west.toml").write_text('name = "west"\n' + silo.format("west"))
    monkeypatch.chdir(tmp_path)
    assert cosilo("run", "recipe.toml", "--dir", "run")[0] == 0
    code, out, err = cosilo("continue", "run", "north", "--data", "more.csv")
    assert code == 0, err
    first, last = out.splitlines()
    assert first.startswith("accuracy on its own test data: ")
    assert last == "silo north: trained on with 120 new instances; its continued model is in use"
    code, out, err = cosilo("add", "run", "west.toml")
    assert code == 0, err
    assert "silo west joined; the others did nothing" in out
    assert "west" in Run.open("run").relative_accuracy()
    for arguments, line in [
        (("add", "run", "west.toml"), "run: has a silo 'west' already"),
        (("add", "run", "recipe.toml"), "recipe.toml: name: is missing"),
        (("continue", "run", "north", "--data", "pool.csv"), "pool.csv: no column 'digit'"),
        (("continue", "run", "north", "--data", "none.csv"), "none.csv: no such file"),
        (
            ("continue", "run", "nord", "--data", "more.csv"),
            "there is no silo 'nord' (did you mean 'north'?)",
        ),
    ]:
        code, _, err = cosilo(*arguments)
        assert code == 2
        assert line in err, err
    (tmp_path / "north.csv").write_text((tmp_path / "more.csv").read_text())
    assert (
        "is not what it was when the run began" in cosilo("continue", "run", "north", "--data", "more.csv")[2]
    )
