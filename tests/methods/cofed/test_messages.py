"""The update message: one object for silos that are told the same, and a silo that reads it with care."""

from collections.abc import Mapping

import numpy as np
import pytest
from boundaries import asked, opened
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, Silo
from cosilo.aggregation.voting import Rule, labels_from
from cosilo.methods.cofed import messages
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold
from cosilo.methods.cofed.messages import UpdateMessages, longest_update, read_tallies, write_tallies
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Failure
from cosilo.protocol.incoming import check_incoming
from cosilo.protocol.wire import decode, encode

RNG = np.random.default_rng(0)
TASKS = [[0, 1], [0, 1], [0, 1], [1, 2], [1, 2]]
BALLOTS = Ballots(
    [f"s{i}" for i in range(5)], [RNG.choice(task, 30).astype(np.int8) for task in TASKS], TASKS, 3
)


@pytest.fixture
def silo():
    found = Silo("clinic", RNG.normal(size=(8, 2)), list("abababab"), GaussianNB())
    found.use_pool(RNG.normal(size=(30, 2)))
    return found


@pytest.mark.parametrize("rule", ["paper", "winner", "shares"])
def test_what_was_written_is_read(silo, rule):
    if rule == "paper":
        outcome = ByThreshold(BALLOTS, 0.3, [1.0] * 5)
    else:
        outcome = ByShares(BALLOTS, [1.0] * 5, soft=rule == "shares")
    message = UpdateMessages(outcome, {"stage": "federated"}).for_silo([0, 1], 1)
    fields = decode(encode(message))
    check_incoming(CoFED(rule=rule).update, fields)
    fields.pop("stage")
    tallies = read_tallies(silo, rule, **{"other": None, **fields})
    assert (tallies.own, tallies.unit, len(tallies)) == (1, 1.0, 30)
    index, label = outcome.labels([0, 1])
    found = labels_from(tallies, outcome.rule, np.full(30, -1))
    assert (found.index.tolist(), found.label.tolist()) == (index.tolist(), label.tolist())


def test_silos_with_the_same_task_and_weight_share_one_message(monkeypatch):
    told = UpdateMessages(ByShares(BALLOTS, [1.0] * 5), {"stage": "federated"})
    assert told.for_silo([0, 1], 0) is told.for_silo([0, 1], 2)
    assert told.for_silo([0, 1], None)["own"] == 0
    assert told.for_silo([1, 2], 3) is not told.for_silo([0, 1], 0)
    # Another weight is another message, and the same arrays.
    uneven = UpdateMessages(ByShares(BALLOTS, [1.0, 0.5, 1.0, 1.0, 1.0]), {})
    one, other = uneven.for_silo([0, 1], 0), uneven.for_silo([0, 1], 1)
    assert (one["own"], other["own"]) == (1000, 500)
    assert one["counts"]["000000000"] is other["counts"]["000000000"]
    # Messages of many tasks are not all kept.
    monkeypatch.setattr(messages, "KEPT", 1)
    few = UpdateMessages(ByShares(BALLOTS, [1.0] * 5), {})
    for place, task in enumerate(TASKS):
        assert few.for_silo(task, place)["own"] == 1
        assert len(few._by_task) == 1


def test_a_message_has_nothing_but_tallies():
    told = UpdateMessages(ByShares(BALLOTS, [1.0] * 5, soft=True), {"stage": "federated"}).for_silo([0, 1], 0)
    assert sorted(told) == ["counted", "counts", "other", "own", "stage", "total", "unit"]
    assert told["counts"]["000000000"].dtype == np.uint16
    assert told["counts"]["000000000"].shape == (30, 2)


COUNTS = np.repeat(np.array([[5, 0], [0, 5], [1, 2]], np.uint16), 10, axis=0)
GOOD = {
    "stage": "federated",
    "counts": {"000000000": COUNTS[:20], "000000020": COUNTS[20:]},
    "other": np.zeros(30, np.float32),
    "total": np.array([5, 5], np.uint16),
    "counted": np.ones(2, np.uint8),
    "own": 1,
    "unit": 1.0,
}


class Asked:
    """A silo that has voted, and whatever a coordinator sends it then."""

    def __init__(self, folder, method=None):
        rng = np.random.default_rng(1)
        X = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(4, 1, (20, 2))])
        pool = np.concatenate([rng.normal(0, 1, (10, 2)), rng.normal(4, 1, (20, 2))])
        silo = Silo("clinic", X, list("a" * 20 + "b" * 20), GaussianNB(), pool=pool)
        silo.allow = Allow(parameters={"accept": ["better", "always"]})
        self.border, self.number = opened(silo, method or CoFED(), folder / "run"), 0
        for step in ("hello", "train", "label"):
            self.ask(step, {})

    def ask(self, step, message):
        self.number += 1
        content = asked(self.border, self.number, step, encode(message)).content
        return content.text if isinstance(content, Failure) else decode(content)


def test_a_good_message_is_taken(tmp_path):
    assert Asked(tmp_path).ask("update", GOOD) == {}


