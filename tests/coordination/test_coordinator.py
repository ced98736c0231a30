"""The coordinator's side of an ask, over a carrier that says what a test wants it to say."""

from typing import ClassVar

import numpy as np
import pytest

from cosilo.coordination.asking import SilosDoNotFit, TooFew
from cosilo.coordination.coordinator import Silos
from cosilo.errors import BadMessage
from cosilo.methods import Method, step
from cosilo.protocol.carrier import Answer, Failure, FailureKind
from cosilo.protocol.events import Event
from cosilo.protocol.findings import Findings
from cosilo.protocol.scores import scores_out
from cosilo.protocol.stage import LOCAL, Measure, Score
from cosilo.protocol.wire import decode, encode
from cosilo.runs.durable_files import read_lines
from cosilo.runs.journal import Journal

NAMES = ["a", "b", "c", "d"]


class Counting(Method):
    name: ClassVar[str] = "counting"

    def coordinate(self, silos):
        pass

    @step(size="size")
    def count(self, silo):
        return {"size": 1}


class Told(Findings):
    rounds: int = 0


class Said:
    """A carrier whose silos say what they are told to; it remembers what went out."""

    def __init__(self, **sayings):
        self.sayings = sayings
        self.sent: list[tuple[int, str, dict]] = []

    def call(self, silos, asks, timeout):
        for name in silos:
            ask = asks(name)
            self.sent.append((ask.number, name, decode(ask.body)))
            said = self.sayings.get(name, {"size": 1})
            if ask.step == "hello":
                said = {"classes": ["x", "y"], "pool": "", "offers": ["metrics", "size"]}
            yield Answer(name, said if isinstance(said, Failure | bytes) else encode(said), 0.25)


def silos(tmp_path, carrier, **options) -> Silos:
    return Silos(NAMES, Counting(), carrier, Journal(tmp_path / "journal"), **options)


LOST = Failure(FailureKind.LOST, "silo 'b': gone")


def test_who_fails_or_says_something_else_is_left_out_and_named(tmp_path):
    carrier = Said(b=LOST, c={"size": 0}, d=b"nonsense")
    events: list[Event] = []
    asked = silos(tmp_path, carrier, observers=[events.append], quorum=0.25)
    replies = asked.ask("count")
    assert {name: reply.integer("size") for name, reply in replies.items()} == {"a": 1}
    assert {name: failure.kind for name, failure in replies.failures.items()} == {
        "b": "lost",
        "c": "rejected",
        "d": "rejected",
    }
    texts = [failure["text"] for failure in asked.findings["failures"]]
    assert (
        "silo 'c': its reply was rejected: field 'size': got 0; wants a whole number of at least 1" in texts
    )
    assert [event.what for event in events] == ["ask", "reply", "failure", "failure", "failure", "answered"]


@pytest.mark.parametrize(("quorum", "enough"), [(0.0, True), (0.5, True), (0.51, False), (1.0, False)])
def test_the_quorum_is_a_share_of_those_who_were_asked(tmp_path, quorum, enough):
    asked = silos(tmp_path, Said(b=LOST), quorum=quorum)
    if enough:
        assert list(asked.ask("count", to=["a", "b"])) == ["a"]
    else:
        with pytest.raises(
            TooFew, match="step 'count': 1 of 2 silos answered, the quorum is 2:\nsilo 'b': gone"
        ):
            asked.ask("count", to=["a", "b"])
        assert asked.failed == {"b": LOST}


def test_a_method_may_check_replies_further(tmp_path):
    def valid(name, reply):
        if reply.integer("size") > 5:
            raise BadMessage("that is too many")

    replies = silos(tmp_path, Said(c={"size": 6})).ask("count", valid=valid)
    assert replies.failures["c"].text == "silo 'c': its reply was rejected: that is too many"


def test_all_are_sent_the_same_or_each_its_own(tmp_path):
    carrier = Said()
    asked = silos(tmp_path, carrier)
    asked.ask("count", {"round": 7}, to=["b", "a"])
    asked.ask("count", each=lambda name: {"name": name}, to=["d"])
    assert carrier.sent == [(1, "a", {"round": 7}), (1, "b", {"round": 7}), (2, "d", {"name": "d"})]
    # What they were sent, in bytes: a digit; a letter and what makes it a text.
    sent = [line["sent"] for line in read_lines(tmp_path / "asks.jsonl")]
    assert sent == [{"a": 1, "b": 1}, {"d": 3}]


