"""What a method finds out: typed, and part of the run's result."""

import pytest
from pydantic import ValidationError

from cosilo.protocol.findings import Findings, Matrix


class Votes(Findings):
    elected: dict[str, int] = {"a": 0}  # noqa: RUF012 (pydantic copies it)


def test_they_read_their_own_keys_of_a_result():
    result = {"scores": {}, "failures": [], "elected": {"a": 3}}
    assert Votes.model_validate(result).elected == {"a": 3}
    assert Votes().model_dump() == {"elected": {"a": 0}}


def test_what_is_of_another_type_is_noticed():
    with pytest.raises(ValidationError, match="elected"):
        Votes.model_validate({"elected": ["a"]})
    with pytest.raises(ValidationError, match="values"):
        Matrix(silos=["a"], values=[["high"]])
