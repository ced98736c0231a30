import os
import subprocess
import sys

import pytest

from cosilo.errors import RunError
from cosilo.runs.locks import is_left, is_locked, locked


def test_two_processes_do_not_work_on_one_run(tmp_path):
    script = (
        "import sys, time, pathlib; from cosilo.runs.locks import locked\n"
        f"with locked(pathlib.Path({str(tmp_path)!r})): print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"in\n"
        with (
            pytest.raises(RunError, match=f"process {other.pid} is working on this run"),
            locked(tmp_path, 0.2),
        ):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    with locked(tmp_path, 5.0):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


def test_a_look_at_a_lock_changes_nothing(tmp_path):
    assert not is_locked(tmp_path)
    assert not is_left(tmp_path)  # nobody was ever there
    with locked(tmp_path):
        assert is_locked(tmp_path)
        assert not is_left(tmp_path)
    assert not is_locked(tmp_path)
    assert is_left(tmp_path)


def test_a_file_where_a_folder_is_wanted(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(RunError, match="is a file; wants a folder for the run"), locked(tmp_path / "run"):
        pass
