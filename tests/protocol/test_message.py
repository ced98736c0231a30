import numpy as np
import pytest

from cosilo.errors import BadMessage
from cosilo.protocol.forms import Expected
from cosilo.protocol.message import KINDS, Fields, Shared, State, check, describe
from cosilo.protocol.wire import decode, encode


def test_groups_of_arrays_arrive_as_groups():
    weights = {"conv.weight": np.ones((2, 3), np.float32), "conv.bias": np.zeros(2), "seen": np.array(3)}
    back = decode(encode({"weights": weights, "size": 4}))
    assert back["size"] == 4
    assert sorted(back["weights"]) == sorted(weights)
    for name, array in weights.items():
        np.testing.assert_array_equal(back["weights"][name], array)
    check(back, {"weights": Shared("weights"), "size": Shared("size")})
    weights["conv.bias"] = np.array([np.nan, 0])
    with pytest.raises(BadMessage, match=r"conv\.bias holds NaN"):
        check({"weights": weights}, {"weights": Shared("weights")})
    with pytest.raises(BadMessage, match="wants an array"):
        check({"votes": weights}, {"votes": Shared("logits")})


EXPECTED = Expected(classes=3, pool=4)


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        (np.array([0, 1, 2], np.int8), "got 3 labels; the pool has 4"),
        (np.array([0, 1, 2, 3], np.int8), "label 3 of instance 3 is outside the task"),
        (np.array([0, 1, -2, 2], np.int8), "label -2 of instance 2 is outside the task"),
        (np.array([0.0, 1.0, 2.0, 0.0]), "wants one whole number per pool instance"),
        (np.zeros((4, 1), np.int8), "wants one whole number per pool instance"),
        ("0120", "got str"),
    ],
)
def test_labels_are_held_against_task_and_pool(votes, words):
    with pytest.raises(BadMessage, match=words):
        check({"votes": votes}, {"votes": Shared("labels")}, EXPECTED)


def test_good_labels_pass():
    check({"votes": np.array([0, -1, 2, 1], np.int8)}, {"votes": Shared("labels")}, EXPECTED)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("metrics", float("nan")),
        ("metrics", "high"),
        ("metrics", np.array([0.5])),
        ("size", 0),
        ("size", 2.5),
        ("size", True),
        ("weights", np.array([1.0, np.inf])),
        ("weights", 3.0),
        ("logits", np.array([np.nan])),
        ("task", 3),
    ],
)
def test_each_kind_has_its_form(kind, value):
    with pytest.raises(BadMessage, match="field 'x'"):
        check({"x": value}, {"x": Shared(kind)})


def test_only_declared_fields_and_all_of_them():
    with pytest.raises(BadMessage, match="'secret' was not declared; declared are \\['accuracy'\\]"):
        check({"accuracy": 0.5, "secret": 1}, {"accuracy": Shared("metrics")})
    with pytest.raises(BadMessage, match="'accuracy' is missing"):
        check({}, {"accuracy": Shared("metrics")})


# ---------------------------------------------------------------------- reading by type

WHOLE = {
    "votes": np.array([1, -1]),
    "weights": {"w": np.ones(2)},
    "size": 3,
    "loss": 0.5,
    "sure": True,
    "stage": "local",
    "classes": ["a", "b"],
}


@pytest.mark.parametrize(
    ("read", "good", "wants"),
    [
        (Fields.array, {"votes"}, "an array"),
        (Fields.group, {"weights"}, "named arrays"),
        (Fields.number, {"size", "loss"}, "a number"),
        (Fields.integer, {"size"}, "a whole number"),
        (Fields.flag, {"sure"}, "true or false"),
        (Fields.text, {"stage"}, "a text"),
        (Fields.names, {"classes"}, "a list of names"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_field_is_read_by_its_type_or_named(read, good, wants):
    fields = Fields(decode(encode(WHOLE)))
    for name in WHOLE:
        if name in good:
            np.testing.assert_equal(read(fields, name), WHOLE[name])
        else:
            with pytest.raises(BadMessage, match=rf"^field '{name}' is a \w+; wants {wants}$"):
                read(fields, name)
    with pytest.raises(BadMessage, match=r"^field 'other' is missing$"):
        read(fields, "other")


def test_a_state_is_its_own_copy():
    before = {"round": 1}
    state = State(before)
    state["round"] += 1
    del state["round"]
    assert (before, dict(state)) == ({"round": 1}, {})


def test_a_description_has_kind_form_bytes_and_meaning():
    fields = {"votes": Shared("labels", "who wins"), "size": Shared("size"), "weights": Shared("weights")}
    message = {
        "votes": np.zeros(3, np.int8),
        "size": 12,
        "weights": {"a": np.zeros(2), "b": np.zeros((2, 2))},
    }
    found = describe(message, fields)
    assert found["votes"] == {"kind": "labels", "form": "int8[3]", "bytes": 3, "about": "who wins"}
    assert found["size"] == {"kind": "size", "form": "int", "bytes": 2, "about": KINDS["size"]}
    assert (found["weights"]["form"], found["weights"]["bytes"]) == ("2 arrays, 6 numbers", 48)


def test_an_optional_field_may_be_left_out_but_is_checked_if_it_is_there():
    fields = {"accuracy": Shared("metrics", optional=True)}
    check({}, fields)
    check({"accuracy": 0.5}, fields)
    with pytest.raises(BadMessage, match="field 'accuracy': got 'high'; wants one finite number"):
        check({"accuracy": "high"}, fields)
