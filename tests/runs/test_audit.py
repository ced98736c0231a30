import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.runs.audit import AuditLog, broken_at, outgoing
from cosilo.runs.durable_files import read_lines


@pytest.fixture
def log(tmp_path):
    audit = AuditLog(tmp_path / "audit.jsonl")
    for number in range(1, 4):
        audit.came(number, "label", b"ask", "0" * 64)
        audit.left(number, "label", {"votes": {"kind": "labels"}}, 5, "digest", 0.5)
    audit.came(4, "label", b"ask", "0" * 64)
    audit.failed(4, "label", "silo 'a': no")
    return tmp_path / "audit.jsonl"


def test_it_knows_what_was_done_after_it_is_opened_again(log):
    again = AuditLog(log)
    assert again.steps == ["label"] * 3
    assert again.answered == {1, 2, 3}
    assert (again.spent.asks, again.spent.seconds, again.spent.bytes) == (4, 1.5, 15)
    assert len(outgoing(log)) == 4
    assert outgoing(log)[-1]["failure"] == "silo 'a': no"
    again.left(3, "label", {}, 5, "digest", 0.0)
    assert outgoing(log)[-1]["again"] is True
    assert broken_at(read_lines(log)) is None
    assert again.spent.bytes == 15


@given(st.data())
def test_a_line_that_is_changed_moved_or_taken_out_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    audit = AuditLog(path)
    for number in range(1, 5):
        audit.came(number, "label", b"ask", "0" * 64)
    lines = read_lines(path)
    place = data.draw(st.integers(0, len(lines) - 2))
    how = data.draw(st.sampled_from(["change", "swap", "drop"]))
    if how == "change":
        lines[place]["step"] = "train"
    elif how == "swap":
        lines[place], lines[place + 1] = lines[place + 1], lines[place]
    else:
        del lines[place]
    assert broken_at(lines) == place + 1


def test_commands_show_and_verify_it(cosilo, federation, tmp_path):
    federation().run(tmp_path / "run")
    code, out, _ = cosilo("audit", tmp_path / "run", "tree")
    assert code == 0
    assert "its vote on each pool instance" in out
    path = tmp_path / "run/silos/tree/audit.jsonl"
    assert f"the log is whole: {len(read_lines(path))} lines" in out
    sent = sum(entry.get("bytes", 0) for entry in outgoing(path))
    assert f"left: {sent} bytes in {len(outgoing(path))} messages" in out
    lines = path.read_text().splitlines()
    changed = {**json.loads(lines[3]), "bytes": 1}
    del changed["checksum"]  # who changes a line on purpose sees to that
    lines[3] = json.dumps(changed)
    path.write_text("\n".join(lines) + "\n")
    code, _, err = cosilo("audit", tmp_path / "run", "tree")
    assert (code, "line 4 is not as it was written" in err) == (2, True)
    code, _, err = cosilo("audit", tmp_path / "run", "tre")
    assert "got no silo 'tre' (did you mean 'tree'?)" in err


def test_a_log_without_its_end_is_not_whole(cosilo, federation, tmp_path):
    federation().run(tmp_path / "run")
    path = tmp_path / "run/silos/tree/audit.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    last = json.loads(lines[-1])["ask"]
    for kept in (lines[:-1], lines[:2], []):
        path.write_text("".join(kept))
        code, out, err = cosilo("audit", tmp_path / "run", "tree")
        assert code == 2
        assert f"has no line about the reply to ask {last}, which left: its end is missing" in err
        assert "is whole" not in out
    path.unlink()
    assert f"has no line about the reply to ask {last}" in cosilo("audit", tmp_path / "run", "tree")[2]
