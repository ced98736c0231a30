"""Files that are whole or not there, and logs that outlive a crash."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cosilo.errors import RunError
from cosilo.runs.durable_files import (
    append_line,
    drop_partial_line,
    link,
    new_folder,
    read_json,
    read_lines,
    write,
    write_json,
)


def test_a_file_is_whole_or_the_one_before(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})

    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_whole(tmp_path):
    def fail_half_way():
        with new_folder(tmp_path / "step") as folder:
            (folder / "half").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert not (tmp_path / "step").exists()
    with new_folder(tmp_path / "step") as folder:  # what the failure left does not disturb
        (folder / "all").touch()
    assert [path.name for path in (tmp_path / "step").iterdir()] == ["all"]


def test_a_log_survives_a_line_cut_short(tmp_path):
    log = tmp_path / "log.jsonl"
    append_line(log, {"a": 1})
    with log.open("a") as file:
        file.write('{"a": 2')
    assert read_lines(log) == [{"a": 1}]
    drop_partial_line(log)
    append_line(log, {"a": 3})
    assert read_lines(log) == [{"a": 1}, {"a": 3}]


def test_a_damaged_log_is_named(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(RunError, match="line 2 is damaged"):
        read_lines(log)


def test_a_file_system_that_is_read_only_is_named():
    with pytest.raises(RunError, match=r"/sys/x: writing is not allowed; .*completed steps are kept"):
        write(Path("/sys/x"), b"x")


def test_a_file_is_written_over_unless_it_has_another_name(tmp_path):
    large = bytes(2**16)
    old, new, other = tmp_path / "old", tmp_path / "new", tmp_path / "other"
    write(old, large)
    space = old.stat().st_ino
    write(new, b"1" * 2**16, over=old)
    assert (new.stat().st_ino, old.exists()) == (space, False)
    assert link(new, other)
    write(old, b"2" * 2**16, over=new)
    assert other.read_bytes() == b"1" * 2**16
    assert (other.stat().st_ino, new.exists()) == (space, False)


def flipped(content: bytes) -> Iterator[bytes]:
    """Every content that differs in one bit."""
    for place in range(len(content)):
        for bit in range(8):
            other = bytearray(content)
            other[place] ^= 1 << bit
            yield bytes(other)


@pytest.mark.parametrize("indent", [None, 1])
def test_no_flipped_bit_changes_what_a_file_says(tmp_path, indent):
    path, value = tmp_path / "x.json", {"silos": ["a", "b"], "αβ": 0.25, "of": {"a": 1, "c": None}}
    write_json(path, value, indent=indent)
    named = 0
    for content in flipped(path.read_bytes()):
        path.write_bytes(content)
        try:
            assert read_json(path) == value
        except RunError:
            named += 1
    assert named > 0.95 * 8 * len(path.read_bytes())


def test_no_flipped_bit_changes_what_a_log_says(tmp_path):
    log, lines = tmp_path / "log.jsonl", [{"ask": 1}, {"ask": 2, "*": "JJ"}, {"ask": 3}]
    for line in lines:
        append_line(log, line)
    for content in flipped(log.read_bytes()):
        log.write_bytes(content)
        try:
            assert read_lines(log) == lines
        except RunError:
            continue


def test_a_last_line_that_ends_in_something_else_is_not_cut_off(tmp_path):
    log = tmp_path / "log.jsonl"
    append_line(log, {"a": 1})
    append_line(log, {"a": 2})
    log.write_bytes(log.read_bytes()[:-1] + b"\x0b")
    for read in (read_lines, drop_partial_line):
        with pytest.raises(RunError, match=r"log\.jsonl: line 2 is damaged"):
            read(log)
    log.write_bytes(log.read_bytes()[:-1])  # a crash, just before the line break
    assert read_lines(log) == [{"a": 1}]
    drop_partial_line(log)
    append_line(log, {"a": 3})
    assert read_lines(log) == [{"a": 1}, {"a": 3}]
