import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load, save

from cosilo.errors import BadMessage
from cosilo.protocol.wire import decode, encode

KINDS = ["u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "?"]
arrays = hnp.arrays(
    dtype=st.sampled_from(KINDS), shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
)
names = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=5)
scalars = st.one_of(st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(), st.booleans())


@given(st.dictionaries(st.text("abc", min_size=1), st.one_of(arrays, scalars, st.lists(st.text()))))
def test_decode_undoes_encode(message):
    back = decode(encode(message))
    assert set(back) == set(message)
    for field, value in message.items():
        if isinstance(value, np.ndarray):
            assert (back[field].dtype, back[field].shape) == (value.dtype, value.shape)
            np.testing.assert_array_equal(back[field], value)
        else:
            assert back[field] == value
            assert type(back[field]) is type(value)


def test_arrays_that_are_not_contiguous_arrive_in_order():
    array = np.arange(12).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(decode(encode({"a": array}))["a"], array)


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([{}], dtype=object), {"a": 1}, None, [1, 2]])
def test_what_is_not_a_number_or_a_name_cannot_be_sent(value):
    with pytest.raises(BadMessage, match="field 'x'"):
        encode({"x": value})


@given(st.binary(max_size=200))
def test_foreign_bytes_are_not_a_message(data):
    with pytest.raises(BadMessage):
        decode(data)


def test_a_name_with_a_slash_cannot_be_sent():
    with pytest.raises(BadMessage, match="may not contain '/'"):
        encode({"a/b": 1})


def test_a_pickle_is_not_a_message_and_does_not_run():
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was loaded",))

    with pytest.raises(BadMessage):
        decode(pickle.dumps(Bomb()))


def test_a_cut_message_is_noticed():
    whole = encode({"votes": np.arange(100, dtype=np.int8)})
    for length in (0, 7, 8, 40, len(whole) - 1):
        with pytest.raises(BadMessage):
            decode(whole[:length])


def test_scalars_must_be_named():
    body = json.dumps({"__metadata__": {"scalars": "[1]"}}).encode()
    with pytest.raises(BadMessage):
        decode(len(body).to_bytes(8, "little") + body)


@given(st.dictionaries(names, arrays, max_size=15), st.text(st.characters(exclude_categories=["Cs"])))
def test_the_bytes_are_those_of_the_safetensors_library(message, text):
    assert encode(message) == save(message, metadata={"scalars": "{}"})
    group = {f"group/{name}": array for name, array in message.items()}
    metadata = {"scalars": json.dumps({"text": text})}
    assert encode({"group": message, "text": text}) == save(group, metadata=metadata)


def test_every_kind_of_number_is_where_the_library_has_it():
    message = {f"{place}{kind}": np.arange(3).astype(kind) for place in "ab" for kind in KINDS}
    assert encode(message) == save(message, metadata={"scalars": "{}"})


def test_numbers_of_the_other_byte_order_arrive():
    assert decode(encode({"x": np.arange(3, dtype=">i4")}))["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", [np.complex64, np.longdouble, "M8[s]", "S3"])
def test_other_numbers_are_named(kind):
    with pytest.raises(BadMessage, match="field 'x' is an array of"):
        encode({"x": np.zeros(2, kind)})


WHOLE = encode({"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.ones(2), "n": 3})


@given(st.data())
def test_what_is_taken_the_library_takes_too(data):
    """Whatever is changed in a message: it is refused, or the library reads the same arrays."""
    changed = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    _compare(bytes(changed))


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "I8", "U64", "F8_E4M3", "X", 3]),
                "shape": st.lists(st.one_of(st.integers(-1, 4), st.just(2**62), st.just(1.0)), max_size=3),
                "data_offsets": st.lists(st.integers(-1, 40), min_size=1, max_size=3),
            },
            optional={"more": st.just(1)},
        ),
    ),
    st.integers(0, 40),
)
def test_no_head_leads_beyond_the_buffer(header, size):
    head = json.dumps({"__metadata__": {"scalars": "{}"}, **header}).encode()
    _compare(len(head).to_bytes(8, "little") + head + bytes(size))


def _compare(buffer: bytes) -> None:
    try:
        found = decode(buffer)
    except BadMessage:
        return
    told = load(buffer)
    read = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
    groups = {name: value for name, value in found.items() if isinstance(value, dict)}
    read |= {f"{field}/{name}": array for field, group in groups.items() for name, array in group.items()}
    assert read.keys() == told.keys()
    for name, array in told.items():
        assert (array.dtype, array.shape) == (read[name].dtype, read[name].shape)
        np.testing.assert_array_equal(array, read[name])


def test_what_somebody_sent_is_not_written_into_and_what_one_wrote_oneself_is():
    with pytest.raises(ValueError, match="read-only"):
        decode(WHOLE)["b"][0] = 5
    own = decode(WHOLE, own=True)
    own["b"][0] = 5
    assert decode(WHOLE)["b"].tolist() == [1, 1]


def test_a_message_that_lies_anywhere_is_read():
    head = json.dumps(
        {
            "__metadata__": {"scalars": "{}"},
            "a": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]},
            "b": {"dtype": "F64", "shape": [1], "data_offsets": [1, 9]},
        }
    ).encode()
    buffer = len(head).to_bytes(8, "little") + head + b"\7" + np.array([2.5]).tobytes()
    found = decode(buffer)
    assert (found["a"].tolist(), found["b"].tolist()) == ([7], [2.5])
    assert found["b"].flags.aligned
