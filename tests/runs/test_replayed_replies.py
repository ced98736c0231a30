"""Replies in the journal: every reader verifies them, and those from before a crash are checked
like fresh ones."""

import shutil
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, Federation, Method, Run, Silo, step
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage, RunError
from cosilo.protocol.carrier import Answer
from cosilo.protocol.wire import encode
from cosilo.runs.durable_files import as_line, from_line, read_json, read_lines
from cosilo.runs.journal import Arrival, Entry, Journal, replies_in

X, Y = load_digits(return_X_y=True)
X = X[:, 18:22]


def federation() -> Federation:
    starts = {"north": 0, "south": 60, "west": 120}
    silos = [
        Silo(name, X[start : start + 60], Y[start : start + 60], GaussianNB())
        for name, start in starts.items()
    ]
    return Federation(silos, X[1000:1030], CoFED())


class Stop(Exception):
    pass


def stop_after_two_votes():
    votes = []

    def watch(event):
        if event.what == "reply" and event.facts["step"] == "label":
            votes.append(event.facts["silo"])
            if len(votes) == 2:
                raise Stop

    return watch


def outcome(run: Run) -> dict:
    return {key: run.result[key] for key in ("scores", "voting", "tasks", "failures")}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> tuple[Path, dict]:
    """A run that stopped with two of three votes in its journal, and what it comes to when it resumes."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Stop):
        federation().run(folder / "run", observers=[stop_after_two_votes()])
    return folder / "run", outcome(federation().run(folder / "whole"))


def label_folder(run: Path) -> Path:
    (found,) = (run / "journal").glob("*-label")
    return found


def flip(path: Path, place: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def test_a_vote_that_changed_in_the_journal_is_named(stopped, tmp_path):
    """Two bits of every byte that two silos said, lines included, before the request was completed."""
    run, whole = stopped
    size = (label_folder(run) / "small").stat().st_size
    for place in range(0, size, 7):
        shutil.copytree(run, tmp_path / "run")
        flip(label_folder(tmp_path / "run") / "small", place, place % 8)
        with pytest.raises(RunError, match=r"-label/small: is damaged"):
            federation().run(tmp_path / "run")
        shutil.rmtree(tmp_path / "run")
    shutil.copytree(run, tmp_path / "run")
    assert outcome(federation().run(tmp_path / "run")) == whole


def test_votes_and_late_silos_get_only_replies_that_are_as_they_came(stopped, tmp_path, cosilo):
    shutil.copytree(stopped[0], tmp_path / "run")
    run = federation().run(tmp_path / "run")
    known = {step: run.last_replies(step) for step in ("hello", "label")}
    assert sorted(known["label"]) == ["north", "south", "west"]
    small = label_folder(run.folder) / "small"
    kept = small.read_bytes()
    for place in range(0, len(kept), 11):
        flip(small, place, place % 8)
        with pytest.raises(RunError, match=r"-label/small: is damaged"):
            run.last_replies("label")
        code, out, err = cosilo("votes", run.folder)
        assert (code, out) == (2, "")
        assert err.splitlines()[-1].startswith(f"error: {small}: is damaged")
        small.write_bytes(kept)
    small.write_bytes(kept[:-1])  # the others' votes alone would elect something else
    with pytest.raises(RunError, match=r"small: is damaged \(no reply of 'west'\)"):
        run.last_replies("label")
    small.unlink()
    with pytest.raises(RunError, match=r"small: is damaged \(no reply of 'north'\)"):
        run.last_replies("label")


def without_checksums(folder: Path) -> None:
    """Make the folder of a request what was written before lines had checksums of replies."""
    small, lines = folder / "small", b""
    rest = small.read_bytes()
    while rest:
        line, _, rest = rest.partition(b"\n")
        about = from_line(line)
        if about.get("file"):
            continue
        kept = {key: about[key] for key in ("silo", "bytes")}
        lines += as_line(kept).encode() + rest[: about["bytes"]]
        rest = rest[about["bytes"] :]
    small.write_bytes(lines)


def test_votes_of_an_older_version_are_asked_for_again_unless_their_request_was_completed(stopped, tmp_path):
    run, whole = stopped
    shutil.copytree(run, tmp_path / "run")
    for folder in (tmp_path / "run/journal").iterdir():
        without_checksums(folder)
    again = federation().run(tmp_path / "run")
    assert outcome(again) == whole
    asked = [event for event in again.events() if event["event"] == "ask" and event["step"] == "label"]
    assert [event["silos"] for event in asked] == 2 * [["north", "south", "west"]]
    assert sum(line.get("again", False) for line in read_lines(again.audit_path("north"))) == 1
    assert sorted(again.last_replies("label")) == ["north", "south", "west"]


def test_a_vote_of_an_older_version_that_changed_does_not_count(stopped, tmp_path):
    run, whole = stopped
    shutil.copytree(run, tmp_path / "run")
    without_checksums(label_folder(tmp_path / "run"))
    flip(label_folder(tmp_path / "run") / "small", -3, 1)
    assert outcome(federation().run(tmp_path / "run")) == whole


@pytest.fixture
def older(tmp_path) -> Path:
    """A finished run, and the journal of an unfinished one, by the code of 19 November 2026."""
    shutil.unpack_archive(
        Path(__file__).with_name("runs_without_checksums_of_replies.zip"), tmp_path / "older"
    )
    return tmp_path / "older"


def test_a_finished_run_of_the_version_before_is_read_with_the_checksums_of_its_requests(older, cosilo):
    run = Run.open(older / "finished")
    votes = run.last_replies("label")
    assert {name: len(reply.array("votes")) for name, reply in votes.items()} == {"north": 30, "south": 30}
    assert cosilo("votes", run.folder)[0] == 0
    assert "relative" in run.report().read_text()
    flip(label_folder(run.folder) / "small", -1, 0)
    with pytest.raises(RunError, match=r"small: is damaged \(its checksum differs\)"):
        run.last_replies("label")


def test_an_unfinished_request_of_the_version_before_has_no_replies(older):
    journal = Journal(older / "unfinished/journal")
    assert sorted(replies_of(journal, 3, "evaluate")) == ["north", "south"]
    entry = journal.entry(4, "label", ["north", "south"])
    assert (older / "unfinished/journal/00004-label/small").stat().st_size > 0
    assert (entry.there, replies_in(entry.folder)) == (set(), {})


def replies_of(journal: Journal, number: int, step: str) -> dict[str, bytes]:
    entry = journal.entry(number, step, ["north", "south"])
    assert entry.done
    return {name: entry.content(name) for name in entry.arrivals}


class Counting(Method):
    """One request."""

    name: ClassVar[str] = "counting"

    def coordinate(self, silos):
        silos.ask("count")

    @step(size="size")
    def count(self, silo):
        return {"size": 1}


class Sizes:
    """A carrier whose silos answer with a size, and which counts what it was asked for."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes, self.asked = sizes, []

    def call(self, silos, asks, timeout):
        for name in silos:
            last = asks(name).last
            self.asked.append((asks(name).number, name, 0 if last is None else last.number))
            yield Answer(name, encode({"size": self.sizes[name]}), seconds=0.25)


