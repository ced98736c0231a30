"""What a recipe says about the table that it reproduces."""

import pytest
from pydantic import ValidationError

from cosilo.config.reproduces import Reproduces

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
