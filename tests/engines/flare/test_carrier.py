"""What carries asks between organisations, with silos that are objects of this process: busy, gone, odd."""

import time
from hashlib import sha256
from threading import Event

import pytest

from cosilo.engines.flare import carrier as flare
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.protocol.carrier import Ask, Failure, FailureKind
from cosilo.protocol.seal import Seal


class Site:
    """A silo as FLARE shows it: says one thing after the other, then the last one again."""

    def __init__(self, *sayings):
        self.sayings = list(sayings)
        self.calls = []

    def __call__(self, timeout):
        return self

    def answer(self, **arguments):
        self.calls.append(arguments)
        saying = self.sayings.pop(0) if len(self.sayings) > 1 else self.sayings[0]
        if isinstance(saying, Exception):
            raise saying
        return self.sealed(saying)

    def sealed(self, saying):
        """Add the seal of an honest silo to a reply."""
        if not isinstance(saying, dict) or set(saying) != {"reply", "seconds"}:
            return saying
        last = [call for call in self.calls if "body" in call][-1]
        request, reply = (sha256(one).hexdigest() for one in (last["body"], saying["reply"]))
        seal = Seal(last["number"], request, reply, 5, "ab")
        return {**saying, "seal": seal.values()}

    wait = answer


def asks(number):
    """The asks of a step: each silo is sent its own name."""
    return lambda name: Ask(number, "label", name.encode())


@pytest.fixture
def ask(monkeypatch):
    """One ask to silos; what came back, by name."""
    monkeypatch.setattr(flare, "LOST_AFTER", 1.0)

    def call(timeout=None, **sites):
        answers = FlareCarrier(sites).call(list(sites), asks(3), timeout)
        return {answer.silo: answer.content for answer in answers}

    return call


def test_an_answer_comes_at_once_or_when_the_silo_is_no_longer_busy(ask):
    busy = Site({"busy": True}, {"busy": True}, {"reply": b"b", "seconds": 0.5})
    assert ask(quick=Site({"reply": b"a", "seconds": 0.5}), busy=busy) == {"quick": b"a", "busy": b"b"}
    # The message goes over once; then the silo is only asked whether it is ready.
    assert busy.calls == [
        {"number": 3, "step": "label", "body": b"busy", "contract": ""},
        {"number": 3},
        {"number": 3},
    ]


def test_a_connection_that_breaks_for_a_moment_costs_nothing(ask):
    lost = ConnectionError("no path to the site")
    assert ask(one=Site(lost, {"busy": True}, lost, {"reply": b"a", "seconds": 0.5})) == {"one": b"a"}


def test_a_silo_that_is_gone_is_lost_and_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(flare, "LOST_AFTER", 0.3)
    gone = Site(ConnectionError("no path to the site"))
    carrier = FlareCarrier({"one": gone, "two": Site({"reply": b"a", "seconds": 0.5})})
    for number in (1, 2):
        answers = {a.silo: a.content for a in carrier.call(["one", "two"], asks(number), None)}
        text = "silo 'one': not connected; rejoins when it reconnects"
        assert answers == {"one": Failure(FailureKind.LOST, text), "two": b"a"}
        assert {call["number"] for call in gone.calls} == {1}


def test_a_silo_that_was_not_there_when_the_job_began_is_lost(ask):
    carrier = FlareCarrier({"one": Site({"reply": b"a", "seconds": 0.5})})
    found = {a.silo: a.content for a in carrier.call(["one", "two"], asks(1), None)}
    assert found["one"] == b"a"
    assert found["two"].kind == "lost"


def test_a_timeout_is_that_of_one_silo_in_one_ask(ask):
    started = time.monotonic()
    found = ask(timeout=0.4, slow=Site({"busy": True}), quick=Site({"reply": b"a", "seconds": 0.5}))
    assert found["slow"] == Failure(FailureKind.TIMEOUT, "silo 'slow': took longer than its timeout of 0.4 s")
    assert found["quick"] == b"a"
    assert time.monotonic() - started < 5


