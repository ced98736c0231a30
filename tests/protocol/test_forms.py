import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from cosilo.errors import BadMessage
from cosilo.protocol.forms import (
    SHARE,
    YES_OR_NO,
    Count,
    Expected,
    Labels,
    Names,
    Number,
    Numbers,
    Parameters,
    Text,
)
from cosilo.protocol.message import Shared, check
from cosilo.protocol.wire import decode, encode
from cosilo.text import plain

anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just(10**400)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
)
FORMS = [SHARE, Count(), Labels(), Names(least=2), Number(), Numbers(), Parameters(), Text()]


@given(st.sampled_from(FORMS), anything)
def test_a_form_never_fails_whatever_it_is_shown(form, value):
    problem = form.problem(value, Expected(classes=2, pool=3))
    assert problem is None or (0 < len(problem) < 1300 and plain(problem) == problem)


@pytest.mark.parametrize(
    ("form", "good", "bad", "wants"),
    [
        (SHARE, [0, 1, 0.5], [-0.1, 1.5, 10**30, 10**400], "a number from 0 to 1"),
        (SHARE, [], [float("nan"), float("inf"), True, "1", None, [1]], "one finite number"),
        (Count(), [1, 10**9], [0, -1, 1.0, True, "1"], "a whole number of at least 1"),
        (Count(most=5), [5], [6, 10**400], "at most 5"),
        (YES_OR_NO, [0, 1], [-1, 0.5, True], "a whole number of at least 0"),
        (Text(3), ["abc", "äöü"], ["abcd"], "at most 3"),
        (Text(), ["[/] {x}"], ["\x1b[2J", "a\nb", "\ud800", "\u202eabc"], "no control characters"),
        (Names(least=2), [["a", "b"]], [[], ["a"]], "2 to 10000"),
        (Names(), [["a"]], [["a", "a"]], "each once"),
        (Names(), [[]], ["ab", [1], {"a": 1}], "wants names"),
        (Numbers(), [np.zeros(0), np.full(2, 1e12)], [np.array([np.nan]), np.array([-np.inf])], "NaN or inf"),
        (Numbers(), [np.array(1)], [np.array([3e38]), np.array([-(2**63)])], "at most 1e\\+12"),
        (Parameters(), [{"w": np.ones(1)}], [{}, np.ones(1), 3.0], "named arrays"),
        (Parameters(), [], [{"w": np.zeros(1, complex)}], "wants numbers"),
    ],
)
def test_by_hand(form, good, bad, wants):
    for value in good:
        assert form.problem(value) is None
    for value in bad:
        with pytest.raises(BadMessage, match=rf"^field 'x': .*{wants}"):
            check({"x": value}, {"x": Shared("metrics", form=form)})


def test_a_field_has_the_form_of_its_kind_unless_it_has_one_of_its_own():
    check({"x": 7}, {"x": Shared("metrics")})
    with pytest.raises(BadMessage, match="from 0 to 1"):
        check({"x": 7}, {"x": Shared("metrics", form=SHARE)})


# ---------------------------------------------------------------------- what comes before any form


def raw(scalars: str, arrays=None) -> bytes:
    return save(arrays or {}, metadata={"scalars": scalars})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (raw("[" * 10**5 + "]" * 10**5), "RecursionError"),
        (raw('{"x": {"y": 1}}'), "'x' is a dict"),
        (raw('{"x": [1]}'), "'x' is a list"),
        (raw('{"x": null}'), "'x' is a NoneType"),
        (raw("3"), "not named"),
        (raw("{}", {"x": np.zeros(1, np.complex64)}), "array of 'C64'"),
        (raw('{"x": 1}', {"x": np.zeros(1)}), "'x' is there twice"),
        (raw('{"x": 1}', {"x/a": np.zeros(1)}), "'x' is there twice"),
        (raw("{}", {f"{n}": np.zeros(0) for n in range(20_001)}), "20001 arrays"),
        (raw(json.dumps({"x": "a" * 2**23})), "head of"),
    ],
    ids=["nested", "dict", "numbers", "none", "unnamed", "complex", "twice", "group", "arrays", "head"],
)
def test_what_is_no_message_is_said_to_be_none(content, words):
    with pytest.raises(BadMessage, match=words):
        decode(content)


def test_what_this_party_wrote_itself_may_be_of_any_size():
    large = {"x": "a" * 2**23}
    assert decode(encode(large), own=True) == large


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_bytes_with_a_head_that_fits_are_a_message_or_a_bad_one(head, rest):
    buffer = len(head).to_bytes(8, "little") + head + rest
    with suppress(BadMessage):
        assert isinstance(decode(buffer), dict)
