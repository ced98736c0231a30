"""Exported models: the same labels without cosilo, and a card that says where they come from."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Run, RunError, Silo, data
from cosilo.config import build

torch = pytest.importorskip("torch")

X, Y = load_digits(return_X_y=True)
#: Runs predict.py of several folders in one process in which nobody can import cosilo.
BLOCKED = """
import json, runpy, sys
sys.modules["cosilo"] = None
for folder, file, out in json.loads(sys.argv[1]):
    sys.argv = ["predict.py", file, out]
    before = list(sys.path)
    runpy.run_path(folder + "/predict.py", run_name="__main__")
    sys.path[:] = before
"""


def predict_apart(jobs):
    """Run `predict.py` of each folder on a file, isolated; the labels that it writes."""
    named = [[str(folder), str(file), f"{folder}.csv"] for folder, file in jobs]
    done = subprocess.run(
        [sys.executable, "-I", "-c", BLOCKED, json.dumps(named)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [pd.read_csv(out) for _, _, out in named]


@pytest.fixture(scope="module")
def adult(tmp_path_factory):
    """A run of a recipe on columns of words and numbers; ten new people with an id."""
    folder = tmp_path_factory.mktemp("adult")
    try:
        found = data.load("adult")
    except Exception:
        pytest.skip("COSILO_DATA does not have adult")
    frame = found.X.assign(income=np.array(found.classes)[found.y]).sample(700, random_state=0)
    for place, name in enumerate(("north", "south", "pool")):
        part = frame.iloc[200 * place : 200 * place + 200]
        (part.drop(columns="income") if name == "pool" else part).to_csv(folder / f"{name}.csv", index=False)
    frame.iloc[600:].drop(columns="income").assign(person=range(100)).to_csv(folder / "new.csv", index=False)
    tree = {"use": "sklearn.tree.DecisionTreeClassifier", "max_depth": 3}
    silos = [
        {"name": "north", "path": "north.csv", "learner": tree},
        {"name": "south", "path": "south.csv", "learner": {"use": "sklearn.svm.LinearSVC"}},
    ]
    values = {"defaults": {"label": "income"}, "pool": {"path": "pool.csv"}, "silo": silos}
    build.federation(values, build.Source("adult.toml", folder)).run(folder / "run")
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A run from Python with a tree, a network and one that has an output for every class."""
    from cosilo.learners import Network, Training, zoo

    folder = tmp_path_factory.mktemp("digits")
    np.savez(folder / "new.npz", X=X[1500:])
    np.savez(folder / "images.npz", X=(X[1500:].reshape(-1, 8, 8) * 15).astype(np.uint8))
    silos = [
        Silo("tree", X[:150], Y[:150], DecisionTreeClassifier()),
        Silo("svc", X[150:300], Y[150:300], SVC()),
        Silo(
            "net",
            X[300:500],
            Y[300:500],
            Network(lambda s, k: zoo.mlp(s, k, hidden=[16]), Training(epochs=5, lr=0.01)),
        ),
    ]
    run = Federation(silos, X[500:800], CoFED(alpha=0.3)).run(folder / "run")
    learner = {"use": "cnn1", "hidden": 8, "training": {"optimiser": "sgd", "lr": 0.1, "epochs": 1}}
    images = (X.reshape(-1, 8, 8) * 15).astype(np.uint8)
    big = np.kron(images, np.ones((1, 2, 2), np.uint8))
    np.savez(folder / "a.npz", X=big[:100][Y[:100] < 6], y=Y[:100][Y[:100] < 6])
    np.savez(folder / "b.npz", X=big[100:200], y=Y[100:200])
    np.savez(folder / "big.npz", X=big[1500:])
    shares = ["weights", "size", "metrics"]
    silos = [{"name": name, "path": f"{name}.npz", "learner": learner, "shares": shares} for name in "ab"]
    values = {"method": {"use": "fedavg", "rounds": 2}, "silo": silos}
    build.federation(values, build.Source("images.toml", folder)).run(folder / "wide")
    return folder, run