def sizes_from(folder: Path, carrier: Sizes, largest: int) -> tuple[dict[str, int], list[str]]:
    def valid(silo, reply):
        if reply.integer("size") > largest:
            raise BadMessage("too large")

    told = []
    silos = Silos(["a", "b"], Counting(), carrier, Journal(folder / "journal"), [told.append], quorum=0.5)
    replies = silos.ask("count", valid=valid)
    texts = [str(event.facts["text"]) for event in told if event.what == "failure"]
    return {name: reply.integer("size") for name, reply in replies.items()}, texts


def test_a_reply_from_before_a_crash_is_held_against_what_the_method_expects(tmp_path):
    sizes_from(tmp_path, Sizes({"a": 1, "b": 9}), largest=9)
    (tmp_path / "journal/00001-count/done.json").unlink()
    carrier = Sizes({"a": 1, "b": 9})
    found, texts = sizes_from(tmp_path, carrier, largest=3)
    assert (found, carrier.asked) == ({"a": 1}, [])
    assert texts == ["silo 'b': its reply was rejected: too large"]
    done = read_json(tmp_path / "journal/00001-count/done.json")
    assert (list(done["arrivals"]), list(done["failures"])) == (["a"], ["b"])


def test_a_reply_from_before_a_crash_keeps_what_was_known_of_it(tmp_path):
    sizes_from(tmp_path, Sizes({"a": 1, "b": 2}), largest=9)
    path = tmp_path / "journal/00001-count/done.json"
    before = read_json(path)
    path.unlink()
    sizes_from(tmp_path, Sizes({}), largest=9)
    after = read_json(path)
    assert after["arrivals"] == before["arrivals"]
    assert [one["seconds"] for one in after["arrivals"].values()] == [0.25, 0.25]
    assert after["received"] == before["received"]
    assert after["sent"] == before["sent"]


def test_no_damage_to_a_reply_comes_out_of_an_entry(tmp_path):
    """Two bits of every byte of an index: a small reply, the line of a large one, a small reply."""
    large = encode({"votes": np.zeros(70_000, np.int8)})
    contents = {"a": encode({"size": 1}), "b": large, "c": encode({"size": 3})}
    journal = Journal(tmp_path / "j")
    entry = journal.entry(1, "label", list("abc"))
    for name, content in contents.items():
        entry.keep(name, content, Arrival(0.5, {}))
    small = entry.folder / "small"
    whole = small.read_bytes()
    assert len(whole) < 1000
    for completed in (False, True):
        if completed:
            journal.close(entry)
        for place in range(len(whole)):
            for bit in range(place % 4, 8, 4):
                flip(small, place, bit)
                with pytest.raises(RunError, match=r"00001-label/small: is damaged"):
                    read_all(entry.folder)
                small.write_bytes(whole)
        assert read_all(entry.folder) == contents
        flip(entry.folder / "b.safetensors", 69_000, 3)
        with pytest.raises(RunError, match=r"b\.safetensors: is damaged \(its checksum differs\)"):
            read_all(entry.folder)
        flip(entry.folder / "b.safetensors", 69_000, 3)


def read_all(folder: Path) -> dict[str, bytes]:
    assert replies_in(folder).keys() <= set("abc")
    entry = Entry(folder, 1, "label", list("abc"))
    assert entry.there == set("abc")
    return {name: entry.content(name) for name in sorted(entry.there)}


def test_an_entry_cut_short_anywhere_has_only_whole_replies(tmp_path):
    entry = Journal(tmp_path / "j").entry(1, "label", list("ab"))
    contents = {"a": encode({"size": 1}), "b": encode({"size": 2})}
    for name, content in contents.items():
        entry.keep(name, content, Arrival(0.5, {}))
    small = entry.folder / "small"
    whole = small.read_bytes()
    for end in range(len(whole)):
        small.write_bytes(whole[:end])
        found = replies_in(entry.folder)
        assert found == {name: contents[name] for name in found}
        assert sorted(found) == ["a"] * (end >= len(whole) // 2)
