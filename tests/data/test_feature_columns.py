"""Which columns of a table are features."""

import pytest

from cosilo.data.feature_columns import features
from cosilo.data.own_files import read
from cosilo.errors import DataError

THERE = ["id", "age", "job", "-5 °C", "ill"]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (None, ["id", "age", "job", "-5 °C"]),
        (["job", "age"], ["job", "age"]),
        (["-id"], ["age", "job", "-5 °C"]),
        (["-id", "-job"], ["age", "-5 °C"]),
        (["-5 °C"], ["-5 °C"]),  # a column of that name is meant
        (["age", "-id"], ["age"]),
        (["-name"], ["id", "age", "job", "-5 °C", "name"]),
        (["name"], ["name"]),
    ],
)
def test_features_are_what_is_named_or_what_is_not_left_out(columns, found):
    assert features(THERE, "ill", columns) == found


def test_a_file_without_its_identifiers(tmp_path):
    (tmp_path / "a.csv").write_text("id,age,ill\n7,30,yes\n8,40,no\n")
    assert list(read(tmp_path / "a.csv", "ill", ["-id"]).X.columns) == ["age"]
    with pytest.raises(DataError, match=r"no column 'ids' .did you mean 'id'"):
        read(tmp_path / "a.csv", "ill", ["-ids"])