def test_the_same_labels_in_a_process_without_cosilo(adult, digits, tmp_path, cosilo):
    folder, run = digits
    jobs = []
    for name in ("tree", "svc", "net"):
        jobs.append((run.export(name, tmp_path / name), folder / "new.npz", run.model(name)))
    wide = Run.open(folder / "wide")
    jobs.append((wide.export("a", tmp_path / "wide"), folder / "big.npz", wide.model("a")))
    for name in ("north", "south"):
        code, out, _ = cosilo("export", adult / "run", name, "--to", tmp_path / name)
        assert (code, out) == (0, f"federated model of {name}: {tmp_path / name}\n")
        jobs.append((tmp_path / name, adult / "new.csv", Run.open(adult / "run").model(name)))
    jobs.append(
        (run.export("tree", tmp_path / "local", "local"), folder / "new.npz", run.model("tree", "local"))
    )
    for (where, file, model), got in zip(jobs, predict_apart([job[:2] for job in jobs]), strict=True):
        new = np.load(file)["X"] if file.suffix == ".npz" else pd.read_csv(file)
        wanted = model.to_frame(new)
        assert got["label"].astype(str).tolist() == wanted["label"].astype(str).tolist(), where
        if model.learner.has_probabilities:
            assert got["probability"].to_numpy() == pytest.approx(wanted["probability"].to_numpy())
        if file.suffix == ".csv":
            assert got["person"].tolist() == list(range(100))


def apart(folder, *arguments):
    """Type `python predict.py …` as somebody without cosilo does."""
    program = [sys.executable, "-I", folder / "predict.py", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_columns_that_are_no_features_stay_as_they_stand(adult, tmp_path):
    folder = Run.open(adult / "run").export("north", tmp_path / "north")
    new = pd.read_csv(adult / "new.csv").head(2).assign(person=["007", ""], label="?")
    new.to_csv(tmp_path / "new.csv", index=False)
    assert apart(folder, tmp_path / "new.csv", tmp_path / "out.csv").returncode == 0
    head, first, second = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "person,label_given,label,probability"
    assert first.startswith("007,?,")
    assert second.startswith(",?,")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("nowhere.csv", None, "nowhere.csv: cannot be labelled ([Errno 2] No such file"),
        ("empty.csv", "", "empty.csv: cannot be labelled (No columns to parse from file)"),
        ("other.csv", "a,b\n1,2\n", "other.csv: cannot be labelled (no column 'age'; it has 'a', 'b')"),
        ("out.csv", "a,b\n1,2\n", "out.csv: is the file with the instances; wants another for"),
    ],
)
def test_a_mistake_at_an_exported_model_is_one_line(adult, tmp_path, name, text, line):
    folder = Run.open(adult / "run").export("north", tmp_path / "north")
    if text is not None:
        (tmp_path / name).write_text(text)
    done = apart(folder, tmp_path / name, tmp_path / "out.csv")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert line in done.stderr


