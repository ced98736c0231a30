"""What comes back from a silo."""

import json

import pytest

from cosilo.protocol.carrier import Failure, FailureKind


@pytest.mark.parametrize("kind", FailureKind)
def test_the_kind_of_a_failure_is_a_word_in_files_and_messages(kind):
    assert FailureKind(json.loads(json.dumps({"kind": kind}))["kind"]) is kind


def test_failures_with_the_same_kind_and_text_are_the_same():
    assert Failure(FailureKind.LOST, "gone") == Failure(FailureKind("lost"), "gone")
    with pytest.raises(ValueError, match="tired"):
        FailureKind("tired")
