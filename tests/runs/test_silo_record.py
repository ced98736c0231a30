"""A silo's own record: what a step changed is there after a crash, and nothing that was not completed."""

import os
import signal
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from cosilo import Federation
from cosilo.engines.local.engine import LocalEngine
from cosilo.engines.local.in_process import open_boundary
from cosilo.errors import RunError
from cosilo.methods import Method, step
from cosilo.protocol.carrier import Ask
from cosilo.protocol.stage import LOCAL, Measure
from cosilo.protocol.wire import decode, encode
from cosilo.runs.audit import outgoing
from cosilo.runs.kept_models import model_bytes
from cosilo.runs.silo_record import SiloRecord

EMPTY = encode({})


class Noting(Method):
    """Its step does nothing but write a note; the third one kills its process, once."""

    name: ClassVar[str] = "noting"

    def coordinate(self, silos):
        for _ in range(4):
            last = silos.ask("note", quorum=1.0)
        assert {reply.integer("seen") for reply in last.values()} == {4}

    @step(seen="size")
    def note(self, silo):
        seen = silo.notes.integer("seen") + 1 if "seen" in silo.notes else 1
        silo.notes["seen"] = seen
        if seen == 3 and silo.name == "bayes" and not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"seen": seen}

    @step()
    def look(self, silo):
        """Change nothing."""

    @step()
    def train(self, silo):
        silo.fit(LOCAL)

    @step()
    def fail(self, silo):
        silo.notes["seen"] = 99
        raise ValueError


def test_a_note_that_is_all_a_step_wrote_survives_a_kill(tmp_path, silos, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run():
        members = silos(shares=["size"])
        return Federation(members, method=Noting(), engine=LocalEngine(workers=1)).run("run")

    finished = run()  # the worker dies once, is started again, and is asked once more
    assert {name: silo.notes.integer("seen") for name, silo in finished.silos.items()} == {
        "tree": 4,
        "bayes": 4,
        "nearest": 4,
    }


def reopened(silos, folder):
    silo = silos(shares=["size"])[0]
    return silo, open_boundary(silo, Noting(), 0, folder)


def test_a_state_is_written_only_by_a_step_that_changed_something(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    for number, name in enumerate(["look", "note", "look", "look"], start=1):
        assert isinstance(border.answer(Ask(number, name, EMPTY)).content, bytes)
    assert [path.name for path in (tmp_path / "states").iterdir()] == ["00002"]
    (kept,) = (tmp_path / "replies").iterdir()
    assert kept.name.startswith("00004-")


def test_model_scores_and_notes_come_back(tmp_path, silos):
    silo, border = reopened(silos, tmp_path)
    for number, name in enumerate(["train", "note"], start=1):
        border.answer(Ask(number, name, EMPTY))
    again, _ = reopened(silos, tmp_path)
    assert again.trained
    assert dict(again.notes) == {"seen": 1}
    assert again.scores == silo.scores
    assert again.scores[LOCAL][Measure.OWN].instances == 15
    X = silo.data.train[0]
    np.testing.assert_array_equal(again.predict(X), silo.predict(X))
    assert model_bytes(tmp_path) > 0


def test_a_step_that_failed_or_was_cut_short_did_not_happen(tmp_path, silos):
    silo, border = reopened(silos, tmp_path)
    border.answer(Ask(1, "note", EMPTY))
    border.answer(Ask(2, "fail", EMPTY))
    assert dict(silo.notes) == {"seen": 1}
    # Killed when the state was written and the reply was not.
    (tmp_path / "states/00003").mkdir()
    again, border = reopened(silos, tmp_path)
    assert dict(again.notes) == {"seen": 1}
    assert decode(border.answer(Ask(3, "note", EMPTY)).content) == {"seen": 2}
    assert not (tmp_path / "states/00001").exists()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff"])
def test_a_damaged_state_is_named(tmp_path, silos, damage):
    _, border = reopened(silos, tmp_path)
    border.answer(Ask(1, "note", EMPTY))
    (tmp_path / "states/00001/state.json").write_bytes(damage)
    with pytest.raises(RunError, match=r"states/00001.*is damaged"):
        reopened(silos, tmp_path)


def test_a_reply_that_was_sent_and_is_gone_is_named(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    border.answer(Ask(1, "note", EMPTY))
    next((tmp_path / "replies").glob("00001-*")).unlink()
    with pytest.raises(RunError, match="replies/00001: is missing, though it was sent"):
        SiloRecord(tmp_path)


def test_what_is_sent_again_is_logged_again_as_that(tmp_path, silos):
    for _ in range(2):
        _, border = reopened(silos, tmp_path)
        border.answer(Ask(1, "note", EMPTY))
    assert [entry.get("again", False) for entry in outgoing(tmp_path / "audit.jsonl")] == [False, True]


def test_a_damaged_reply_is_named(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    border.answer(Ask(1, "note", EMPTY))
    (kept,) = (tmp_path / "replies").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"\0")
    _, border = reopened(silos, tmp_path)
    with pytest.raises(RunError, match=r"replies/00001-.*: is damaged \(its checksum differs\)"):
        border.answer(Ask(1, "note", EMPTY))


def test_a_model_that_did_not_change_is_not_written_again(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    for number, name in enumerate(("train", "note", "train"), start=1):
        border.answer(Ask(number, name, EMPTY))
        if number == 2:
            again = tmp_path / "states/00002/model/model.skops"
            assert again.samefile(tmp_path / "local/model.skops")
            first = again.stat().st_ino
    assert (tmp_path / "states/00003/model/model.skops").stat().st_ino != first
    restored, _ = reopened(silos, tmp_path)
    assert restored.trained
