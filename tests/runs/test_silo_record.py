"""A silo's own record: what a step changed is there after a crash, and nothing that was not completed."""

import os
import signal
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from boundaries import asked, opened

from cosilo import Federation
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import RunError
from cosilo.methods import Method, step
from cosilo.protocol.seal import Seal
from cosilo.protocol.stage import LOCAL, Measure, Score
from cosilo.protocol.wire import decode, encode
from cosilo.runs.audit import outgoing
from cosilo.runs.kept_models import model_bytes
from cosilo.runs.silo_state import last_state

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

    @step(votes="labels")
    def much(self, silo):
        return {"votes": np.zeros(100_000, np.int8)}

    written: ClassVar = None

    @step()
    def write(self, silo):
        """Whatever a test wants."""
        self.written(silo)

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
        members = silos(shares=["size", "labels"])
        return Federation(members, method=Noting(), engine=LocalEngine(workers=1)).run("run")

    finished = run()  # the worker dies once, is started again, and is asked once more
    assert {name: silo.notes.integer("seen") for name, silo in finished.silos.items()} == {
        "tree": 4,
        "bayes": 4,
        "nearest": 4,
    }


def reopened(silos, folder):
    silo = silos(shares=["size", "labels"])[0]
    return silo, opened(silo, Noting(), folder)


def test_a_record_has_one_state_and_does_not_grow(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    for number, name in enumerate(["look", "note", "look", "look"], start=1):
        assert isinstance(asked(border, number, name, EMPTY).content, bytes)
    assert sorted(path.name for path in tmp_path.glob("state*")) == ["state-00004", "state.old"]
    assert not list(tmp_path.glob("*-*/"))
    assert dict(last_state(tmp_path).noted()) == {"seen": 1}


def test_a_state_is_written_over_the_one_before_the_last(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    for number in (1, 2, 3, 4):
        asked(border, number, "note", EMPTY)
        if number == 2:
            first = (tmp_path / "state.old").stat().st_ino
    assert (tmp_path / "state.old").stat().st_ino == first
    assert dict(last_state(tmp_path).noted()) == {"seen": 4}


def test_model_scores_and_notes_come_back(tmp_path, silos):
    silo, border = reopened(silos, tmp_path)
    for number, name in enumerate(["train", "note"], start=1):
        asked(border, number, name, EMPTY)
    again, _ = reopened(silos, tmp_path)
    assert again.trained
    assert dict(again.notes) == {"seen": 1}
    assert again.scores == silo.scores
    assert again.scores[LOCAL][Measure.OWN].instances == 15
    X = silo.data.train[0]
    np.testing.assert_array_equal(again.predict(X), silo.predict(X))
    assert model_bytes(tmp_path) > 0


@pytest.mark.parametrize(
    ("write", "notes"),
    [
        (lambda silo: silo.notes.__setitem__("seen", 2), {"seen": 2}),
        (lambda silo: silo.notes.update(seen=2), {"seen": 2}),
        (lambda silo: silo.notes.setdefault("more", 1), {"seen": 1, "more": 1}),
        (lambda silo: silo.notes.pop("seen"), {}),
        (lambda silo: silo.notes.clear(), {}),
        (lambda silo: silo.scores.take(LOCAL, Measure.OWN, Score(0.5, 2)), {"seen": 1}),
    ],
)
def test_whatever_a_step_writes_is_saved_and_nobody_has_to_say_so(tmp_path, silos, monkeypatch, write, notes):
    monkeypatch.setattr(Noting, "written", staticmethod(write))
    silo, border = reopened(silos, tmp_path)
    for number, name in enumerate(["note", "write"], start=1):
        assert isinstance(asked(border, number, name, EMPTY).content, bytes)
    again, _ = reopened(silos, tmp_path)
    assert dict(again.notes) == notes
    assert again.scores == silo.scores


def test_a_step_that_failed_or_was_cut_short_did_not_happen(tmp_path, silos):
    silo, border = reopened(silos, tmp_path)
    asked(border, 1, "note", EMPTY)
    asked(border, 2, "fail", EMPTY)
    assert dict(silo.notes) == {"seen": 1}
    # Killed when the model and half of the state were written.
    (tmp_path / "model-00003").mkdir()
    (tmp_path / "state-00003.part").write_bytes((tmp_path / "state-00001").read_bytes()[:100])
    again, border = reopened(silos, tmp_path)
    assert dict(again.notes) == {"seen": 1}
    assert decode(asked(border, 3, "note", EMPTY).content) == {"seen": 2}
    assert sorted(path.name for path in tmp_path.glob("*-*")) == ["state-00003"]


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b"[]\n", b"null\nx"])
def test_a_damaged_state_is_named(tmp_path, silos, damage):
    _, border = reopened(silos, tmp_path)
    asked(border, 1, "note", EMPTY)
    (tmp_path / "state-00001").write_bytes(damage)
    with pytest.raises(RunError, match=r"state-00001: is damaged"):
        reopened(silos, tmp_path)


