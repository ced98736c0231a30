"""Metrics beside accuracy: against scikit-learn, and all the way from a policy to a report."""

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from cosilo import FEDERATED, LOCAL, CoFED, Federation, Message, Shared, Silo, step
from cosilo.cli.main import app
from cosilo.errors import ConfigError, RunError
from cosilo.protocol.metrics import METRIC_KINDS
from cosilo.runs.silo_state import last_state
from cosilo.silo.metrics import metrics_of

X, y = load_digits(return_X_y=True)
ALL = ["labels", "metrics", *METRIC_KINDS]


def silos(**options):
    return [
        Silo("tree", X[:300], y[:300], DecisionTreeClassifier(max_depth=5), shares=ALL),
        Silo("bayes", X[300:600], y[300:600], GaussianNB(), **{"shares": ["labels", "macro_f1"], **options}),
        Silo("plain", X[600:900], y[600:900], LinearSVC(), shares=["labels", "metrics", "auc", "macro_f1"]),
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Federation(silos(), X[900:1200], CoFED()).run(tmp_path_factory.mktemp("run") / "run")


def test_numbers_are_those_of_scikit_learn():
    model = GaussianNB().fit(X[:200], y[:200])
    right, said, chances = y[200:500], model.predict(X[200:500]), model.predict_proba(X[200:500])
    found = metrics_of(METRIC_KINDS.keys(), right, said, chances, list(range(10)), 10)
    assert found["balanced_accuracy"] == sk.balanced_accuracy_score(right, said)
    assert found["macro_f1"] == sk.f1_score(right, said, average="macro")
    assert found["auc"] == pytest.approx(sk.roc_auc_score(right, chances, multi_class="ovr"))
    assert found["log_loss"] == pytest.approx(sk.log_loss(right, chances))
    assert np.array_equal(found["recall"], sk.recall_score(right, said, average=None))
    assert np.array_equal(found["confusion"], sk.confusion_matrix(right, said))
    bars = found["calibration"]
    assert bars[:, 0].sum() == 300
    assert (bars[:, 0] * bars[:, 2]).sum() / 300 == pytest.approx(sk.accuracy_score(right, said))
    assert (bars[:, 0] * bars[:, 1]).sum() / 300 == pytest.approx(chances.max(axis=1).mean())


def test_by_hand_where_a_class_has_no_test_instance_and_one_is_never_chosen():
    right, said = np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1])
    chances = np.array([[0.8, 0.1, 0.1], [0.3, 0.1, 0.6], [0.2, 0.8, 0.0], [0.1, 0.9, 0.0]])
    found = metrics_of(METRIC_KINDS.keys(), right, said, chances, [0, 1, 2], 4)
    assert found["balanced_accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found["confusion"].tolist() == [[1, 0, 1, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert np.isnan(found["recall"][2:]).all()
    assert found["precision"][2] == 0
    assert np.isnan(found["precision"][3])
    assert found["auc"] == 1.0  # classes 0 and 1 are told apart; of class 2 there is nothing to rank
    assert found["log_loss"] == pytest.approx(-np.log([0.8, 0.3, 0.8, 0.9]).mean())
    assert found["calibration_error"] == pytest.approx((0.2 + 0.6 + 0.2 + 0.1) / 4, abs=0.05)


def test_without_probabilities_there_is_no_auc():
    found = metrics_of(METRIC_KINDS.keys(), np.array([0, 1]), np.array([0, 1]), None, [0, 1], 2)
    assert found.keys() == {"balanced_accuracy", "macro_f1", "precision", "recall", "confusion"}


def test_each_silo_shares_what_its_policy_names(run):
    found = run.metrics(FEDERATED)
    assert found["tree"].keys() == {
        *("balanced_accuracy", "macro_f1", "auc", "log_loss", "precision", "recall", "confusion"),
        *("calibration", "calibration_error"),
    }
    assert found["bayes"].keys() == {"macro_f1"}
    assert found["plain"].keys() == {"macro_f1"}  # a LinearSVC has no probabilities
    assert run.scores(LOCAL).keys() == {"tree", "plain"}  # bayes does not share its accuracy
    for entry in run.audit("bayes"):
        assert {field["kind"] for field in entry["fields"].values()} <= {"task", "labels", "macro_f1"}


def test_metrics_agree_with_each_other_and_with_the_accuracy(run):
    table = run.confusion("tree")
    assert np.diag(table).sum() / table.to_numpy().sum() == pytest.approx(run.scores(FEDERATED)["tree"])
    assert table.index.name == "is"
    assert list(table.columns) == [str(n) for n in range(10)]
    recall = run.metrics(FEDERATED)["tree"]["recall"]
    assert run.metrics(FEDERATED)["tree"]["balanced_accuracy"] == pytest.approx(np.mean(recall))
    with pytest.raises(RunError, match=r"silo 'bayes' shares no confusion matrix after 'federated'; it"):
        run.confusion("bayes")


def test_relative_gains_of_any_of_them(run):
    frame = run.to_frame()
    assert frame["relative_macro_f1"].notna().all()
    assert frame["relative_auc"].notna().tolist() == [True, False, False]
    one = frame.loc["tree"]
    assert one["relative_log_loss"] == pytest.approx(one["local_log_loss"] / one["federated_log_loss"])
    assert one["relative_macro_f1"] == pytest.approx(one["federated_macro_f1"] / one["local_macro_f1"])
    assert run.relative("accuracy") == run.relative_accuracy()
    with pytest.raises(ConfigError, match=r"metric 'macro_f2' \(did you mean 'macro_f1'"):
        run.relative("macro_f2")


def test_the_report_shows_them(run):
    page = run.report().read_text()
    assert "Other measures" in page
    assert "Macro F1" in page
    assert "tree: by class and by confidence" in page
    assert "bayes: by class" not in page


def test_without_such_a_policy_nothing_changes(tmp_path):
    two = [
        Silo("a", X[:100], y[:100], GaussianNB()),
        Silo("b", X[100:200], y[100:200], GaussianNB()),
    ]
    run = Federation(two, X[900:1000], CoFED()).run(tmp_path)
    assert "metrics" not in run.result
    assert last_state(tmp_path / "silos/a").scores["local"]["own"].keys() == {
        "accuracy",
        "instances",
    }
    assert "Other measures" not in run.report().read_text()
    assert run.relative("auc") == {}


class Curious(CoFED):
    """A method that sends what nobody allowed."""

    @step(
        timed=False,
        needs_model=False,
        voluntary=True,
        accuracy=Shared("metrics", optional=True),
        confusion=Shared("confusion", optional=True),
    )
    def evaluate(self, silo: Silo, stage: str) -> Message:
        return {"confusion": np.eye(10, dtype=np.int64)}


def test_what_the_policy_does_not_name_stays_whatever_the_method_says(tmp_path):
    both = [
        Silo("a", X[:100], y[:100], GaussianNB()),
        Silo("b", X[100:200], y[100:200], GaussianNB()),
    ]
    run = Federation(both, X[900:1000], Curious()).run(tmp_path)
    texts = {failure["text"] for failure in run.result["failures"]}
    assert any("does not share 'confusion', which" in text for text in texts)
    assert all("confusion" not in entry["fields"] for entry in run.audit("a"))


def test_for_the_owner_alone(run):
    found = run.silos["bayes"].metrics(X[1200:1400], y[1200:1400])
    assert found["accuracy"] == run.silos["bayes"].score(X[1200:1400], y[1200:1400])
    assert {"auc", "log_loss", "confusion", "calibration"} <= found.keys()


RECIPE = """
[pool]
rest = true
size = 150

[simulation]
dataset = "digits"
split = { use = "iid", silos = 2, size = 150 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
shares = ["labels", "metrics", "macro_f1", "confusion"]
"""


def test_compare_by_command(tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    ran = CliRunner().invoke(
        app,
        [
            "compare",
            str(tmp_path / "recipe.toml"),
            "--methods",
            "local,cofed",
            "--seeds",
            "1",
            "--dir",
            str(tmp_path / "c"),
        ],
        env={"COLUMNS": "200"},
    )
    assert ran.exit_code == 0, ran.output
    assert "macro" in ran.output
    page = next((tmp_path / "c").glob("*.html")).read_text()
    assert "Relative macro F1" in page