def test_onnx_says_the_same(adult, digits, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxscript")
    run, new = digits[1], X[1500:]
    run.export("tree", tmp_path / "tree")
    session = runtime.InferenceSession(tmp_path / "tree" / "model.onnx")
    said = session.run(None, {"X": new.astype(np.float32)})[0]
    outputs = np.array(json.loads((tmp_path / "tree" / "model.json").read_text())["outputs"])
    assert np.mean(outputs[said] == run.model("tree").predict(new)) == 1.0
    run.export("net", tmp_path / "net")
    session = runtime.InferenceSession(tmp_path / "net" / "model.onnx")
    said = session.run(None, {session.get_inputs()[0].name: new.astype(np.float32)})[0]
    assert np.mean(said.argmax(axis=1) == run.model("net").predict(new)) == 1.0
    known = Run.open(adult / "run")
    known.export("north", tmp_path / "north")
    frame = pd.read_csv(adult / "new.csv").drop(columns="person")
    session = runtime.InferenceSession(tmp_path / "north" / "model.onnx")
    fed = {
        one.name: frame[[column]].to_numpy(np.float32 if "float" in one.type else object)
        for one, column in zip(session.get_inputs(), frame.columns, strict=True)
    }
    outputs = np.array(json.loads((tmp_path / "north" / "model.json").read_text())["outputs"])
    assert np.mean(outputs[session.run(None, fed)[0]] == known.model("north").predict(frame)) >= 0.98


def test_a_card_with_the_facts_of_the_federation(adult, tmp_path):
    run = Run.open(adult / "run")
    card = (run.export("north", tmp_path / "north") / "README.md").read_text()
    score = run.scores("federated")["north"]
    for line in (
        "# DecisionTreeClassifier of silo north",
        "`age` (int64)",
        "- `numbers`: `StandardScaler()` of age, fnlwgt",
        "- `words`: `OneHotEncoder(",
        "| method | cofed |",
        "| partners | 1 |",
        "| pool | 200 public instances |",
        f"| accuracy, federated | {100 * score:.1f}% of 50 test instances |",
        "max_depth",
    ):
        assert line in card
    about = json.loads((tmp_path / "north" / "model.json").read_text())
    assert about["classes"] == ["<=50K", ">50K"]
    assert "cosilo" not in (tmp_path / "north" / "requirements.txt").read_text()


OWN = """
import numpy as np

class Mean:
    def fit(self, X, y):
        self.known = sorted(set(y.tolist()))
        self.means = np.stack([X[y == c].mean(axis=0) for c in self.known])
        return self

    def predict(self, X):
        return np.array(self.known)[((X[:, None] - self.means[None]) ** 2).sum(axis=2).argmin(axis=1)]
"""


def test_a_class_of_the_owners_own_goes_along(tmp_path):
    (tmp_path / "ownmodel.py").write_text(OWN)
    np.savez(tmp_path / "new.npz", X=X[1500:])
    for place, name in enumerate("ab"):
        np.savez(
            tmp_path / f"{name}.npz",
            X=X[200 * place : 200 * place + 200],
            y=Y[200 * place : 200 * place + 200],
        )
    silos = [{"name": name, "path": f"{name}.npz", "learner": {"use": "ownmodel.Mean"}} for name in "ab"]
    values = {"method": {"use": "local"}, "silo": silos}
    run = build.federation(values, build.Source("own.toml", tmp_path)).run(tmp_path / "run")
    folder = run.export("a", tmp_path / "out")
    assert (folder / "code" / "ownmodel.py").exists()
    (got,) = predict_apart([(folder, tmp_path / "new.npz")])
    assert got["label"].astype(str).tolist() == run.model("a").predict(X[1500:]).astype(str).tolist()


def test_a_folder_with_something_in_it_is_left_alone(digits, tmp_path):
    (tmp_path / "here").write_text("mine")
    with pytest.raises(RunError, match="is not empty; choose another folder"):
        digits[1].export("tree", tmp_path)
    assert (tmp_path / "here").read_text() == "mine"


@pytest.mark.slow
def test_in_a_venv_without_cosilo(adult, tmp_path):
    run = Run.open(adult / "run")
    folder = run.export("north", tmp_path / "north")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", folder / "requirements.txt"], check=True)
    assert subprocess.run([python, "-c", "import cosilo"], capture_output=True, check=False).returncode
    done = [python, folder / "predict.py", adult / "new.csv", tmp_path / "labels.csv"]
    subprocess.run(done, check=True, cwd=tmp_path, env={"PATH": str(Path(sys.executable).parent)})
    wanted = run.model("north").predict(pd.read_csv(adult / "new.csv")).tolist()
    assert pd.read_csv(tmp_path / "labels.csv")["label"].tolist() == wanted


def test_boosters_in_their_own_formats(tmp_path):
    """XGBoost, LightGBM and CatBoost: what each writes itself, and the same labels without cosilo."""
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    catboost = pytest.importorskip("catboost")
    learners = {
        "xgboost": xgboost.XGBClassifier(n_estimators=5),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1),
        "catboost": catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False),
    }
    low = np.flatnonzero(Y < 4)
    rows = {name: low[100 * place : 100 * place + 100] for place, name in enumerate(learners)}
    silos = [Silo(name, X[rows[name]], Y[rows[name]], learner) for name, learner in learners.items()]
    run = Federation(silos, X[low[300:400]], CoFED()).run(tmp_path / "run")
    np.savez(tmp_path / "new.npz", X=X[low[400:]])
    jobs = [(run.export(name, tmp_path / name), tmp_path / "new.npz") for name in learners]
    suffixes = {"xgboost": ".ubj", "lightgbm": ".txt", "catboost": ".cbm"}
    for (folder, _), got in zip(jobs, predict_apart(jobs), strict=True):
        assert (folder / f"model{suffixes[folder.name]}").exists()
        wanted = run.model(folder.name).to_frame(X[low[400:]])
        assert got["label"].tolist() == wanted["label"].tolist(), folder.name
        assert got["probability"].to_numpy() == pytest.approx(wanted["probability"].to_numpy(), abs=1e-6)
