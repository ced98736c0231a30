"""The silo's end of a job, without FLARE around it: what it never lets out, and what it does not do."""

import time
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from cosilo import Local
from cosilo.engines.flare.kit_settings import KitSettings, write_kit_settings
from cosilo.errors import ConfigError, RunError
from cosilo.protocol.contract import Contract
from cosilo.protocol.wire import encode
from cosilo.runs.durable_files import read_lines
from cosilo.runs.locks import locked

pytest.importorskip("nvflare")
from cosilo.engines.flare import site as module
from cosilo.engines.flare.site import Site
from cosilo.protocol.carrier import Answer, Failure, FailureKind

CONTRACT = Contract.of(Local())
NOTHING = encode({})


@pytest.fixture
def coordinator_asks(monkeypatch):
    monkeypatch.setattr(module, "_asked_by_coordinator", lambda: True)
    monkeypatch.setattr(module, "BUSY", 0.05)


@pytest.fixture(autouse=True)
def without_keys(monkeypatch):
    """Keys and certificates are tested in test_signing.py and with real processes."""
    monkeypatch.setattr(Site, "seals_of", lambda *_: None)


@pytest.fixture
def kit(tmp_path):
    (tmp_path / "kit" / "local").mkdir(parents=True)
    data = "\n".join(f"{n % 7},{n % 5},{'ab'[n % 2]}" for n in range(40))
    (tmp_path / "north.csv").write_text(f"x,y,kind\n{data}\n")
    (tmp_path / "north.toml").write_text(
        'name = "north"\npath = "north.csv"\nlabel = "kind"\n'
        'learner = { use = "sklearn.tree.DecisionTreeClassifier" }\n'
    )
    write_kit_settings(
        tmp_path / "kit", KitSettings(runs=str(tmp_path / "runs"), silo=str(tmp_path / "north.toml"))
    )
    return tmp_path / "kit"


def opened(kit: Path, name: str = "north") -> Site:
    site = Site("a-run", CONTRACT.values(), "")
    site._steps.submit(site._open, name, kit).result()
    return site


def answer(site: Site, number: int, step: str) -> Answer:
    site.answer(number, step, NOTHING, CONTRACT.hash)
    return site._answers[number].result(10)


@pytest.mark.parametrize("run", ["../other", "/etc", "..", "", "a/b", "a\n", ".hidden"])
def test_the_name_of_a_run_does_not_lead_out_of_the_folder(run):
    with pytest.raises(ConfigError, match="expected letters, digits"):
        Site(run, CONTRACT.values(), "")


def test_a_step_is_done_once_and_a_repeated_ask_gets_the_same_answer(kit, coordinator_asks):
    site = opened(kit)
    first = answer(site, 1, "hello")
    assert isinstance(first.content, bytes)
    reply = {"reply": first.content, "seconds": first.seconds, "seal": first.seal.values()}
    assert site.answer(1, "hello", NOTHING, CONTRACT.hash) == site.wait(1) == reply


def test_other_bytes_under_the_same_number_are_another_request(kit, coordinator_asks):
    """They come to the silo's log, and are not answered with what the first ones were answered with."""
    site = opened(kit)
    first = answer(site, 1, "hello")
    for number, step, body in [(1, "hello", encode({"more": 1})), (1, "train", NOTHING), (1, "hello", b"")]:
        site.answer(number, step, body, CONTRACT.hash)
        told = site._answers[1].result(10).content
        assert told.text == "silo 'north': request 1 came a second time with different content"
    site.answer(1, "hello", NOTHING, "0" * 64)
    assert "came with another contract" in site._answers[1].result(10).content.text
    assert answer(site, 1, "hello").content == first.content
    lines = read_lines(kit.parent / "runs" / "a-run" / "audit.jsonl")
    assert [line["way"] for line in lines] == ["in", "out"] * 6


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ('shares = ["metrics"]\n[allow]\nmethods = ["cofed"]\n', "does not allow local; it allows cofed"),
        ('shares = ["metrics"]\n[allow]\nparameters = { epochs = 5 }\n', None),
    ],
)
def test_nobody_is_asked_about_a_run_that_is_refused_anyway(kit, coordinator_asks, monkeypatch, file, line):
    asked = []
    monkeypatch.setattr(module.approval, "wait_for", lambda *given: asked.append(given))
    monkeypatch.setattr(module, "address", lambda kit: ("10.0.0.1", 8002))
    path = kit.parent / "north.toml"
    path.write_text(path.read_text() + file + 'approve = "ask"\n')
    found = answer(opened(kit), 1, "hello").content
    if line is None:
        assert len(asked) == 1
        assert "is not approved under the limits" in found.text  # nobody said yes
    else:
        assert (found.kind, asked) == (FailureKind.REFUSED, [])
        assert line in found.text


