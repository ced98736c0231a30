"""What comes with a step is held against the step's own parameters before the step sees it."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cosilo.errors import BadMessage
from cosilo.protocol.forms import Array, Number
from cosilo.protocol.incoming import check_incoming

GOOD = {
    "index": np.arange(3),
    "weights": {"w": np.zeros(2)},
    "count": 3,
    "rate": 0.5,
    "stage": "local",
    "last": True,
    "names": ["a", "b"],
}


class Method:
    def full(
        self,
        silo: object,
        index: NDArray[Any],
        weights: Mapping[str, NDArray[Any]],
        count: int,
        rate: float,
        stage: str,
        last: bool,
        names: list[str],
        seed: int | None = None,
        extra: Any = None,
    ) -> None: ...

    def formed(
        self,
        silo: object,
        part: Annotated[NDArray[Any], Array(("uint8",), most=3, longest=4)],
        share: Annotated[float, Number(0, 1)] | None = None,
        bare: Annotated[int, "a remark"] = 0,
    ) -> None: ...

    def plain(self, silo: object) -> None: ...

    def anything(self, silo: object, **message: Any) -> None: ...


def test_a_message_with_all_its_fields_is_taken():
    check_incoming(Method.full, GOOD)
    check_incoming(Method().full, GOOD)
    check_incoming(Method.full, {**GOOD, "seed": 7, "extra": [1]})


@pytest.mark.parametrize("name", GOOD)
def test_a_field_that_the_step_takes_has_to_be_there(name):
    message = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(BadMessage, match=f"^got no '{name}', which the step takes$"):
        check_incoming(Method.full, message)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("index", ["all", [0, 1], np.array([np.nan]), np.array([np.inf])]),
        ("weights", [3, "w", np.zeros(2), {"w": np.array([np.nan])}]),
        ("count", [1.0, True, "1", None, 2**53 + 1, -(2**53) - 1, 10**400]),
        ("rate", [float("nan"), float("inf"), True, "0.5", None]),
        ("stage", [3, None, "\x1b[2J"]),
        ("last", [0, 1, "true", None]),
        ("names", ["ab", [1], ["a", "a"]]),
        ("seed", ["7", 0.5]),
    ],
)
def test_a_field_of_another_type_is_named(name, values):
    for value in values:
        with pytest.raises(BadMessage, match=f"^its '{name}': "):
            check_incoming(Method.full, {**GOOD, name: value})


def test_a_field_that_the_step_does_not_take_is_refused():
    with pytest.raises(BadMessage, match=r"^got 'more'; the step takes index, weights, count, "):
        check_incoming(Method.full, {**GOOD, "more": 1})
    with pytest.raises(BadMessage, match=r"^got 'more'; the step takes nothing$"):
        check_incoming(Method.plain, {"more": 1})


@pytest.mark.parametrize("name", ["self", "silo"])
def test_nobody_sends_the_silo_itself(name):
    with pytest.raises(BadMessage, match=f"^got '{name}'; the step takes "):
        check_incoming(Method.full, {**GOOD, name: 1})


def test_a_step_that_takes_any_keyword_gets_whatever_comes():
    check_incoming(Method.anything, {"a": 1, "b": "two"})


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"part": np.zeros(3)}, r"'part': got float64\[3\]; expected uint8, 1-dimensional"),
        ({"part": np.zeros((1, 3), np.uint8)}, r"'part': got uint8\[1, 3\]; expected uint8"),
        ({"part": np.array([4], np.uint8)}, "'part': holds 4; expected numbers from 0 to 3"),
        ({"part": np.zeros(5, np.uint8)}, "'part': got 5 rows; expected at most 4"),
        ({"share": 2.0}, "'share': got 2.0; wants a number from 0 to 1"),
        ({"bare": 0.5}, "'bare': got 0.5; wants a whole number"),
    ],
)
def test_a_parameter_may_have_a_form_of_its_own(message, words):
    good = {"part": np.zeros(4, np.uint8), "share": 0.5, "bare": 1}
    check_incoming(Method.formed, good)
    with pytest.raises(BadMessage, match=words):
        check_incoming(Method.formed, {**good, **message})
