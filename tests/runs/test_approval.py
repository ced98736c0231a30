"""A run waits for the administrator of a silo."""

import os
import sys
import threading
import time

import pytest

from cosilo.cli.organisations import silo_news
from cosilo.engines.flare.kit_settings import KitSettings, write_kit_settings
from cosilo.errors import Refused, RunError
from cosilo.runs import approval
from cosilo.runs.durable_files import write_json

WORDS = ["It would send:", "  once, step 'label': votes"]
SUBJECT, OTHER = approval.Subject("a" * 64, "b" * 64), approval.Subject("c" * 64, "b" * 64)
TIGHTER = approval.Subject("a" * 64, "d" * 64)


@pytest.fixture
def kit(tmp_path):
    (tmp_path / "local").mkdir()
    write_kit_settings(tmp_path, KitSettings(runs=str(tmp_path / "runs")))
    (tmp_path / "runs" / "first").mkdir(parents=True)
    return tmp_path


def waiting(folder) -> tuple[threading.Thread, list]:
    """Somebody who waits for an answer, and what came of it."""
    outcome = []

    def wait() -> None:
        try:
            approval.wait_for(folder, SUBJECT, WORDS)
            outcome.append("runs")
        except Refused as error:
            outcome.append(str(error))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not (folder / "request.json").exists():
        time.sleep(0.01)
    return thread, outcome


@pytest.mark.parametrize(
    ("option", "outcome"),
    [("--yes", "runs"), ("--refuse", "the silo's administrator refused the run")],
)
def test_it_runs_when_somebody_has_read_it_and_said_yes(cosilo, kit, option, outcome):
    folder = kit / "runs" / "first"
    thread, found = waiting(folder)
    assert cosilo("approve", kit)[1] == "waits: first\n"
    code, out, _ = cosilo("approve", kit, "first", option)
    assert code == 0
    assert out.startswith("\n".join(WORDS))
    thread.join(30)
    assert found == [outcome]
    assert cosilo("approve", kit)[1] == "no run waits for approval\n"


def test_who_sits_at_the_silo_reads_that_a_run_waits(kit):
    news = silo_news(kit, kit / "runs")
    assert news() == []
    thread, _ = waiting(kit / "runs" / "first")
    assert news() == [f"run first waits for you: cosilo approve {kit} first"]
    assert news() == []
    approval.answer(kit / "runs" / "first", SUBJECT, approved=True)
    thread.join(30)


@pytest.mark.parametrize("second", [OTHER, TIGHTER], ids=["contract", "limits"])
def test_an_answer_is_for_what_was_read(kit, second):
    folder = kit / "runs" / "first"
    thread, found = waiting(folder)
    read = approval.request(folder)
    assert read == approval.Request(SUBJECT, tuple(WORDS))
    approval.answer(folder, read.subject, approved=True)
    thread.join(30)
    approval.wait_for(folder, SUBJECT, WORDS)  # the same run again: no new question
    assert not approval.is_approved(folder, second)
    other = threading.Thread(
        target=approval.wait_for, args=(folder, second, ["It would send more"]), daemon=True
    )
    other.start()
    while approval.request(folder).subject == SUBJECT:
        time.sleep(0.01)
    assert approval.waiting(kit / "runs") == ["first"]
    with pytest.raises(RunError, match="another contract or other limits wait for approval"):
        approval.answer(folder, read.subject, approved=True)
    assert approval.waiting(kit / "runs") == ["first"]
    approval.answer(folder, second, approved=True)
    other.join(30)
    assert found == ["runs"]


def test_a_no_holds_for_the_contract_whatever_the_limits_are_then(kit):
    folder = kit / "runs" / "first"
    thread, found = waiting(folder)
    approval.answer(folder, SUBJECT, approved=False)
    thread.join(30)
    assert found == ["the silo's administrator refused the run"]
    with pytest.raises(Refused):
        approval.wait_for(folder, TIGHTER, WORDS)


def test_what_waits_when_yes_is_typed_may_be_something_else(kit, cosilo, monkeypatch):
    """Contract A was shown; B waits when "y" is typed."""
    folder = kit / "runs" / "first"
    waiting(folder)

    def swap(question):
        write_json(folder / "request.json", {**vars(OTHER), "words": ["More"], "account": []})
        return True

    monkeypatch.setattr("typer.confirm", swap)
    code, _, err = cosilo("approve", kit, "first")
    assert (code, "nothing was answered: read it again" in err) == (2, True)
    assert not approval.is_approved(folder, OTHER)
    assert not (folder / "approval.json").exists()


def test_where_nothing_waits_it_is_said(kit, cosilo):
    with pytest.raises(RunError, match="nothing waits for approval"):
        approval.request(kit / "runs" / "first")
    assert (
        "got no run 'frist' (did you mean 'first'?); wants one of first" in cosilo("approve", kit, "frist")[2]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_watchdog_ends_when_whoever_started_it_is_killed(tmp_path):
    """It lives as long as the other end of its pipe, and then ends the processes of the kits."""
    from cosilo.engines.flare.watchdog import watch

    child = os.fork()
    if child == 0:
        process = watch([tmp_path])
        (tmp_path / "pid").write_text(str(process.pid))
        time.sleep(60)
        os._exit(0)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.05)
    watchdog = int((tmp_path / "pid").read_text())
    assert os.path.exists(f"/proc/{watchdog}")  # noqa: PTH110
    os.kill(child, 9)
    os.waitpid(child, 0)
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{watchdog}") and not _gone(watchdog):  # noqa: PTH110
        assert time.monotonic() < end
        time.sleep(0.1)


def _gone(process: int) -> bool:
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0] == "Z"
