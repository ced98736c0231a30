"""A run as its owner uses it."""

import html
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Local, Run, RunError, Silo
from cosilo.report.facts import gather
from cosilo.report.phrases import verdict


@pytest.fixture
def run(silos, pool, tmp_path):
    tree, bayes, nearest = silos()
    private = Silo("private", *nearest.data.all, DecisionTreeClassifier(), shares=["labels"])
    return Federation([tree, bayes, private], pool, CoFED(alpha=0.3)).run(tmp_path / "run")


def test_a_frame_with_a_row_for_each_silo(run):
    frame = Run(run.folder).to_frame()
    assert frame.index.tolist() == ["tree", "bayes", "private"]
    assert frame.index.name == "silo"
    assert frame["classes"].tolist() == [3, 3, 3]
    assert frame["local_accuracy"].dropna().to_dict() == run.scores("local")
    assert frame["federated_accuracy"].dropna().to_dict() == run.scores("federated")
    assert frame["relative_accuracy"].dropna().to_dict() == run.relative_accuracy()
    assert frame["instances"].tolist() == [15, 15, pd.NA]
    assert frame["bytes_sent"].to_dict() == {name: run.bytes_sent(name) for name in frame.index}
    assert frame["failures"].tolist() == ["", "", ""]


class Breaks(GaussianNB):
    def fit(self, X, y):
        raise ValueError("no")


def test_a_frame_names_failures_by_kind(silos, tmp_path):
    broken = Silo("broken", np.eye(8), list("abababab"), Breaks())
    frame = Federation([*silos(), broken], method=Local()).run(tmp_path / "run").to_frame()
    assert frame["failures"].to_dict() == {"tree": "", "bayes": "", "nearest": "", "broken": "learner"}
    assert frame["federated_accuracy"].isna().all()
    assert np.isnan(frame.loc["broken", "local_accuracy"])
    assert frame["local_accuracy"].dtype == frame["federated_accuracy"].dtype == np.float64


def test_a_run_that_is_not_finished_has_no_frame(run):
    run.set_status("stopped")
    with pytest.raises(RunError, match="the run is stopped, not finished"):
        run.to_frame()


def test_the_report_is_written_and_found(run):
    path = Run(run.folder).report()
    assert path == run.folder / "report.html"
    assert "bayes" in path.read_text()
    run.set_status("stopped")
    with pytest.raises(RunError, match="the run is stopped, not finished"):
        run.report()


def test_a_notebook_shows_a_verdict_and_a_table(run):
    page = run._repr_html_()
    assert verdict(gather(run)) in html.unescape(page)
    heads, cells = re.findall("<th>(.*?)</th>", page), re.findall("<td>(.*?)</td>", page)
    columns = {head: cells[place :: len(heads)] for place, head in enumerate(heads)}
    assert columns["silo"] == ["tree", "bayes", "private"]
    local = run.scores("local")
    assert columns["local_accuracy"] == [f"{local['tree']:.3f}", f"{local['bayes']:.3f}", "–"]


def test_a_notebook_shows_what_is_not_finished_and_names_are_escaped(silos, tmp_path):
    folder = tmp_path / "<b>run"
    run = Federation(silos(), method=Local()).run(folder)
    run.set_status("stopped")
    assert run._repr_html_() == f"<p>&lt;Run {html.escape(str(folder))}: local, stopped&gt;</p>"


def test_silos_are_there_when_the_run_was_made_here(run):
    assert sorted(run.silos) == ["bayes", "private", "tree"]
    assert run.silos["tree"].score(*run.silos["tree"].data.test[:1], [0] * 15) < 1
    assert Run(run.folder).silos == {}


@pytest.fixture
def older(tmp_path):
    """A run of CoFED by the version of 16 November 2026, before files had checksums and logs a chain."""
    folder = tmp_path / "older"
    shutil.unpack_archive(Path(__file__).with_name("run_of_an_older_version.zip"), folder)
    return folder


def test_a_run_of_an_older_version_can_be_opened(older, cosilo):
    run = Run.open(older)
    assert (run.status, run.method, list(run.about["silos"])) == ("finished", "cofed", ["north", "south"])
    assert run.scores("federated") == {"north": 1.0, "south": 1.0}
    assert run.to_frame()["bytes_sent"].to_list() == [578, 594]
    assert [ask["step"] for ask in run.asks()][:3] == ["hello", "train", "evaluate"]
    assert "relative" in run.report().read_text()
    code, out, err = cosilo("votes", older)
    assert (code, out) == (2, "")
    assert "kept no checksum of the reply of 'north', so it cannot be verified" in err
    code, out, err = cosilo("audit", older, "north")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("the log is of a version of cosilo without a chain of hashes")


def test_resuming_what_an_older_version_has_finished_shows_it(older, cosilo):
    code, out, err = cosilo("resume", older)
    assert (code, err) == (0, "")
    assert out.startswith("the run is finished already\n")
    assert "mean relative accuracy (federated / local): " in out


def test_what_an_older_run_lacks_is_named(older, cosilo):
    code, _, err = cosilo("predict", older, "north", "pool.csv", "--out", "labels.csv")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "silos/north: is not a silo's record of a run (it has no silo.json)" in err
