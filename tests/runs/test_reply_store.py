"""The replies to one request: what a crash left of one does not count, and damage is named."""

import numpy as np
import pytest

from cosilo.errors import RunError
from cosilo.runs.durable_files import checksum
from cosilo.runs.reply_store import ReplyStore

LARGE = np.arange(20_000, dtype=np.int32).tobytes()


def two(folder):
    store = ReplyStore(folder)
    assert store.add("ä", b"{first}\n", {"seconds": 0.5}) == checksum(b"{first}\n")
    store.add("b", b"", {})
    return store


def test_replies_are_read_back_as_they_came(tmp_path):
    for store in (two(tmp_path), ReplyStore(tmp_path)):
        assert {name: store.read(name) for name in store} == {"ä": b"{first}\n", "b": b""}
        assert store.facts("ä") == {"seconds": 0.5, "checksum": checksum(b"{first}\n")}
        with pytest.raises(RunError, match=r"small: is damaged \(no reply of 'c'\)"):
            store.read("c")


def test_what_a_crash_left_of_a_reply_is_written_over(tmp_path):
    two(tmp_path)
    path = tmp_path / "small"
    before = path.read_bytes()
    ReplyStore(tmp_path).add("c", b"a third one", {})
    whole = path.read_bytes()
    for end in range(len(before) + 1, len(whole)):
        path.write_bytes(whole[:end])
        cut = ReplyStore(tmp_path)
        assert sorted(cut) == ["b", "ä"]
        cut.add("d", b"?", {})
        again = ReplyStore(tmp_path)
        assert {name: again.read(name) for name in again} == {"ä": b"{first}\n", "b": b"", "d": b"?"}


def test_a_damaged_line_is_named(tmp_path):
    two(tmp_path)
    path = tmp_path / "small"
    path.write_bytes(path.read_bytes().replace(b"silo", b"silk", 1))
    with pytest.raises(RunError, match="small: is damaged"):
        ReplyStore(tmp_path)


def test_a_line_that_does_not_end_hides_nothing_after_it(tmp_path):
    """A crash leaves the beginning of a line; a whole one without its line break is damage."""
    two(tmp_path)
    path = tmp_path / "small"
    whole = path.read_bytes()
    last = whole.rindex(b"\n")
    for place in (whole.index(b"\n"), last):
        path.write_bytes(whole[:place] + b"J" + whole[place + 1 :])
        with pytest.raises(RunError, match="small: is damaged"):
            ReplyStore(tmp_path)
    path.write_bytes(whole[:last])
    assert list(ReplyStore(tmp_path)) == ["ä"]


def test_a_large_reply_counts_when_its_line_is_there(tmp_path):
    store = ReplyStore(tmp_path)
    store.add("a", LARGE, {})
    store.add("b", b"small", {})
    line = (tmp_path / "small").read_bytes().partition(b"\n")[0]
    assert (tmp_path / "a.safetensors").read_bytes() == LARGE
    again = ReplyStore(tmp_path)
    assert {name: again.read(name) for name in again} == {"a": LARGE, "b": b"small"}
    (tmp_path / "small").write_bytes(line[:-1])
    cut = ReplyStore(tmp_path)
    assert list(cut) == []
    cut.add("a", LARGE[::-1], {})
    assert ReplyStore(tmp_path).read("a") == LARGE[::-1]


def test_a_reply_without_a_checksum_is_read_with_that_of_its_request_only(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(LARGE)
    store = ReplyStore(tmp_path)
    assert list(store) == []
    assert store.read("a", checksum(LARGE)) == LARGE
    with pytest.raises(RunError, match=r"a\.safetensors: is of a version of cosilo that kept no checksum"):
        store.read("a")
    with pytest.raises(RunError, match=r"a\.safetensors: is damaged"):
        store.read("a", checksum(b""))


def test_line_and_request_have_to_agree(tmp_path):
    store = two(tmp_path)
    assert store.read("ä", checksum(b"{first}\n")) == b"{first}\n"
    with pytest.raises(RunError, match="small: is damaged"):
        store.read("ä", checksum(b"another"))
