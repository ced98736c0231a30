import numpy as np
import pandas as pd
import pytest

from cosilo.data.instances import as_instances, blocks, fingerprint, form, join, take
from cosilo.errors import DataError


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.array([[1.0], [np.inf]]), "instance 1 holds infinity"),
        (np.array([[np.nan], [-np.inf]]), "instance 1 holds infinity"),
        (
            pd.DataFrame({"a": [1.0, np.inf], "b": [1, 2], "c": [-np.inf, None]}),
            r"column 'a' has infinite values; replace .* \(also: 'c'\)",
        ),
        (np.array([1.0, 2.0]), r"shape \(2,\); wants \(instances, features\)"),
        (3, "got int"),
        ([[1, 2], [3]], "different lengths"),
        (["text", 3.0], "instance 1 is float, wants str"),
        (np.array([["a", "b"]]), "wants numbers, or one string each"),
    ],
)
def test_what_is_wrong_with_instances_is_said_in_one_line(X, words):
    with pytest.raises(DataError, match=words) as error:
        as_instances(
            X if not isinstance(X, list) or X[0] != "text" else np.array(X, dtype=object), "silo 'a'"
        )
    assert str(error.value).startswith("silo 'a': ")
    assert "\n" not in str(error.value)


FORMS = [
    np.arange(12.0).reshape(6, 2),
    np.arange(24, dtype=np.uint8).reshape(6, 2, 2),
    pd.DataFrame({"a": np.arange(6), "b": list("uvwxyz")}),
    np.array(["one", "two", "three", "four", "five", "six"], dtype=object),
]


@pytest.mark.parametrize("X", FORMS, ids=["numbers", "images", "frame", "text"])
def test_taking_parts_and_joining_them_gives_the_whole(X):
    X = as_instances(X, "x")
    whole = join(take(X, np.array([0, 1])), take(X, slice(2, 6)))
    assert len(whole) == 6
    assert form(whole) == form(X)
    assert fingerprint(as_instances(whole, "x")) == fingerprint(X)


@pytest.mark.parametrize("X", FORMS, ids=["numbers", "images", "frame", "text"])
def test_another_order_or_value_is_another_fingerprint(X):
    X = as_instances(X, "x")
    turned = as_instances(take(X, np.arange(6)[::-1]), "x")
    assert len({fingerprint(X), fingerprint(turned), fingerprint(take(X, slice(0, 5)))}) == 3


def test_fingerprints_are_the_same_on_every_machine():
    # Fixed here once: two organisations compare these.
    assert fingerprint(np.arange(6, dtype=np.int64).reshape(3, 2)) == fingerprint(
        np.arange(6, dtype=">i8").reshape(3, 2)
    )
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert fingerprint(frame) == fingerprint(frame[["b", "a"]])
    assert fingerprint(np.array(["ab", "c"], object)) != fingerprint(np.array(["a", "bc"], object))


def test_a_frame_joins_by_column_name():
    first, second = pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [4], "a": [3]})
    assert join(first, second)["a"].tolist() == [1, 3]


def test_blocks_cover_everything_once():
    assert [i for part in blocks(7, 3) for i in range(7)[part]] == list(range(7))
    assert blocks(0, 3) == []