def test_a_state_that_was_told_of_and_is_gone_is_noticed(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    asked(border, 1, "note", EMPTY)
    (tmp_path / "state-00001").unlink()
    _, border = reopened(silos, tmp_path)
    assert "its record ends with ask 0" in asked(border, 2, "note", EMPTY, Seal(1)).content.text


def test_what_is_sent_again_is_logged_again_as_that(tmp_path, silos):
    for _ in range(2):
        _, border = reopened(silos, tmp_path)
        asked(border, 1, "note", EMPTY)
    assert [entry.get("again", False) for entry in outgoing(tmp_path / "audit.jsonl")] == [False, True]


def test_a_damaged_reply_is_named(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    asked(border, 1, "note", EMPTY)
    (tmp_path / "state-00001").write_bytes((tmp_path / "state-00001").read_bytes()[:-1] + b"\0")
    with pytest.raises(RunError, match=r"state-00001: is damaged \(its checksum differs\)"):
        reopened(silos, tmp_path)


def test_a_large_reply_has_a_file_to_itself(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    answer = asked(border, 1, "much", EMPTY)
    assert answer.file == tmp_path / "reply-00001"
    assert answer.file.read_bytes() == answer.content
    _, border = reopened(silos, tmp_path)
    assert asked(border, 1, "much", EMPTY).content == answer.content
    answer.file.write_bytes(answer.content[:-1] + b"\1")
    _, border = reopened(silos, tmp_path)
    with pytest.raises(RunError, match=r"reply-00001: is damaged \(its checksum differs\)"):
        asked(border, 1, "much", EMPTY)
    answer.file.unlink()
    with pytest.raises(RunError, match="reply-00001: is missing"):
        asked(border, 1, "much", EMPTY)


def test_a_large_reply_is_written_over_the_last_one_but_not_where_that_has_another_name(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    files = []
    for number, name in enumerate(["much", "much", "note", "much", "much"], start=1):
        answer = asked(border, number, name, EMPTY)
        if name == "much":
            assert answer.file.read_bytes() == answer.content
            files.append(answer.file.stat().st_ino)
        if number == 4:
            os.link(answer.file, tmp_path / "journalled")
    assert files[0] == files[1] == files[2] != files[3]
    assert sorted(path.name for path in tmp_path.glob("reply*")) == ["reply-00005"]


@pytest.mark.parametrize(("name", "left"), [("much", ["reply-00002"]), ("note", [])])
def test_killed_while_the_last_large_reply_is_written_over(tmp_path, silos, name, left):
    _, border = reopened(silos, tmp_path)
    asked(border, 1, "much", EMPTY)
    (tmp_path / "reply-00001").rename(tmp_path / "reply-00002.part")
    _, border = reopened(silos, tmp_path)
    assert isinstance(asked(border, 2, name, EMPTY, Seal(1)).content, bytes)
    assert sorted(path.name for path in tmp_path.glob("reply*")) == left


def test_a_model_that_did_not_change_is_not_written_again(tmp_path, silos):
    _, border = reopened(silos, tmp_path)
    for number, name in enumerate(("train", "note", "train"), start=1):
        asked(border, number, name, EMPTY)
        if number == 2:
            assert last_state(tmp_path).models == {"model": "model-00001", "local": "model-00001"}
    assert last_state(tmp_path).models == {"model": "model-00003", "local": "model-00003"}
    assert [path.name for path in tmp_path.glob("model-*")] == ["model-00003"]
    restored, _ = reopened(silos, tmp_path)
    assert restored.trained
