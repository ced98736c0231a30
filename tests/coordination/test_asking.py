"""Asks and what becomes of the answers: an ask says which one the silo answered last."""

import shutil
from typing import ClassVar

import pytest

from cosilo import Federation, Method, step
from cosilo.coordination.asking import TooFew
from cosilo.coordination.coordinator import Silos
from cosilo.errors import RunError
from cosilo.protocol.carrier import Answer, Failure, FailureKind
from cosilo.protocol.message import encode
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
            self.after.append((ask.number, name, ask.after))
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
