"""Errors a person reads."""

from cosilo import errors


def test_every_error_can_be_caught_as_one_kind_and_says_what_it_is():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert len(kinds) > 5
    for kind in kinds:
        assert issubclass(kind, errors.CosiloError) or issubclass(kind, Warning)
        assert kind.__doc__
