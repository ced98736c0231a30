"""What is kept at a participant between steps, and what its policy and its name have to be."""

import numpy as np
import pytest

from cosilo.errors import BadMessage, ConfigError
from cosilo.protocol.participant import Participant, check_names_differ, check_quorum, refusals
from cosilo.protocol.stage import LOCAL, Measure, Score


class Nobody(Participant):
    size = 0

    def fingerprint(self):
        return ""

    def identity(self):
        return {}

    def perform(self, step, message, number):
        return None


def test_reading_changes_nothing():
    one = Nobody("a", [])
    one.recall(True, {"seen": 1, "w": np.ones(2)}, {LOCAL: {Measure.OWN: Score(0.5, 2)}})
    assert one.notes.integer("seen") == 1
    assert one.notes.pop("never", None) is None
    assert one.scores[LOCAL][Measure.OWN].accuracy == 0.5
    assert not one.changed
    with pytest.raises(BadMessage, match="field 'never' is missing"):
        one.notes.text("never")


def test_what_is_forgotten_is_gone():
    one = Nobody("a", [])
    one.recall(True, {"seen": 1}, {LOCAL: {}})
    one.forget()
    assert (one.trained, dict(one.notes), dict(one.scores), one.changed) == (False, {}, {}, False)


def test_a_refusal_names_what_is_not_shared_and_why_it_is_needed():
    one = Nobody("a", ["metrics"])
    needs = {"task": "x", "metrics": "x", "weights": "step 'train', field 'w'"}
    (line,) = refusals(one, "fedavg", needs)
    assert line == (
        "silo 'a': does not share 'weights', which fedavg needs (step 'train', field 'w'); "
        "it shares ['metrics']: add 'weights' there to allow it"
    )


def test_names_that_a_disk_may_not_tell_apart_and_quorums_out_of_range():
    with pytest.raises(ConfigError, match="2 silos are called 'a'; give each its own name"):
        check_names_differ([Nobody("a", []), Nobody("A", [])], "silos")
    for quorum in (-0.1, 1.1):
        with pytest.raises(ConfigError, match="wants a fraction between 0 and 1"):
            check_quorum(quorum)
    check_quorum(0)
    check_quorum(1)
