"""Asks and what becomes of the answers: an ask says which one the silo answered last."""

import shutil
from typing import ClassVar

import numpy as np
import pytest

from cosilo import Federation, Method, step
from cosilo.coordination.asking import TooFew
from cosilo.coordination.coordinator import Silos
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import RunError
from cosilo.protocol.carrier import Answer, Failure, FailureKind
from cosilo.protocol.seal import Seal
from cosilo.protocol.wire import decode, encode
from cosilo.runs.journal import Journal


class Counting(Method):
    """Four asks that change something, with something that may happen after each."""

    name: ClassVar[str] = "counting"

    def coordinate(self, silos):
        for number in range(4):
            silos.ask("count")
            self.between(number)

    def between(self, number):
        """Nothing, here."""

    @step(size="size")
    def count(self, silo):
        silo.notes["seen"] = silo.notes.integer("seen") + 1 if "seen" in silo.notes else 1
        return {"size": 1}


class Told:
    """A carrier that remembers after which ask each ask was sent; silo b does not answer the first."""

    def __init__(self):
        self.after = []

    def call(self, silos, asks, timeout):
        for name in silos:
            ask = asks(name)
            self.after.append((ask.number, name, 0 if ask.last is None else ask.last.number))
            lost = name == "b" and ask.number == 1
            yield Answer(name, Failure(FailureKind.LOST, "gone") if lost else encode({"size": 1}))


def asked(folder, times):
    carrier = Told()
    silos = Silos(["a", "b"], Counting(), carrier, Journal(folder / "journal"))
    for number in range(1, times + 1):
        silos.ask("count")
        if number == 2 and silos.marked is None:
            silos.mark(round=1)
    return carrier.after


def test_an_ask_carries_the_number_of_the_last_one_that_the_silo_answered(tmp_path):
    assert asked(tmp_path, 3) == [
        (1, "a", 0),
        (1, "b", 0),
        (2, "a", 1),
        (2, "b", 0),  # it did not answer the first
        (3, "a", 2),
        (3, "b", 2),
    ]


def test_a_coordinator_that_was_restarted_knows_it_too_even_of_asks_before_a_mark(tmp_path):
    asked(tmp_path, 2)
    carrier = Told()
    silos = Silos(["a", "b"], Counting(), carrier, Journal(tmp_path / "journal"))
    silos.go_on_from(2)
    silos.ask("count")
    assert carrier.after == [(3, "a", 2), (3, "b", 2)]


class Stating:
    """A carrier of one silo that fails once, with a seal; it remembers with which seals it was asked."""

    def __init__(self, content=None):
        self._content, self.last = content, []

    def call(self, silos, asks, timeout):
        ask = asks("a")
        self.last.append(ask.last)
        failed = int(isinstance(self._content, Failure))
        content, self._content = self._content, None
        seal = Seal(ask.number, "request", "reply", 2 * len(self.last) + 5 * bool(ask.last), "head", failed)
        yield Answer("a", content or encode({"size": 1}), seal=seal)


@pytest.mark.parametrize(
    "content", [Failure(FailureKind.REFUSED, "no"), encode({"size": "many"})], ids=["refused", "rejected"]
)
def test_what_a_silo_stated_with_a_failure_outlives_a_stop(tmp_path, content):
    """The request was not completed, so the journal's log has no line about it."""
    first, second = Stating(content), Stating()
    with pytest.raises(TooFew):
        Silos(["a"], Counting(), first, Journal(tmp_path / "journal")).ask("count")
    silos = Silos(["a"], Counting(), second, Journal(tmp_path / "journal"))
    silos.ask("count")
    (stated,) = second.last
    assert first.last == [None]
    failed = int(isinstance(content, Failure))
    assert (stated.number, stated.length, stated.failed) == (1, 2, failed)
    # The reply came later: its seal is the last one, also for a coordinator that starts again.
    third = Stating()
    silos = Silos(["a"], Counting(), third, Journal(tmp_path / "journal"))
    silos.ask("count"), silos.ask("count")
    assert [(seal.number, seal.length, seal.failed) for seal in third.last] == [(1, 7, 0)]


def test_a_line_about_a_seal_that_a_crash_cut_short_does_not_count(tmp_path):
    failing = Stating(Failure(FailureKind.REFUSED, "no"))
    with pytest.raises(TooFew):
        Silos(["a"], Counting(), failing, Journal(tmp_path / "journal")).ask("count")
    (path,) = (tmp_path / "journal").rglob("seals.jsonl")
    path.write_bytes(path.read_bytes() + path.read_bytes()[:-20])
    second = Stating()
    Silos(["a"], Counting(), second, Journal(tmp_path / "journal")).ask("count")
    assert second.last[0].length == 2


