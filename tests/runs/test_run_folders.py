import time

import pytest

from cosilo import CoFED, Local
from cosilo.errors import RunError
from cosilo.runs.run_folders import instead, new_folder_name, runs_in


@pytest.mark.parametrize(
    ("change", "words"), [({"seed": 1}, "seed = 0, now it is 1"), ({}, "was begun with method")]
)
def test_a_directory_belongs_to_one_run(tmp_path, federation, change, words):
    federation(CoFED()).run(tmp_path / "run")
    with pytest.raises(RunError, match=words):
        federation(CoFED() if change else Local(), **change).run(tmp_path / "run")


def test_a_foreign_directory_is_left_alone(tmp_path, federation):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match="is not empty and not a run"):
        federation(CoFED()).run(tmp_path)


def test_runs_are_listed_oldest_first_and_damaged_ones_passed_over(tmp_path, federation):
    federation(Local()).run(tmp_path / "b")
    time.sleep(1.1)  # the creation time has seconds
    federation(Local()).run(tmp_path / "a")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/run.json").write_text("{")
    assert [run.folder.name for run in runs_in(tmp_path)] == ["b", "a"]
    told = []
    runs_in(tmp_path, told.append)
    assert told == [
        f"left out: {tmp_path / 'c/run.json'}: is damaged (not JSON); restore it or start a new run"
    ]
    assert new_folder_name(tmp_path, "local").name.endswith("-local-1")


def test_another_folder_is_named_that_is_free(tmp_path):
    (tmp_path / "run-2").mkdir()
    assert instead(tmp_path / "run").endswith("run-3, or delete this one")
