"""Modules of the `data` extra."""

import math
import sys

import pytest

from cosilo.data.extra import import_extra
from cosilo.errors import DataError


def test_what_is_there_is_imported():
    assert import_extra("math", "counting") is math


@pytest.mark.parametrize(("module", "package"), [("PIL.Image", "pillow"), ("pyarrow.parquet", "pyarrow")])
def test_what_is_missing_is_one_line(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError) as error:
        import_extra(module, "reading this")
    assert str(error.value) == (
        f"reading this needs {package}, which cannot be imported: "
        "make install EXTRAS=data, or pip install 'cosilo-….whl[data]'"
    )
