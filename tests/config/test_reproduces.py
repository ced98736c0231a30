"""What a recipe says about the table that it reproduces."""

import pytest
from pydantic import ValidationError

from cosilo.config.reproduces import Number, Reproduces

GOOD = {
    "paper": "CoFED",
    "what": "Fig. 2",
    "shows": "gains",
    "methods": ["cofed", "local"],
    "minutes": {"laptop": 1},
    "case": {"iid": {}},
    "number": [{"text": "gain", "of": "iid.cofed.accuracy", "over": "iid.local.accuracy@GAM"}],
    "claim": [{"text": "better", "more": ["iid.cofed.accuracy"], "than": ["iid.local.accuracy"]}],
}


def test_all_places_that_are_named_are_known_once():
    found = Reproduces.model_validate(GOOD)
    assert found.paths == ["iid.cofed.accuracy", "iid.local.accuracy@GAM", "iid.local.accuracy"]
    assert found.number[0].key == "iid.cofed.accuracy / iid.local.accuracy@GAM"


def test_a_case_has_the_methods_that_something_is_asked_of():
    number = {"text": "gain", "of": "non_iid.cofed.relative"}
    curve = {"text": "rounds", "of": {"alone": "drawn.local.accuracy"}}
    cases = {"iid": {}, "non_iid": {}, "drawn": {}, "other": {}}
    found = Reproduces.model_validate({**GOOD, "case": cases, "number": [number], "curve": [curve]})
    methods = {case: found.methods_in(case) for case in cases}
    both = ["cofed", "local"]
    assert methods == {"iid": both, "non_iid": ["cofed"], "drawn": ["local"], "other": both}


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("iid.cofed", "case.method.measure"),
        ("iid.cofed.beauty", "a measure in"),
        ("other.cofed.accuracy", "cases iid in"),
        ("iid.fml.accuracy", "methods cofed, local in"),
    ],
)
def test_a_place_that_does_not_exist_is_found(of, words):
    with pytest.raises(ValidationError, match=words):
        Reproduces.model_validate({**GOOD, "number": [{"text": "x", "of": of}]})


def test_a_size_changes_the_recipe_and_its_cases_and_may_leave_some_out():
    table = {
        **GOOD,
        "minutes": {"laptop": 1, "night": 60, "paper": 900},
        "case": {"iid": {"a.b": 1}, "other": {}},
        "night_size": {"a.c": 2},
        "night_case": {"iid": {"a.b": 3}},
        "cases": {"night": ["iid"]},
    }
    found = Reproduces.model_validate(table)
    assert found.sizes == ["laptop", "night", "paper"]
    assert [found.cases_in(size) for size in found.sizes] == [["iid", "other"], ["iid"], ["iid", "other"]]
    assert found.changes("iid", "laptop") == [{}, {"a.b": 1}, {}]
    assert found.changes("iid", "night") == [{"a.c": 2}, {"a.b": 1}, {"a.b": 3}]
    assert found.changes("other", "paper") == [{}, {}, {}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"curve": [{"text": "c", "of": {"one": "iid.cofed.share"}}]},
            "joint for a curve; got 'iid.cofed.sh",
        ),
        ({"curve": [{"text": "c", "of": {"one": "iid.fml.joint"}}]}, "methods cofed, local in"),
        ({"night_case": {"none": {}}}, "cases iid in night_case; got 'none'"),
        ({"cases": {"laptop": ["none"]}}, r"cases iid in cases\.laptop; got 'none'"),
        ({"night_size": {"a": 1}}, r"minutes\.night, since it says what that size is"),
        ({"cases": {"paper": ["iid"]}}, r"minutes\.paper, since"),
    ],
)
def test_a_size_that_is_half_there_is_found(changes, words):
    with pytest.raises(ValidationError, match=words):
        Reproduces.model_validate({**GOOD, **changes})


def test_a_number_has_its_place_in_every_size():
    number = Number(text="n", of="a.b.accuracy", x=0.0, paper_x=5.0)
    assert [number.x_in(size) for size in ("laptop", "night", "paper")] == [0.0, 0.0, 5.0]
