"""Parts of one-line errors."""

import pytest

from cosilo.text import cause, guess, listing


@pytest.mark.parametrize(("count", "text"), [(0, ""), (1, "0"), (3, "0, 1, 2"), (5, "0, 1, 2 and 2 more")])
def test_long_lists_are_cut(count, text):
    assert listing(range(count), most=3) == text


def test_a_guess_does_not_mind_case_and_says_nothing_about_strangers():
    assert guess("FEDAVG", ["cofed", "fedavg"]) == " (did you mean 'fedavg'?)"
    assert guess("x", ["cofed", "fedavg"]) == ""
    assert guess("x", []) == ""


def test_a_cause_is_one_short_line():
    assert cause(ValueError("  first\nsecond")) == "first"
    assert cause(KeyError()) == "KeyError"
    assert len(cause(ValueError("x" * 1000))) == 160
