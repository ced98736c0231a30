"""How silos introduce themselves: pools that do not fit, and what each may know of others."""

from cosilo.coordination.meeting import Introductions
from cosilo.protocol.message import Fields


def said(classes=("x", "y"), **more):
    return Fields({"classes": list(classes), "pool": "4de1", "offers": [], **more})


def test_a_silo_with_another_pool_is_named():
    problems = Introductions().add({"a": said()}, "beef", needs_pool=True)
    assert problems[0].startswith(
        "silo 'a': its pool has fingerprint 4de1, the federation's beef; every silo"
    )
    assert Introductions().add({"a": said()}, "beef", needs_pool=False) == []


def test_a_silo_knows_its_own_classes_by_name_and_those_of_others_by_number():
    known = Introductions()
    known.add({"a": said("xy"), "b": said("yz")}, None, needs_pool=False)
    assert known.vocabulary.classes == ("x", "y", "z")
    assert known.vocabulary_for("a") == ["x", "y", "class of others 2"]
    assert known.vocabulary_for("b", "x") == ["x", "y", "z"]
    assert {name: one.classes for name, one in known.expected(300).items()} == {"a": 2, "b": 2}
