"""Stages and their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.errors import BadMessage
from cosilo.protocol.stage import FEDERATED, LOCAL, Stage


@given(st.integers(0, 10**9))
def test_a_round_is_read_back_from_its_text(number):
    stage = Stage.after_round(number)
    assert str(stage) == f"round {number}"
    assert Stage.parse(str(stage)) == stage


def test_local_and_federated_are_read_back():
    assert [Stage.parse("local"), Stage.parse("federated")] == [LOCAL, FEDERATED]


@pytest.mark.parametrize("text", ["", "round", "round ", "round -1", "round 1.5", "round one", "Local"])
def test_any_other_text_is_no_stage(text):
    with pytest.raises(BadMessage, match="wants 'local', 'round N' or 'federated'") as error:
        Stage.parse(text)
    assert repr(text) in str(error.value)
