"""Scores on their way from a silo to the coordinator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.protocol.message import Fields, check
from cosilo.protocol.scores import declared_fields, overall_score, scores_in, scores_out
from cosilo.protocol.stage import Measure, Score
from cosilo.protocol.wire import decode, encode

scores = st.builds(Score, st.floats(0, 1), st.integers(1, 10**6))


@given(st.dictionaries(st.sampled_from(list(Measure)), scores))
def test_they_arrive_as_they_were_sent_and_pass_the_check(sent):
    reply = decode(encode(scores_out(sent)))
    check(reply, declared_fields())
    assert scores_in(Fields(reply)) == sent


@given(st.lists(scores, min_size=1))
def test_together_they_count_by_instances(each):
    right, instances = sum(s.accuracy * s.instances for s in each), sum(s.instances for s in each)
    assert overall_score(each).instances == instances
    assert overall_score(each).accuracy == pytest.approx(right / instances)


def test_by_hand():
    # 8 of 10 and 10 of 40: 18 of 50.
    assert overall_score([Score(0.8, 10), Score(0.25, 40)]) == Score(0.36, 50)
    assert scores_out({Measure.LABELLING: Score(0.5, 4)}) == {
        "labelling_accuracy": 0.5,
        "labelling_instances": 4,
    }
