"""Models out of records, without data: from recipes and from Python, by commands and by calls."""

import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Local, Run, RunError, Silo, data
from cosilo.config import build
from cosilo.config.models import model_of, predictions

LEARNER = {"use": "mlp", "hidden": [8], "training": {"optimiser": "sgd", "lr": 0.2, "batch": 8}}
CENTRES = {"ash": (0, 0), "elm": (4, 0), "fir": (0, 4), "oak": (4, 4)}


def points(classes, count, seed, path, **more):
    rng = np.random.default_rng(seed)
    rows = [(*(np.array(CENTRES[c]) + rng.normal(0, 0.4, 2)), c) for c in classes for _ in range(count)]
    pd.DataFrame(rows, columns=["x", "y", "tree"]).assign(**more).to_csv(path, index=False)


class Own(GaussianNB):
    """A class of the user's own."""


@pytest.fixture
def adult(tmp_path, monkeypatch):
    """Columns of words and numbers from the real Adult data, where it is there, in files of three owners."""
    try:
        found = data.load("adult")
    except Exception:
        pytest.skip("COSILO_DATA does not have adult")
    frame = found.X.assign(income=np.array(found.classes)[found.y]).sample(900, random_state=0)
    for place, name in enumerate(("north", "south", "pool")):
        part = frame.iloc[300 * place : 300 * place + 300]
        (part.drop(columns="income") if name == "pool" else part).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    new = frame.iloc[:20].reset_index(drop=True)
    new.insert(0, "patient", [f"{place:03d}" for place in range(20)])
    new.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "recipe.toml").write_text(
        '[method]\nuse = "cofed"\n[pool]\npath = "pool.csv"\n[defaults]\nlabel = "income"\n'
        '[[silo]]\nname = "north"\npath = "north.csv"\n'
        'learner = { use = "sklearn.tree.DecisionTreeClassifier", max_depth = 4 }\n'
        '[[silo]]\nname = "south"\npath = "south.csv"\nlearner = { use = "sklearn.svm.LinearSVC" }\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_predict_and_use_as_an_owner_types_them(adult, cosilo):
    assert cosilo("run", "recipe.toml", "--dir", "run")[0] == 0
    live = Run.open("run").model("north")
    for name in ("north.csv", "south.csv", "pool.csv"):  # nobody needs them any more
        (adult / name).unlink()
    code, out, _ = cosilo("predict", "run", "north", "new.csv", "--out", "out.csv")
    assert (code, out) == (0, "20 labels: out.csv\n")
    written = pd.read_csv("out.csv", dtype={"patient": str})
    assert list(written) == ["patient", "label", "probability"]
    assert written["patient"].tolist()[:2] == ["000", "001"]
    new = pd.read_csv("new.csv")
    assert written["label"].tolist() == live.predict(new).tolist()
    assert written["probability"].to_numpy() == pytest.approx(live.predict_proba(new).max(axis=1))
    assert cosilo("predict", "run", "south", "new.csv", "--out", "out.csv")[0] == 0
    assert pd.read_csv("out.csv")["probability"].isna().all()  # LinearSVC cannot say
    new.assign(patient=["007", None] * 10).to_parquet("new.parquet")
    assert cosilo("predict", "run", "north", "new.parquet", "--out", "out.csv")[0] == 0
    rows = (adult / "out.csv").read_text().splitlines()[1:3]
    assert [row.partition(",")[0] for row in rows] == ["007", ""]
    code, out, _ = cosilo("use", "run", "north", "--model", "local")
    assert out == "silo north: its local model (DecisionTreeClassifier) predicts from now on\n"
    assert Run.open("run").model("north").which == "local"
    assert Run.open("run").model("north", "federated").which == "federated"
    for arguments, line in [
        (("predict", "run", "norht", "new.csv", "--out", "o.csv"), "there is no silo 'norht' (did you mean"),
        (("predict", "run", "north", "no.csv", "--out", "o.csv"), "no.csv: no such file or folder"),
        (("predict", "run", "north", "out.csv", "--out", "o.csv"), "out.csv: no column 'age'"),
        (("predict", "run", "north", "new.csv", "--out", "o.txt"), "got the ending '.txt'"),
        (("use", "run", "north", "--model", "continued"), "was never continued; cosilo continue"),
        (("use", "recipe.toml", "north", "--model", "local"), "is neither the directory of a run nor"),
    ]:
        code, out, err = cosilo(*arguments)
        assert code == 2
        assert line in err
        assert len(err.strip().splitlines()) == 1


def test_models_of_a_python_run_need_no_data_and_no_learner(federation, pool, tmp_path):
    made = federation(CoFED(alpha=0.3)).run(tmp_path / "run")
    run = Run.open(made.folder)
    for name in ("tree", "bayes"):
        model, silo = run.model(name), made.silos[name]
        assert model.predict(pool).tolist() == silo.predict(pool).tolist()
        assert model.predict(pool).dtype == silo.predict(pool).dtype
        assert np.array_equal(model.predict_proba(pool), silo.predict_proba(pool))
        assert model.classes.tolist() == silo.classes.tolist()
        assert model.score(pool, model.predict(pool)) == 1.0
    with pytest.raises(RunError, match=r"only Python can make its Nearest again .*; hand one over"):
        run.model("nearest")
    learner = made.silos["nearest"].learner
    known = Run.open(made.folder, learners={"nearest": learner}).model("nearest")
    assert known.predict(pool).tolist() == made.silos["nearest"].predict(pool).tolist()
    assert made.model("nearest", "local").learner is not learner  # what is in memory stays as it is


def test_the_local_model_is_kept_and_is_what_training_alone_gives(federation, silos, pool, tmp_path):
    run = federation(CoFED(alpha=0.3)).run(tmp_path / "run")
    alone = Federation(silos(), method=Local()).run(tmp_path / "alone")
    for name in ("tree", "bayes"):
        # The same ask, and so the same seed.
        assert run.model(name, "local").predict(pool).tolist() == alone.silos[name].predict(pool).tolist()
    assert alone.model("tree").which == "local"
    with pytest.raises(RunError, match="has a local model only; its method trains each silo alone"):
        alone.model("tree", "federated")
    run.use("tree", "local")
    assert Run.open(run.folder).model("tree").which == "local"
    run.set_status("stopped")
    with pytest.raises(RunError, match="the run is stopped, not finished"):
        run.model("tree")


def test_a_strange_template_is_not_opened(pool, silos, tmp_path):
    one = Silo("own", *silos()[0].data.all, Own())
    run = Federation([one], method=Local()).run(tmp_path / "run")
    with pytest.raises(Exception, match=r"types that are not of a well-known library: .*Own"):
        Run.open(run.folder).model("own")
    assert len(Run.open(run.folder, learners={"own": Own()}).model("own").predict(pool)) == len(pool)


def test_new_instances_of_another_form_are_refused(federation, tmp_path):
    run = federation(CoFED()).run(tmp_path / "run")
    with pytest.raises(Exception, match=r"are numbers of shape \(3,\); the model was trained on .*\(64,\)"):
        run.model("tree").predict(np.eye(3))


def test_by_the_own_model_or_by_those_that_labelled(tmp_path, cosilo):
    pytest.importorskip("torch")
    silos = []
    for place, (own, wanted) in enumerate(
        [(("ash", "elm"), ("fir", "oak")), (("fir", "oak"), ("ash", "elm"))]
    ):
        name = f"park-{place}"
        points(own, 20, place, tmp_path / f"{name}.csv")
        points(wanted, 3, 10 + place, tmp_path / f"{name}-labelled.csv")
        points(wanted, 10, 20 + place, tmp_path / f"{name}-open.csv", plot=[f"p{i}" for i in range(20)])
        target = {"path": f"{name}-labelled.csv", "unlabelled": f"{name}-open.csv", "truth": "tree"}
        about = {"name": name, "path": f"{name}.csv", "label": "tree", "target": target, "learner": LEARNER}
        silos.append(about | {"shares": ["weights", "similarity", "metrics"]})
    method = {"use": "dofed_spp", "rounds": 2, "warm_up": 10, "stop_below": 0.0}
    values = {"seed": 1, "method": method, "silo": silos}
    run = build.federation(values, build.Source("trees.toml", tmp_path)).run(tmp_path / "run")
    points(("fir", "oak"), 15, 30, tmp_path / "new.csv")
    truth = pd.read_csv(tmp_path / "new.csv")["tree"]
    kept = tmp_path / "kit"  # at a silo, its record is all there is
    shutil.copytree(run.folder / "silos" / "park-0", kept)
    model = model_of(kept)
    own = predictions(model, tmp_path / "new.csv")
    others = predictions(model, tmp_path / "new.csv", labeller=True)
    assert list(own) == ["label", "probability"]
    assert own["label"].tolist() == run.silos["park-0"].predict(pd.read_csv(tmp_path / "new.csv")).tolist()
    assert list(others) == ["label", "confidence", "speakers"]
    assert set(others["speakers"]) == {"park-1"}
    assert np.mean(others["label"] == truth) > 0.9
    # By command, also if its owner went back to another model of the silo's own.
    asked = [
        "predict",
        run.folder,
        "park-0",
        tmp_path / "new.csv",
        "--out",
        tmp_path / "labels.csv",
        "--labeller",
    ]
    for model in ("federated", "local"):
        assert cosilo("use", run.folder, "park-0", "--model", model)[0] == 0
        assert cosilo(*asked)[0] == 0
        assert pd.read_csv(tmp_path / "labels.csv")["label"].tolist() == others["label"].tolist()
    code, _, error = cosilo(*asked, "--model", "local")
    assert (code, error.count("\n")) == (2, 1)
    assert "--labeller --model local: the labeller is none of the silo's own; leave one out" in error
    from cosilo.config.target_labels import read_labels

    labels = read_labels(kept)
    assert list(labels) == ["row", "plot", "label", "confidence", "speakers"]
    assert labels["plot"].tolist() == [f"p{i}" for i in range(20)]
    assert labels["label"].tolist() == run.silos["park-0"].target_labels()["label"].tolist()


def test_an_offer_that_was_refused_is_kept_and_can_be_used(tmp_path, cosilo):
    """Three silos that have turned all classes around outvote north, whose own data speaks against it."""
    X, y = data.load("digits").X.reshape(-1, 64), data.load("digits").y
    X, y = X[y < 4], y[y < 4]
    learners = {"a": GaussianNB(), "b": KNeighborsClassifier(), "c": DecisionTreeClassifier()}
    silos = [Silo("north", X[:150], y[:150], DecisionTreeClassifier())]
    for place, (name, learner) in enumerate(learners.items()):
        rows = slice(150 + 100 * place, 250 + 100 * place)
        silos.append(Silo(name, X[rows], (y[rows] + 1) % 4, learner))
    run = Federation(silos, X[450:], CoFED()).run(tmp_path / "run")
    refused = run.model("north")
    assert refused.which == "local"
    assert refused.score(X[150:], y[150:]) > 0.7
    code, out, _ = cosilo("use", tmp_path / "run", "north", "--model", "federated")
    assert (code, "its federated model (DecisionTreeClassifier) predicts from now on" in out) == (0, True)
    offered = Run.open(tmp_path / "run").model("north")
    assert offered.which == "federated"
    assert offered.score(X[150:], y[150:]) < 0.5
    assert cosilo("use", tmp_path / "run", "north", "--model", "local")[0] == 0
    assert Run.open(tmp_path / "run").model("north").score(X[150:], y[150:]) > 0.7
