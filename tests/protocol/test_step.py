"""What `@step` says about a function."""

import pytest

from cosilo.errors import ConfigError
from cosilo.protocol.message import KINDS, Shared
from cosilo.protocol.step import first, step


def test_a_step_declares_its_fields_by_kind_or_in_full():
    @step(timed=False, size="size", votes=Shared("labels", "who wins", optional=True))
    def count(method, silo):
        return {"size": 1}

    declared = count.__step__
    assert declared.fields["size"] == Shared("size", KINDS["size"])
    assert declared.fields["votes"].about == "who wins"
    assert (declared.timed, declared.needs_model, declared.voluntary) == (False, True, False)
    assert count(None, None) == {"size": 1}  # the function itself is as it was


def test_a_kind_that_does_not_exist_is_one_line():
    with pytest.raises(ConfigError, match="a field is declared as 'picture'; wants one of task, labels"):
        step(image="picture")


def test_what_is_the_same_at_all_members_is_taken_once():
    assert first(["a", "a"]) == "a"
