import pandas as pd
import pytest

from cosilo.data.columns import difference, kinds, notes


def test_what_columns_hold():
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "yes": [True, False],
            "w": ["a", "b"],
            "c": pd.Categorical(["a", "b"]),
            "d": pd.to_datetime(["2024-01-01", "2024-01-02"]),
            "german": ["01.02.2024", "3.4.24"],
            "us": ["1/2/2024 10:00", "3/4/2024 11:30"],
            "icd": ["250.01", "V57"],
            "code": ["12-34-56-78", "1-2-3-4"],
        }
    )
    assert kinds(frame) == {
        **dict.fromkeys(["n", "yes"], "numbers"),
        **dict.fromkeys(["w", "c", "icd", "code"], "words"),
        **dict.fromkeys(["d", "german", "us"], "dates"),
    }
    assert kinds(frame.to_numpy()) == {}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"age": [1, 2, 3]}, None),
        ({"age": [1.5, 2, 3]}, None),
        ({"age": [True, False, True]}, None),
        (
            {"age": ["1", "2", "old"]},
            "column 'age' holds words in its pool and numbers in its data; 1 of 3",
        ),
        (
            {"age": ["a", "b", "c"]},
            "column 'age' holds words in its pool and numbers in its data; bring",
        ),
        ({"age": ["2024-01-01"] * 3}, "column 'age' holds dates in its pool and numbers in its data"),
        ({"age": [1], "job": ["vet"]}, "its pool has other columns than its data: only its pool has 'job';"),
        ({"Age": [1]}, "its pool has other columns than its data: only its data has 'age', only its pool"),
    ],
)
def test_frames_that_belong_together_hold_the_same(other, words):
    found = difference(pd.DataFrame(other), "its pool", pd.DataFrame({"age": [30, 40, 50]}))
    assert (found is None) if words is None else found.startswith(words)


def test_what_to_look_at():
    frame = pd.DataFrame(
        {
            "age": ["?" if i == 6 else str(i) for i in range(30)],
            "id": [f"p{i}" for i in range(30)],
            "number": range(100, 130),
            "job": ["nurse", "cook", "vet"] * 10,
        }
    )
    assert notes(frame) == [
        "column 'age': 1 of 30 values is no number, the first in row 7: all of it is taken for words",
        "column 'id': all 30 values are different, as those of an identifier are; "
        'if it is one, leave it out: columns = ["-id"]',
        "column 'number': all 30 values are different, as those of an identifier are; "
        'if it is one, leave it out: columns = ["-number"]',
    ]


def test_gaps_are_neither_numbers_nor_words():
    data = pd.DataFrame({"age": [30, None, 50], "job": ["a", None, "b"]})
    gone = pd.DataFrame({"age": [None, None], "job": [None, None]})
    assert difference(gone, "its pool", data) is None
    assert difference(data, "its pool", gone) is None
    assert notes(pd.DataFrame({"age": ["1", None, "x", "4"]}))[0].startswith("column 'age': 1 of 4 values")
