import numpy as np
import pytest

from cosilo.errors import RunError
from cosilo.protocol.carrier import Failure, FailureKind
from cosilo.protocol.wire import encode
from cosilo.runs.durable_files import checksum, read_lines
from cosilo.runs.journal import Arrival, Journal, Mark, Replies

BODY = encode({"votes": np.array([1, 2], np.int8)})
LARGE_BODY = encode({"votes": np.zeros(100_000, np.int8)})


def filled(tmp_path):
    journal = Journal(tmp_path / "j")
    entry = journal.entry(1, "label", ["a", "b", "c"])
    entry.keep("a", BODY, Arrival(0.5, {}))
    entry.keep("c", BODY, Arrival(0.7, {}))
    entry.failures["b"] = Failure(FailureKind.LOST, "silo 'b': gone")
    return journal, entry


def close(tmp_path):
    journal, entry = filled(tmp_path)
    journal.close(entry)
    return entry


def test_a_closed_entry_is_read_back_as_it_was(tmp_path):
    close(tmp_path)
    entry = Journal(tmp_path / "j").entry(1, "label", ["a", "b", "c"])
    assert entry.done
    replies = Replies(entry)
    assert list(replies) == ["a", "c"]
    assert replies["c"]["votes"].tolist() == [1, 2]
    assert replies.failures == {"b": Failure(FailureKind.LOST, "silo 'b': gone")}
    with pytest.raises(KeyError):
        replies["b"]


def test_replies_of_an_open_entry_are_kept_but_failures_are_asked_again(tmp_path):
    filled(tmp_path)
    entry = Journal(tmp_path / "j").entry(1, "label", ["a", "b", "c"])
    assert not entry.done
    assert sorted(entry.there) == ["a", "c"]
    assert entry.failures == {}


def test_another_method_cannot_go_on_with_this_journal(tmp_path):
    close(tmp_path)
    with pytest.raises(RunError, match="ask 1 was 'label', the method now asks for 'train'"):
        Journal(tmp_path / "j").entry(1, "train", ["a", "b", "c"])
    with pytest.raises(RunError, match="other silos"):
        Journal(tmp_path / "j").entry(1, "label", ["a"])


@pytest.mark.parametrize("content", ["", "{", "[]", '{"silos": ["a", "b", "c"]}', "null"])
def test_a_damaged_entry_is_named(tmp_path, content):
    close(tmp_path)
    path = tmp_path / "j/00001-label/done.json"
    path.write_text(content)
    with pytest.raises(RunError, match=r"done\.json: is damaged"):
        Journal(tmp_path / "j").entry(1, "label", ["a", "b", "c"])


def test_who_replied_is_known_without_reading_replies(tmp_path):
    _, entry = filled(tmp_path)
    (tmp_path / "j/00001-label/small").unlink()
    assert [name in Replies(entry) for name in "abcd"] == [True, False, True, False]


def test_a_damaged_large_reply_is_named(tmp_path):
    journal = Journal(tmp_path / "j")
    entry = journal.entry(1, "label", ["a"])
    entry.keep("a", LARGE_BODY, Arrival(0.5, {}))
    journal.close(entry)
    path = tmp_path / "j/00001-label/a.safetensors"
    path.write_bytes(LARGE_BODY[:-1])
    with pytest.raises(RunError, match=r"a\.safetensors: is damaged"):
        Replies(entry)["a"]
    path.unlink()
    with pytest.raises(RunError, match=r"a\.safetensors: is damaged"):
        Replies(entry)["a"]
    with pytest.raises(RunError, match=r"a\.safetensors: is damaged \(it is missing\)"):
        Replies(Journal(tmp_path / "j").entry(1, "label", ["a"]))["a"]
    (tmp_path / "j/00001-label/small").unlink()
    with pytest.raises(RunError, match=r"00001-label/small: is damaged \(no reply of 'a'\)"):
        Replies(Journal(tmp_path / "j").entry(1, "label", ["a"]))["a"]


def test_small_replies_share_a_file(tmp_path):
    close(tmp_path)
    assert sorted(path.name for path in (tmp_path / "j/00001-label").iterdir()) == ["done.json", "small"]