def test_what_was_sent_is_known_after_a_crash(tmp_path):
    def stop(event):
        if event.what == "reply" and event.facts["silo"] == "b":
            raise KeyboardInterrupt

    def each(name):
        return {"weights": np.zeros(2)} if name == "a" else {}

    with pytest.raises(KeyboardInterrupt):
        silos(tmp_path, Said(), observers=[stop]).ask("count", each=each)
    silos(tmp_path, Said()).ask("count", each=each)
    (line,) = read_lines(tmp_path / "asks.jsonl")
    assert line["sent"] == {"a": 16, "b": 0, "c": 0, "d": 0}


def test_an_ask_that_was_completed_is_answered_from_disk(tmp_path):
    silos(tmp_path, Said(b=LOST)).ask("count")
    carrier = Said()
    replies = silos(tmp_path, carrier).ask("count")
    assert carrier.sent == []
    assert list(replies) == ["a", "c", "d"]
    assert replies.failures == {"b": LOST}


def test_of_an_ask_that_was_not_completed_only_the_missing_are_asked(tmp_path):
    with pytest.raises(TooFew):
        silos(tmp_path, Said(b=LOST, c=LOST), quorum=1.0).ask("count")
    carrier = Said()
    assert list(silos(tmp_path, carrier, quorum=1.0).ask("count")) == NAMES
    assert [name for _, name, _ in carrier.sent] == ["b", "c"]


def test_a_resumed_run_goes_on_from_its_mark_with_state_findings_and_chance(tmp_path):
    def begun():
        carrier = Said()
        asked = silos(tmp_path, carrier, seed=5)
        asked.meet()
        return asked, carrier

    first, _ = begun()
    first.ask("count")
    first.rng.random()
    first.found(Told).rounds += 1
    first.mark(round=1, weights={"w": np.ones(2)})
    later = first.rng.random()

    again, carrier = begun()
    assert carrier.sent == []  # it meets from disk
    assert again.marked.integer("round") == 1
    assert again.marked.group("weights")["w"].tolist() == [1, 1]
    assert again.found(Told).rounds == 1
    assert again.rng.random() == later
    again.ask("count")
    assert {number for number, _, _ in carrier.sent} == {3}
    assert again.result()["rounds"] == 1


def test_one_ask_brings_all_scores_of_a_stage(tmp_path):
    carrier = Said(
        a=scores_out({Measure.OWN: Score(0.5, 4), Measure.JOINT: Score(0.25, 4)}),
        b=scores_out({Measure.OWN: Score(1.0, 2), Measure.JOINT: Score(1.0, 12)}),
        c=scores_out({Measure.LABELLING: Score(0.75, 8)}),
        d=Failure(FailureKind.ERROR, "silo 'd': took no score"),
    )
    asked = silos(tmp_path, carrier)
    asked.meet()
    carrier.sent.clear()
    asked.evaluate(LOCAL, to=NAMES)
    assert [(name, message) for _, name, message in carrier.sent] == [
        (name, {"stage": "local"}) for name in NAMES
    ]
    found = asked.findings
    assert found["scores"] == {
        "local": {"a": {"accuracy": 0.5, "instances": 4}, "b": {"accuracy": 1.0, "instances": 2}}
    }
    assert found["labelling"] == {"local": {"c": {"accuracy": 0.75, "instances": 8}}}
    # 1 of 4 and 12 of 12 right: 13 of 16.
    assert found["joint"] == {"local": {"accuracy": 13 / 16, "instances": 16}}


def test_silos_and_a_method_that_do_not_go_together_do_not_meet(tmp_path):
    class Careful(Counting):
        needs_pool: ClassVar[bool] = True

    asked = Silos(["a"], Careful(), Said(), Journal(tmp_path / "journal"))
    with pytest.raises(SilosDoNotFit, match="silo 'a': its pool has fingerprint none, the federation's 4de1"):
        asked.meet(pool="4de1")
