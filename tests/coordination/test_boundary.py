import json
import warnings
from typing import ClassVar

import numpy as np
import pytest
from boundaries import asked, opened

from cosilo import CoFED, Federation, Local, LocalEngine, Silo
from cosilo.coordination.boundary import Boundary, seed_for
from cosilo.errors import RunError
from cosilo.methods import Method, step
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Failure, FailureKind
from cosilo.protocol.message import Shared
from cosilo.protocol.stage import LOCAL
from cosilo.protocol.wire import decode, encode
from cosilo.runs.audit import outgoing
from cosilo.runs.journal import replies_in

EMPTY = encode({})


class Greedy(Method):
    """A made-up method that wants the silo's model."""

    name: ClassVar[str] = "greedy"

    def coordinate(self, silos):
        silos.ask("train")
        silos.ask("give")

    @step()
    def train(self, silo):
        silo.fit(LOCAL)

    @step(parameters="weights")
    def give(self, silo):
        return {"parameters": np.zeros(3)}


class Sloppy(Greedy):
    """Returns more than it declares."""

    name: ClassVar[str] = "sloppy"

    @step(accuracy="metrics")
    def give(self, silo):
        return {"accuracy": 1.0, "data": np.zeros(3)}


class Counting(Greedy):
    """Tells how many instances there are, whatever the silo says to that."""

    name: ClassVar[str] = "counting"

    @step(found=Shared("metrics", "instances", exact=True))
    def give(self, silo):
        return {"found": silo.size}


class Talkative(Method):
    """Its step fails with private data in the error's text."""

    name: ClassVar[str] = "talkative"

    def coordinate(self, silos):
        silos.ask("train")

    @step()
    def train(self, silo):
        silo.fit(LOCAL)
        raise ValueError("could not convert 'Jane Doe, 1970-01-01'")


class Untouched:
    def fit(self, X, y):
        pytest.fail("something was trained")

    predict = fit


class Grumpy:
    def fit(self, X, y):
        warnings.warn("patient 17 looks odd", stacklevel=1)

    def predict(self, X):
        return np.zeros(len(X), int)


def boundary(silos, method, folder, place=0) -> Boundary:
    return opened(silos[place], method, folder)


def audit(folder) -> list[dict]:
    """All that left, without what says when and that nobody changed it."""
    new = ("at", "way", "digest", "chain", "seconds")
    return [
        {key: value for key, value in line.items() if key not in new}
        for line in outgoing(folder / "audit.jsonl")
    ]


def test_a_silo_that_shares_only_labels_refuses_weights_before_any_training(silos, tmp_path):
    private = [Silo("careful", np.eye(8), list("abababab"), Untouched(), shares=["labels"])]
    with pytest.raises(RunError) as error:
        Federation(private, method=Greedy()).run(tmp_path / "run")
    text = str(error.value)
    assert text == (
        "silo 'careful': does not share 'weights', which greedy needs (step 'give', field 'parameters'); "
        "it shares ['labels']: add 'weights' there to allow it"
    )
    # Exactly one line left the silo, and its log says so.
    assert audit(tmp_path / "run/silos/careful") == [
        {"ask": 1, "step": "hello", "fields": {}, "failure": text}
    ]


def test_every_step_is_held_against_the_policy_not_only_the_first(silos, tmp_path):
    border = boundary(silos(shares=["labels"]), Greedy(), tmp_path)
    assert isinstance(asked(border, 2, "train", EMPTY).content, bytes)
    refusal = asked(border, 3, "give", EMPTY).content
    assert isinstance(refusal, Failure)
    assert refusal.kind == "refused"


@pytest.mark.parametrize("allow", [None, Allow(exact_scores=True), Allow()])
def test_what_tells_how_much_data_there_is_leaves_only_with_exact_scores(allow, silos, tmp_path):
    members = silos()
    members[0].allow = allow
    border = boundary(members, Counting(), tmp_path / "tree")
    for number, name in enumerate(("hello", "train"), start=1):
        asked(border, number, name, EMPTY)
    found = asked(border, 3, "give", EMPTY).content
    if allow is None or allow.exact_scores:
        assert decode(found) == {"found": members[0].size}
    else:
        assert "field 'found' tells how much data it has" in found.text
        assert audit(tmp_path / "tree")[-1]["fields"] == {}


def test_the_audit_log_lists_exactly_what_left(silos, pool, tmp_path):
    members = silos(shares=["labels"])
    run = Federation(members, pool, CoFED()).run(tmp_path / "run")
    log = run.audit("tree")
    assert [entry["step"] for entry in log] == ["hello", "train", "label", "update"]
    said = ["classes", "offers", "pool", "version"]
    assert [sorted(entry["fields"]) for entry in log] == [said, [], ["votes"], []]
    votes = log[2]["fields"]["votes"]
    assert votes == {
        "kind": "labels",
        "form": "int8[300]",
        "bytes": 300,
        "about": CoFED().steps()["label"].fields["votes"].about,
    }
    # What the coordinator's journal holds is what the log says, byte for byte.
    for entry in log:
        (folder,) = (tmp_path / "run/journal").glob(f"{entry['ask']:05d}-*")
        assert len(replies_in(folder)["tree"]) == entry["bytes"]