def test_a_record_that_was_rolled_back_is_noticed_and_its_silo_named(tmp_path, silos, monkeypatch):
    """An old backup of one silo is put back while the run stands still."""
    run, record, backup = tmp_path / "run", tmp_path / "run/silos/tree", tmp_path / "backup"

    def between(self, number):
        if number == 0:
            shutil.copytree(record, backup)
        if number == 1:
            raise RunError("stopped by hand")

    monkeypatch.setattr(Counting, "between", between)
    with pytest.raises(RunError, match="stopped by hand"):
        Federation(silos(shares=["size"]), method=Counting()).run(run)
    shutil.rmtree(record)
    shutil.copytree(backup, record)
    monkeypatch.setattr(Counting, "between", lambda *_: None)
    found = Federation(silos(shares=["size"]), method=Counting()).run(run)
    texts = [one["text"] for one in found.result["failures"]]
    assert texts == 2 * [
        "silo 'tree': its record ends with ask 2, and it has answered ask 3: "
        "an older copy was put back; restore the newer one or start a new run"
    ]


def test_too_few_answers_are_named(tmp_path):
    silos = Silos(["a", "b"], Counting(), Told(), Journal(tmp_path / "journal"), quorum=1.0)
    with pytest.raises(TooFew, match="1 of 2 silos answered, the quorum is 2"):
        silos.ask("count")
    assert list(silos.failed) == ["b"]


class Came:
    """Remembers sizes in the order in which they are gathered."""

    def __init__(self):
        self.sizes = []

    def __call__(self, name, reply):
        self.sizes.append((name, reply.integer("size")))


class Shuffled:
    """A carrier whose silos answer in another order than they are asked, and of which one fails."""

    def __init__(self, order):
        self._order = order

    def call(self, silos, asks, timeout):
        for name in sorted(silos, key=self._order):
            asks(name)
            failed = Failure(FailureKind.LOST, "gone")
            yield Answer(name, failed if name == "s03" else encode({"size": int(name[1:]) + 1}))


@pytest.mark.parametrize("order", [str, lambda name: name[::-1], lambda name: -int(name[1:])])
def test_replies_are_gathered_in_the_order_of_the_silos_whenever_they_come(tmp_path, order):
    names = [f"s{place:02d}" for place in range(25)]
    expected = [(name, place + 1) for place, name in enumerate(names) if name != "s03"]
    for _ in range(2):  # the second time from the journal
        silos = Silos(names, Counting(), Shuffled(order), Journal(tmp_path / "journal"))
        came = Came()
        assert silos.ask("count", gather=came).gathered is came
        assert came.sizes == expected


def test_replies_from_before_a_crash_are_gathered_too(tmp_path):
    names = ["s00", "s01", "s02"]
    silos = Silos(names, Counting(), Shuffled(str), Journal(tmp_path / "journal"))
    silos.ask("count")
    (tmp_path / "journal/00001-count/done.json").unlink()
    small = tmp_path / "journal/00001-count/small"
    small.write_bytes(small.read_bytes()[:-1])  # the last one was not written whole
    silos, came = Silos(names, Counting(), Shuffled(str), Journal(tmp_path / "journal")), Came()
    silos.ask("count", gather=came)
    assert came.sizes == [("s00", 1), ("s01", 2), ("s02", 3)]


class Large(Method):
    """Replies so large that their files are written over, and no mark that drops those before."""

    name: ClassVar[str] = "large"

    def coordinate(self, silos):
        for number in range(5):
            silos.ask("send", {"number": number})
        silos.mark(round=1)
        for number in range(5):
            silos.ask("send", {"number": number})

    @step(numbers="similarity")
    def send(self, silo, number: int):
        return {"numbers": np.full(2**14, float(number))}


@pytest.mark.parametrize("workers", [0, 2])
def test_what_the_journal_has_stays_as_it_was_when_silos_reply_again(tmp_path, silos, workers):
    federation = Federation(silos(shares=["similarity"]), method=Large(), engine=LocalEngine(workers))
    run = federation.run(tmp_path / "run")
    for number in range(5):
        (folder,) = (tmp_path / "run/journal").glob(f"{run.asks()[-1]['number'] - 4 + number:05d}-send")
        for name in run.about["silos"]:
            assert (decode((folder / f"{name}.safetensors").read_bytes())["numbers"] == number).all()