def test_a_silo_that_is_not_ready_yet_says_so(kit, coordinator_asks):
    site, go = Site("a-run", CONTRACT.values(), ""), Event()
    site._steps.submit(go.wait)
    site._steps.submit(site._open, "north", kit)
    assert site.answer(1, "hello", NOTHING, CONTRACT.hash) == {"opening": True}
    go.set()
    assert isinstance(site._answers[1].result(10).content, bytes)


def test_only_the_coordinator_may_ask(kit, monkeypatch):
    site = opened(kit)
    monkeypatch.setattr(module, "collab", SimpleNamespace(caller="south"))
    refused = {"failure": ["refused", "only the coordinator may ask"]}
    assert site.answer(1, "hello", NOTHING, CONTRACT.hash) == refused
    assert site.wait(1) == refused
    assert site._answers == {}


@pytest.mark.parametrize("wrong", [(1, "hello", "text"), (1, ["hello"], b""), ("1", "hello", b"")])
def test_anything_but_a_number_a_step_and_bytes_is_refused(kit, coordinator_asks, wrong):
    site = opened(kit)
    site.answer(*wrong)
    assert site._answers[wrong[0]].result(10).content == Failure(
        FailureKind.REFUSED, "silo 'north': expected a number, a step, bytes and the hash of a contract"
    )


def test_why_a_silo_cannot_take_part_stays_there(kit, tmp_path, coordinator_asks):
    (tmp_path / "north.csv").unlink()
    site = opened(kit)
    told = Failure(FailureKind.ERROR, "silo 'north': cannot take part; its own log says why")
    assert answer(site, 1, "hello").content == told
    assert "north.csv: no such file or folder" in (tmp_path / "runs" / "a-run" / "log.txt").read_text()


def test_a_failure_is_told_in_plain_words(kit, coordinator_asks):
    """FLARE carries texts, and refuses to read anything of a type that it does not know."""
    site = opened(kit)
    answer(site, 1, "steal")
    kind, text = site.wait(1)["failure"]
    assert (type(kind), kind) == (str, "refused")
    assert text == "silo 'north': local has no step 'steal'"


def test_a_kit_takes_part_with_its_own_silo_only(kit, tmp_path, coordinator_asks):
    site = opened(kit, "south")
    told = Failure(FailureKind.ERROR, "silo 'south': cannot take part; its own log says why")
    assert answer(site, 1, "hello").content == told
    log = (tmp_path / "runs" / "a-run" / "log.txt").read_text()
    assert "name: got 'north'; expected 'south', which the kit is made for" in log


def test_what_fails_outside_a_step_stays_there_too(kit, tmp_path, coordinator_asks, monkeypatch):
    """Such as a full disk; the line names the silo's folders, and so does a traceback."""
    site = opened(kit)

    def full(*_):
        raise RunError(f"{tmp_path}: the disk is full")

    monkeypatch.setattr(site._boundary, "answer", full)
    told = Failure(FailureKind.ERROR, "silo 'north': cannot continue; its own log says why")
    assert answer(site, 1, "hello").content == told
    assert "the disk is full" in (tmp_path / "runs" / "a-run" / "log.txt").read_text()
    monkeypatch.undo()
    monkeypatch.setattr(module, "_asked_by_coordinator", lambda: True)
    # Its record and its memory may differ: not before the next job.
    assert answer(site, 2, "hello").content == told


def test_an_ask_that_nobody_waits_for_any_more_is_not_computed(kit, coordinator_asks, monkeypatch):
    site = opened(kit)
    done = []

    def slow(ask):
        time.sleep(0.3)
        done.append(ask.number)
        return Answer("north", b"")

    monkeypatch.setattr(site._boundary, "answer", slow)
    assert site.answer(1, "alone", b"", CONTRACT.hash) == {"busy": True}
    assert site.answer(2, "evaluate", b"", CONTRACT.hash) == {"busy": True}
    assert site.answer(3, "evaluate", b"", CONTRACT.hash) == {"busy": True}
    assert site._answers[3].result(10).content == b""
    assert done == [1, 3]


def test_a_job_that_is_over_lets_go_of_the_record(kit, tmp_path):
    site = opened(kit)
    with (
        pytest.raises(RunError, match="is working on this run"),
        locked(tmp_path / "runs/a-run", patience=0.1),
    ):
        pass
    site.close()
    with locked(tmp_path / "runs/a-run", patience=0.1):
        pass
