"""Small replies in one file: what a crash left of one does not count, and damage is named."""

import pytest

from cosilo.errors import RunError
from cosilo.runs.small_replies import SmallReplies


def two(path):
    replies = SmallReplies(path)
    replies.add("ä", b"{first}\n")
    replies.add("b", b"")
    return replies


def test_replies_are_read_back_as_they_came(tmp_path):
    for replies in (two(tmp_path / "small"), SmallReplies(tmp_path / "small")):
        assert {name: replies.read(name) for name in replies} == {"ä": b"{first}\n", "b": b""}
        with pytest.raises(FileNotFoundError, match="no reply of 'c'"):
            replies.read("c")


def test_what_a_crash_left_of_a_reply_is_written_over(tmp_path):
    path = tmp_path / "small"
    two(path)
    before = path.read_bytes()
    SmallReplies(path).add("c", b"a third one")
    whole = path.read_bytes()
    for end in range(len(before) + 1, len(whole)):
        path.write_bytes(whole[:end])
        cut = SmallReplies(path)
        assert sorted(cut) == ["b", "ä"]
        cut.add("d", b"?")
        assert {name: SmallReplies(path).read(name) for name in SmallReplies(path)} == {
            "ä": b"{first}\n",
            "b": b"",
            "d": b"?",
        }


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "small"
    two(path)
    path.write_bytes(path.read_bytes().replace(b"silo", b"silk"))
    with pytest.raises(RunError, match="small: is damaged"):
        SmallReplies(path)