def test_what_was_not_declared_does_not_leave(silos, tmp_path):
    border = boundary(silos(), Sloppy(), tmp_path)
    failure = asked(border, 1, "give", EMPTY).content
    assert isinstance(failure, Failure)
    assert "field 'data' was not declared" in failure.text
    assert audit(tmp_path)[0]["fields"] == {}


def test_the_text_of_a_foreign_error_stays_in_the_silo(silos, tmp_path):
    failure = asked(boundary(silos(), Talkative(), tmp_path), 1, "train", EMPTY).content
    assert failure == Failure(FailureKind.ERROR, "silo 'tree': train raised ValueError")
    assert "Jane" not in json.dumps(audit(tmp_path))
    assert "Jane Doe" in (tmp_path / "log.txt").read_text()


def test_a_step_that_failed_leaves_the_silo_as_it_was(silos, tmp_path):
    members = silos()
    border = boundary(members, Talkative(), tmp_path)
    asked(border, 1, "train", EMPTY)
    assert not members[0].trained
    assert members[0].scores == {}


def test_a_repeated_ask_is_answered_from_the_record(silos, pool, tmp_path):
    members = silos(pool=pool)
    border = boundary(members, CoFED(), tmp_path)
    asked(border, 1, "train", EMPTY)
    first = asked(border, 2, "label", EMPTY).content

    class Broken:
        def __getattr__(self, name):
            pytest.fail("the learner was used again")

    members[0].learner = Broken()
    assert asked(border, 2, "label", EMPTY).content == first
    assert [entry.get("again", False) for entry in audit(tmp_path)] == [False, False, True]


def test_a_repeated_ask_with_another_content_is_refused(silos, tmp_path):
    border = boundary(silos(), CoFED(), tmp_path)
    asked(border, 1, "train", EMPTY)
    other = asked(border, 1, "train", encode({"x": 1})).content
    assert isinstance(other, Failure)
    assert "with different content" in other.text


def test_an_ask_from_the_past_is_refused(silos, pool, tmp_path):
    border = boundary(silos(pool=pool), CoFED(), tmp_path)
    for number, name in enumerate(["train", "label", "label"], start=1):
        asked(border, number, name, EMPTY)
    late = asked(border, 2, "label", EMPTY).content
    assert isinstance(late, Failure)
    assert "ask 2 is over" in late.text


def test_an_unknown_step_is_refused(silos, tmp_path):
    failure = asked(boundary(silos(), CoFED(), tmp_path), 1, "steal", EMPTY).content
    assert failure == Failure(FailureKind.REFUSED, "silo 'tree': cofed has no step 'steal'")


def test_a_message_that_is_none_is_a_failure_not_a_crash(silos, tmp_path):
    failure = asked(boundary(silos(), CoFED(), tmp_path), 1, "train", b"\x80\x04K\x01.").content
    assert isinstance(failure, Failure)
    assert "not a message" in failure.text


def test_seeds_depend_on_silo_and_ask_and_nothing_else():
    seeds = {seed_for(s, name, ask) for s in (0, 1) for name in ("a", "b") for ask in (1, 2)}
    assert len(seeds) == 8
    assert seed_for(0, "a", 1) == seed_for(0, "a", 1)


def test_warnings_of_a_learner_stay_in_the_silos_log(tmp_path):
    border = opened(Silo("g", np.eye(8), list("abababab"), Grumpy()), CoFED(), tmp_path)
    assert decode(asked(border, 1, "train", EMPTY).content) == {}
    assert "patient 17" in (tmp_path / "log.txt").read_text()


class Ticking:
    """A learner by whose steps the processor's clock goes on: 3 s to fit, 100 s to predict."""

    now = 0.0

    def fit(self, X, y):
        Ticking.now += 3.0
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        Ticking.now += 100.0
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("workers", [0, 1])
def test_seconds_are_the_processors_and_without_judging(workers, tmp_path, monkeypatch):
    monkeypatch.setattr("time.thread_time", lambda: Ticking.now)
    silos = [Silo(name, np.eye(8), list("abababab"), Ticking()) for name in "ab"]
    run = Federation(silos, method=Local(), engine=LocalEngine(workers=workers)).run(tmp_path / "run")
    (ask,) = [ask for ask in run.asks() if ask["step"] == "train"]
    assert {name: arrival["seconds"] for name, arrival in ask["arrivals"].items()} == {"a": 3.0, "b": 3.0}