def test_getting_ready_does_not_count(ask, monkeypatch):
    class Opening(Site):
        def answer(self, **arguments):
            time.sleep(0.1)
            return super().answer(**arguments)

        wait = answer

    unready = [{"opening": True}] * 8
    assert ask(timeout=0.4, one=Opening(*unready, {"reply": b"a", "seconds": 0.5})) == {"one": b"a"}
    monkeypatch.setattr(flare, "READY_WITHIN", 0.2)
    assert ask(timeout=0.4, one=Opening({"opening": True}))["one"].kind == "timeout"


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        ({"failure": ["error", "silo 'one': has\nno data"]}, "error", "silo 'one': has no data"),
        ({"failure": ["refused", "not this"]}, "refused", "silo 'one': not this"),
        (
            {"failure": ["lost", "I am gone"]},
            "unreadable",
            "silo 'one': sent a dict where a reply is expected",
        ),
        ({"failure": "no"}, "unreadable", "silo 'one': sent a dict where a reply is expected"),
        (
            {"reply": b"a", "seconds": 0.5, "more": 1},
            "unreadable",
            "silo 'one': sent a message of another form where a reply is expected",
        ),
        (
            {"reply": b"a", "seconds": 0.5, "seal": {"number": 3, "length": 4}},
            "unreadable",
            "silo 'one': sent a reply with a seal that is not about it where a reply is expected",
        ),
        ({"reply": b"a"}, "unreadable", "silo 'one': sent a dict where a reply is expected"),
        (
            {"reply": b"a", "seconds": -1.0},
            "unreadable",
            "silo 'one': sent a message of another form where a reply is expected",
        ),
        ({"reply": "text"}, "unreadable", "silo 'one': sent a dict where a reply is expected"),
        ({"busy": True, "reply": b"a"}, "unreadable", "silo 'one': sent a dict where a reply is expected"),
        ([b"a"], "unreadable", "silo 'one': sent a list where a reply is expected"),
        (None, "lost", "silo 'one': not connected; rejoins when it reconnects"),
        (
            RuntimeError("cannot deserialize: Type 'os.system' is not allowed"),
            "unreadable",
            "silo 'one': sent something that cannot be read where a reply is expected",
        ),
    ],
)
def test_whatever_a_silo_says_is_a_reply_or_one_line_that_names_it(ask, reply, kind, text):
    assert ask(one=Site(reply)) == {"one": Failure(FailureKind(kind), text)}


def test_a_long_story_of_a_failure_is_cut(ask):
    found = ask(one=Site({"failure": ["error", "x" * 10**6]}))
    assert len(found["one"].text) < 1100


def test_a_run_that_is_held_asks_nobody():
    class Held(Exception):
        pass

    def hold():
        raise Held

    one = Site({"reply": b"a", "seconds": 0.5})
    with pytest.raises(Held):
        list(FlareCarrier({"one": one}, hold).call(["one"], asks(1), None))
    assert one.calls == []


def test_a_closed_carrier_calls_nobody_any_more():
    one = Site({"busy": True})
    carrier = FlareCarrier({"one": one})
    answers = carrier.call(["one"], asks(1), None)
    carrier.close()
    assert next(answers).content.kind == "lost"
    assert one.calls == []


class Slow(Site):
    """A silo to which a message takes until somebody lets it through."""

    def __init__(self, *sayings):
        super().__init__(*sayings)
        self.through = Event()

    def answer(self, **arguments):
        assert self.through.wait(30)
        return super().answer(**arguments)

    wait = Site.answer


def test_a_message_is_made_when_there_is_room_for_it_on_the_way(monkeypatch):
    monkeypatch.setattr(flare, "_ON_THE_WAY", 20)
    sites = {name: Slow({"busy": True}, {"reply": b"a", "seconds": 0.5}) for name in "abcde"}
    made = []

    def ask(name):
        made.append(name)
        return Ask(3, "label", bytes(10))

    answers = FlareCarrier(sites).call(list(sites), ask, None)
    sites["a"].through.set()
    assert next(answers).silo == "a"
    assert made == ["a", "b", "c"]  # the third has the place of the first
    for site in sites.values():
        site.through.set()
    assert sorted(answer.silo for answer in answers) == ["b", "c", "d", "e"]
    assert made == ["a", "b", "c", "d", "e"]


def test_a_silo_that_is_lost_leaves_its_place_to_others(ask, monkeypatch):
    monkeypatch.setattr(flare, "_ON_THE_WAY", 1)
    answers = ask(gone=Site(ConnectionError("no path")), here=Site({"reply": b"a", "seconds": 0.5}))
    assert answers["here"] == b"a"
    assert answers["gone"].kind is FailureKind.LOST
