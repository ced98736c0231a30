import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.errors import BadMessage
from cosilo.protocol.forms import Expected
from cosilo.protocol.message import KINDS, Fields, check, policy
from cosilo.protocol.metrics import BINS, METRIC_KINDS, METRICS, NUMBERS, as_json, gain
from cosilo.protocol.scores import declared_fields, metrics_in, scores_in, scores_out
from cosilo.protocol.stage import Measure, Score
from cosilo.protocol.wire import decode, encode

GOOD = {
    "balanced_accuracy": 0.5,
    "macro_f1": 0.25,
    "auc": 1.0,
    "log_loss": 3.5,
    "precision": [0.5, None],
    "recall": [1.0, 0.0],
    "confusion": [[3, 0], [1, 2]],
    "calibration": np.zeros((BINS, 3)).tolist(),
    "calibration_error": 0.1,
}
EXPECTED = Expected(classes=2, pool=0)


def test_every_metric_is_a_field_of_a_kind_that_policies_may_name():
    assert {metric.kind for metric in METRICS.values()} == set(METRIC_KINDS)
    assert set(METRIC_KINDS) <= set(KINDS)
    assert policy(["labels", "confusion"], "silo 'a'") == {"labels", "confusion"}
    assert GOOD.keys() == METRICS.keys()


def test_a_reply_has_what_the_policy_allows_and_nothing_else():
    scores = {Measure.OWN: Score(0.75, 8, GOOD), Measure.JOINT: Score(0.5, 8)}
    assert scores_out(scores).keys() == {"accuracy", "instances", "joint_accuracy", "joint_instances"}
    assert scores_out(scores, {"confusion"}).keys() == {"confusion"}
    assert scores_out(scores, {"per_class", "labels"}).keys() == {"precision", "recall"}
    assert scores_out(scores, {"labels"}) == {}
    everything = Fields(decode(encode(scores_out(scores, {"metrics", *METRIC_KINDS}))))
    check(everything, declared_fields(), EXPECTED)
    assert metrics_in(everything) == GOOD
    assert scores_in(everything)[Measure.OWN] == Score(0.75, 8)


def test_scores_that_are_not_exact_tell_no_counts():
    scores = {Measure.OWN: Score(27 / 31, 31, {**GOOD, "macro_f1": 1 / 3})}
    said = scores_out(scores, {"metrics", *METRIC_KINDS}, exact=False)
    assert said["macro_f1"] == 0.33
    assert not {"confusion", "calibration"} & said.keys()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("macro_f1", 1.5, "wants a number from 0 to 1"),
        ("auc", np.nan, "wants one finite number"),
        ("log_loss", -1.0, "wants a number from 0"),
        ("precision", np.array([0.5]), "got 1 shares; its task has 2 classes"),
        ("recall", np.array([0.5, 2.0]), "other numbers than shares"),
        ("recall", 0.5, "wants one share for each class"),
        ("confusion", np.array([[1, 2]]), "wants a square of counts"),
        ("confusion", np.array([[1, -2], [0, 0]]), "wants a square of counts"),
        ("confusion", np.eye(3, dtype=int), "got 3 rows; its task has 2 classes"),
        ("calibration", np.ones((3, 3)), "wants 10 rows of 3 numbers"),
        ("calibration", np.full((BINS, 3), np.inf), "other numbers than counts and shares"),
    ],
)
def test_what_is_no_metric_is_rejected(name, value, words):
    with pytest.raises(BadMessage, match=words):
        check({name: value}, declared_fields(), EXPECTED)


@given(
    before=st.floats(0.01, 10),
    after=st.floats(0.01, 10),
    name=st.sampled_from(NUMBERS),
)
def test_a_gain_above_one_is_better_whatever_better_means(before, after, name):
    better = after > before if METRICS[name].sign > 0 else after < before
    assert (gain(name, before, after) > 1) == better
    assert gain(name, before, after) * gain(name, after, before) == pytest.approx(1)


def test_as_json_holds_no_nan():
    assert as_json(np.array([[1.0, np.nan]])) == [[1.0, None]]
    assert as_json(np.int64(3)) == 3
