"""Names that are imported when they are first used."""

import sys
from types import ModuleType

import pytest

from cosilo.lazy import names_from


@pytest.fixture
def package(monkeypatch):
    for name in ("shop", "shop.cellar"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["shop.cellar"].wine = "red"
    return sys.modules["shop"]


def test_a_name_is_looked_up_once_and_stays(package):
    package.__getattr__ = names_from("shop", {"wine": "cellar"})
    assert package.wine == "red"
    assert vars(package)["wine"] == "red"


def test_a_name_that_is_not_there_is_an_attribute_error(package):
    package.__getattr__ = names_from("shop", {"wine": "cellar"})
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'beer'"):
        _ = package.beer