FEW = np.array([1, 0], np.uint8)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("counts", COUNTS, "its 'counts': got ndarray; expected blocks of rows"),
        ("counts", {"0": COUNTS}, "its 'counts': got block '0'; expected '000000000'"),
        (
            "counts",
            {"000000000": COUNTS[:20], "000000019": COUNTS[20:]},
            "got block '000000019'; expected '000000020'",
        ),
        (
            "counts",
            {"000000000": COUNTS.astype(np.int64)},
            "block '000000000': got int64[30, 2]; expected uint16 or uint32, 2-dimensional",
        ),
        ("counts", {"000000000": COUNTS[:, 0]}, "got uint16[30]; expected uint16 or uint32, 2-dimensional"),
        (
            "counts",
            {"000000000": COUNTS[:20], "000000020": np.zeros((10, 3), np.uint16)},
            "block '000000020': got [10, 3]; expected rows like those of the first",
        ),
        (
            "counts",
            {"000000000": np.zeros((2**16 + 1, 2), np.uint16)},
            "step 'update' takes at most",
        ),
        ("counts", {"000000000": COUNTS[:0]}, "block '000000000': got [0, 2]; expected rows"),
        ("counts", {"000000000": COUNTS[:29]}, "'counts' has 29 rows of 2 classes; expected 30 of 2"),
        (
            "counts",
            {"000000000": np.zeros((30, 3), np.uint16)},
            "'counts' has 30 rows of 3 classes; expected 30 of 2",
        ),
        (
            "counts",
            {"000000000": np.where(COUNTS == 5, 6, COUNTS).astype(np.uint16)},
            "'counts' is 6 for instance 0 and class 0; expected 0 to 5, its 'total'",
        ),
        ("total", np.array([[5, 5]], np.uint16), "its 'total': got uint16[1, 2]; expected uint16 or uint32"),
        ("total", np.array([5.0, 5.0]), "its 'total': got float64[2]; expected uint16 or uint32"),
        ("total", np.array([5], np.uint16), "'total' has 1 numbers; expected 2, one per class of its task"),
        ("counted", np.array([0, 2], np.uint8), "its 'counted': holds 2; expected numbers from 0 to 1"),
        ("counted", np.ones(3, np.uint8), "'counted' has 3 numbers; expected 2"),
        (
            "counted",
            FEW,
            "'counts' is 2 for instance 20 and class 1; expected 0 or 5, its 'total'",
        ),
        ("other", np.zeros(29, np.float32), "'other' has 29 numbers; expected 30, one per pool instance"),
        ("other", np.zeros(30), "its 'other': got float64[30]; expected float32, 1-dimensional"),
        ("other", np.full(30, 1.5, np.float32), "its 'other': holds 1.5; expected numbers from 0 to 1"),
        ("other", np.full(30, -0.5, np.float32), "its 'other': holds -0.5; expected numbers from 0 to 1"),
        ("own", -1, "its 'own': got -1; wants a whole number of at least 0"),
        ("own", 1.0, "its 'own': got 1.0; wants a whole number"),
        ("own", 6, "'own' is 6; expected at most 5, the least 'total' of its classes"),
        ("unit", 0.0, "its 'unit': got 0.0; wants a number from 1e-09 to 1e+12"),
        ("agreement", 2.0, "its 'agreement': got 2.0; wants a number from -1 to 1"),
    ],
)
def test_what_no_election_comes_to_is_named_and_refused(tmp_path, field, value, words):
    asked = Asked(tmp_path)
    told = asked.ask("update", {**GOOD, field: value})
    assert isinstance(told, str)
    assert words in told
    assert "\n" not in told
    # It counted, whatever was wrong with it: no other update is taken.
    assert "asks 1 times at most" in asked.ask("update", GOOD)


@pytest.mark.parametrize("field", ["counts", "total", "counted", "own", "unit"])
def test_every_field_has_to_be_there(tmp_path, field):
    message = {name: value for name, value in GOOD.items() if name != field}
    assert f"got no '{field}', which the step takes" in Asked(tmp_path).ask("update", message)


def test_the_papers_rule_takes_nothing_of_other_classes(tmp_path):
    bare = {name: value for name, value in GOOD.items() if name != "other"}
    assert "'other' has none numbers; expected 30" in Asked(tmp_path / "a").ask("update", bare)
    paper = Asked(tmp_path / "b", CoFED(rule="paper"))
    assert "got 'other'; expected none, by the paper's rule" in paper.ask("update", GOOD)
    assert Asked(tmp_path / "c", CoFED(rule="paper")).ask("update", bare) == {}


def test_labels_of_classes_with_few_holders_may_be_all_that_is_told(tmp_path):
    marks = {"000000000": COUNTS * (COUNTS == 5)}
    assert Asked(tmp_path).ask("update", {**GOOD, "counts": marks, "counted": np.zeros(2, np.uint8)}) == {}


def test_no_field_of_an_update_is_without_a_form():
    from cosilo.protocol.incoming import _parameters

    forms = _parameters(CoFED.update)
    assert isinstance(forms, Mapping)
    assert [name for name, one in forms.items() if one.form is None] == []


def test_blocks_hold_the_whole_pool():
    votes = [np.zeros(2**16 + 3, np.int8)] * 3
    outcome = ByShares(Ballots(["a", "b", "c"], votes, [[0, 1]] * 3, 2), [1.0] * 3)
    told = write_tallies(outcome.tallies([0, 1]))
    assert {name: len(block) for name, block in told["counts"].items()} == {
        "000000000": 2**16,
        "000065536": 3,
    }
    assert outcome.rule == Rule("winner", 0.0)


def test_a_request_that_is_too_long_is_refused_before_it_is_read(tmp_path, monkeypatch):
    asked = Asked(tmp_path)
    most = longest_update(asked.border.silo)
    assert len(encode(GOOD)) < most < 100_000
    monkeypatch.setattr("cosilo.coordination.boundary.decode", lambda *_: pytest.fail("it was read"))
    told = asked.ask("update", {**GOOD, "other": np.zeros(most, np.float32)})
    assert f"step 'update' takes at most {most} here" in told


def test_a_step_without_arrays_takes_no_long_request(tmp_path):
    told = Asked(tmp_path).ask("train", {"text": "x" * 2**22})
    assert "step 'train' takes at most 4194304 here" in told
