"""A silo's own runs: what it is told while they go on, and afterwards."""

import shutil

import pytest

from cosilo import CoFED, RunError
from cosilo.report.silo_page import write_silo_page
from cosilo.runs.locks import locked
from cosilo.runs.silo_runs import News, read_silo_run, silo_runs_in


@pytest.fixture
def kit(federation, tmp_path):
    """The records of one silo, as a kit has them."""
    run = federation(CoFED(alpha=0.3)).run(tmp_path / "run")
    folder = tmp_path / "kit" / "runs"
    shutil.copytree(run.folder / "silos" / "tree", folder / "2026-01-01-cofed-1")
    return folder, run


def test_what_a_silo_knows(kit):
    folder, run = kit
    (one,) = silo_runs_in(folder)
    assert one.bytes_left == run.bytes_sent("tree")
    assert one.kinds == ["labels", "metrics"]
    assert one.accuracy("federated") == run.scores("federated")["tree"]
    assert not one.at_work
    with pytest.raises(RunError, match=r"is not a silo's record of a run \(it has no silo.json\)"):
        read_silo_run(folder)


def test_it_is_told_when_a_run_begins_and_ends(kit, tmp_path):
    folder, _ = kit
    news = News(folder)
    assert news.lines() == []  # what was before is no news
    new = folder / "2026-01-02-cofed-1"
    with locked(new):
        assert news.lines() == []  # it has not said who it is yet
        shutil.copytree(folder / "2026-01-01-cofed-1", new, dirs_exist_ok=True)
        assert news.lines() == ["run 2026-01-02-cofed-1 begins: cofed"]
        assert news.lines() == []
    (line,) = news.lines()
    assert line.startswith("run 2026-01-02-cofed-1 ended: ")
    assert "bytes left in" in line
    assert "(labels, metrics); accuracy on its own test data" in line
    with locked(new):
        assert news.lines() == ["run 2026-01-02-cofed-1 goes on: cofed"]


def test_runs_and_report_work_on_a_kit(kit, cosilo):
    folder, run = kit
    for place in (folder, folder.parent):
        code, out, _ = cosilo("runs", place)
        assert code == 0
        assert "2026-01-01-cofed-1" in out
        assert "│ tree │ cofed  │ over" in out
    code, out, _ = cosilo("report", folder / "2026-01-01-cofed-1")
    assert code == 0
    page = (folder / "2026-01-01-cofed-1" / "report.html").read_text()
    assert f"{100 * run.scores('federated')['tree']:.1f}%" in page
    assert "<td>votes</td><td>labels</td>" in page
    assert "This page stays at the silo" in page
    assert write_silo_page(read_silo_run(folder / "2026-01-01-cofed-1")).name == "report.html"