@pytest.mark.parametrize("left", [1, 20, 100, len(BODY) + 30])
def test_what_a_crash_left_of_a_small_reply_is_written_over(tmp_path, left):
    filled(tmp_path)
    path = tmp_path / "j/00001-label/small"
    half = len(path.read_bytes()) // 2  # both replies take as much
    path.write_bytes(path.read_bytes()[: half + left])
    journal = Journal(tmp_path / "j")
    entry = journal.entry(1, "label", ["a", "b", "c"])
    assert sorted(entry.there) == ["a"]
    entry.keep("b", BODY, Arrival(0.1, {}, checksum(BODY)))
    journal.close(entry)
    again = Journal(tmp_path / "j").entry(1, "label", ["a", "b", "c"])
    assert sorted(again.there) == ["a", "b"]
    assert Replies(again)["b"]["votes"].tolist() == [1, 2]
    assert len(path.read_bytes()) == 2 * half


def test_a_damaged_small_reply_is_named(tmp_path):
    entry = close(tmp_path)
    path = tmp_path / "j/00001-label/small"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"\7")
    entry.arrivals["c"].checksum = checksum(BODY)
    with pytest.raises(RunError, match=r"small: is damaged \(its checksum differs\)"):
        Replies(entry)["c"]
    path.write_bytes(b"[" + whole[1:])
    with pytest.raises(RunError, match=r"00001-label/small: is damaged"):
        Journal(tmp_path / "j").entry(1, "label", ["a", "b", "c"])


def test_every_completed_ask_is_logged_once(tmp_path):
    close(tmp_path)
    (tmp_path / "asks.jsonl").unlink()  # killed between the two writes
    for _ in range(2):
        journal = Journal(tmp_path / "j")
        journal.close(journal.entry(1, "label", ["a", "b", "c"]))
    (line,) = read_lines(tmp_path / "asks.jsonl")
    assert (line["number"], line["step"], sorted(line["arrivals"])) == (1, "label", ["a", "c"])


def test_a_mark_replaces_the_journal_before_it_but_not_the_meeting(tmp_path):
    journal = Journal(tmp_path / "j")
    for number in (1, 2, 3):
        entry = journal.entry(number, "step", ["a"])
        entry.keep("a", BODY, Arrival(0.1, {}))
        journal.close(entry)
    weights = {"layer.weight": np.arange(4.0)}
    journal.mark(Mark(3, 1, {"round": 7, "weights": weights}, {"scores": {}}, {"state": {"inc": 2**100}}))
    assert sorted(path.name for path in (tmp_path / "j").iterdir()) == ["00001-step", "mark.safetensors"]
    mark = Journal(tmp_path / "j").last_mark
    assert mark.number == 3
    assert mark.state["round"] == 7
    np.testing.assert_array_equal(mark.state["weights"]["layer.weight"], weights["layer.weight"])
    assert mark.rng == {"state": {"inc": 2**100}}
    assert len(read_lines(tmp_path / "asks.jsonl")) == 3


def test_a_damaged_mark_is_named(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.mark(Mark(1, 1, {"round": 1}, {}, {}))
    (tmp_path / "j/mark.safetensors").write_bytes(b"x" * 40)
    with pytest.raises(RunError, match=r"mark\.safetensors: is damaged"):
        Journal(tmp_path / "j")


def test_a_reply_that_the_silo_keeps_is_not_written_again(tmp_path):
    (tmp_path / "kept").write_bytes(LARGE_BODY)
    entry = Journal(tmp_path / "j").entry(1, "label", ["a"])
    entry.keep("a", LARGE_BODY, Arrival(0.5, {}), tmp_path / "kept")
    assert (tmp_path / "j/00001-label/a.safetensors").samefile(tmp_path / "kept")


def test_where_files_can_have_one_name_only_a_reply_is_written(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    (tmp_path / "kept").write_bytes(LARGE_BODY)
    entry = Journal(tmp_path / "j").entry(1, "label", ["a"])
    entry.keep("a", LARGE_BODY, Arrival(0.5, {}), tmp_path / "kept")
    assert (tmp_path / "j/00001-label/a.safetensors").read_bytes() == LARGE_BODY
    assert not (tmp_path / "j/00001-label/a.safetensors").samefile(tmp_path / "kept")
