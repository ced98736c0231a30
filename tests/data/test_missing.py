import numpy as np
import pandas as pd
import pytest

from cosilo.data.instances import as_instances, fingerprint
from cosilo.data.missing import columns_with_holes, filled, rows_with_holes

FRAME = pd.DataFrame(
    {
        "age": [1.0, np.nan, 3.0],
        "job": ["cook", None, "nurse"],
        "pay": [1, 2, 3],
        "sex": pd.Categorical(["a", "b", None]),
    }
)


@pytest.mark.parametrize(
    ("X", "holes"),
    [
        (FRAME, ["'age'", "'job'", "'sex'"]),
        (FRAME[["pay"]], []),
        (np.array([[np.nan, 1.0], [2.0, 3.0]]), ["column 0"]),
        (np.full((2, 3, 3), np.nan), ["instances"]),
        (np.zeros((2, 2), np.uint8), []),
        (np.array(["a text"], dtype=object), []),
        (np.empty((0, 2)), []),
    ],
)
def test_numbers_and_words_are_named_at_once(X, holes):
    assert columns_with_holes(X) == holes
    assert columns_with_holes(as_instances(X, "silo 'a'")) == holes


def test_rows_of_every_column_with_holes():
    assert rows_with_holes(FRAME, 5).tolist() == [1, 2]
    assert rows_with_holes(np.array([[np.nan, 1], [np.nan, 1], [1, np.nan]]), 1).tolist() == [0, 2]
    assert rows_with_holes(np.zeros((3, 2), np.uint8), 1).tolist() == []


def test_filled_has_no_holes_and_keeps_types():
    done = filled(FRAME)
    assert not done.isna().any().any()
    assert done.dtypes.to_dict() == FRAME.dtypes.to_dict()
    assert np.isfinite(filled(np.array([[np.nan, 1.0]]))).all()
    assert not filled(pd.DataFrame({"empty": [np.nan, np.nan]})).isna().any().any()


def test_a_missing_word_is_the_same_whoever_read_it():
    words = [pd.DataFrame({"job": np.array(["cook", gap], dtype=object)}) for gap in (None, np.nan, pd.NA)]
    assert len({fingerprint(frame) for frame in words}) == 1
    named = pd.DataFrame({"job": np.array(["cook", "nan"], dtype=object)})
    assert fingerprint(named) != fingerprint(words[0])
