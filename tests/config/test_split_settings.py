"""Every split of a recipe has its function."""

import pytest
from pydantic import TypeAdapter, ValidationError

from cosilo import data
from cosilo.config.split_settings import SPLITS, IidSplit, SplitSettings


def test_every_split_is_one_of_the_functions_in_data():
    assert {"superclasses", "dirichlet", "shards", "iid", "by_value", "subset", "normal"} == SPLITS
    assert all(callable(getattr(data, name)) for name in SPLITS - {"subset", "normal"})


def test_settings_are_read_by_use_and_hold_nothing_else():
    read = TypeAdapter(SplitSettings).validate_python
    assert read({"use": "iid", "silos": 3, "size": 10}) == IidSplit(use="iid", silos=3, size=10)
    with pytest.raises(ValidationError):
        read({"use": "iid", "silos": 3, "per_silo": 10})
