"""How silos introduce themselves: versions and pools that do not fit, and what each may know of others."""

import pytest

from cosilo import CoFED, Federation
from cosilo.coordination import meeting
from cosilo.coordination.meeting import Introductions
from cosilo.errors import RunError
from cosilo.methods import base
from cosilo.protocol.message import Fields
from cosilo.version import __version__


def said(classes=("x", "y"), **more):
    return Fields({"classes": list(classes), "pool": "4de1", "offers": [], **more})


def test_a_silo_with_another_version_is_named_with_what_to_do():
    known = Introductions()
    problems = known.add({"a": said(version=__version__), "b": said(version="9.9")}, "4de1", needs_pool=True)
    assert problems == [
        f"silo 'b': has cosilo 9.9, the coordinator {__version__}; "
        "install the same version everywhere, then start a new run"
    ]


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


@pytest.mark.parametrize("older", ["silo", "coordinator"])
def test_a_run_between_two_versions_is_refused_on_either_side(tmp_path, silos, pool, monkeypatch, older):
    """The coordinator says its version in `hello`, and the silo says its own."""
    if older == "coordinator":
        monkeypatch.setattr("cosilo.coordination.coordinator.__version__", "0.0.1")
        monkeypatch.setattr(meeting, "__version__", "0.0.1")
        here, there = __version__, "0.0.1"
    else:
        monkeypatch.setattr(base, "__version__", "0.0.1")
        here, there = "0.0.1", __version__
    with pytest.raises(RunError) as refused:
        Federation(silos(), pool, CoFED()).run(tmp_path / "run")
    for line in str(refused.value).splitlines():
        assert line.endswith(
            f": has cosilo {here}, the coordinator {there}; "
            "install the same version everywhere, then start a new run"
        )
    assert len(str(refused.value).splitlines()) == len(silos())
    assert not list(tmp_path.glob("run/silos/*/model-*"))
