"""No table cuts a name at 80 columns: what is too wide is folded, and every character is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COSILO = str(Path(sys.executable).with_name("cosilo"))
LONG = ["klinikum-am-rande-der-grossen-stadt", "zürich-kantonsspital", "a"]
RECIPE = f"""
[method]
use = "cofed"

[simulation]
dataset = "digits"
names = {LONG}
split = {{ use = "iid", silos = 3, size = 60 }}
learners = [{{ use = "sklearn.naive_bayes.GaussianNB" }}]

[pool]
rest = true
size = 100

[compare.a-long-name-for-cofed-by-the-rule-of-the-paper]
use = "cofed"
rule = "paper"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "recipe.toml").write_text(RECIPE)
    return folder


def lines_of(folder: Path, *arguments: str) -> list[str]:
    """What a command prints in a terminal 80 columns wide."""
    environment = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [COSILO, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def columns_of(lines: list[str]) -> list[str]:
    """The text of each column of a table, put together again from its lines."""
    found: list[str] = []
    for line in lines:
        if line[:1] in "│┃" and line.count(line[0]) > 2:
            cells = line.strip("│┃").split(line[0])
            found += [""] * (len(cells) - len(found))
            for place, cell in enumerate(cells):
                found[place] += cell.strip()
    return found


def whole(lines: list[str], *names: str) -> None:
    assert all(len(line) <= 80 for line in lines if line[:1] in "│┃┏┡└")
    assert not any("…" in line for line in lines if line[:1] in "│┃")
    columns = columns_of(lines)
    for name in names:
        assert any(name in column for column in columns), name


def test_check_run_and_runs(folder):
    whole(lines_of(folder, "check", "recipe.toml"), *LONG, "GaussianNB")
    whole(
        lines_of(folder, "run", "recipe.toml", "--dir", "runs/a-run-with-a-name-of-its-own-in-a-folder"),
        *LONG,
    )
    whole(lines_of(folder, "runs"), "runs/a-run-with-a-name-of-its-own-in-a-folder")


def test_compare(folder):
    named = "a-long-name-for-cofed-by-the-rule-of-the-paper"
    arguments = ("compare", "recipe.toml", "--methods", f"local,{named}", "--seeds", "1", "--dir", "compared")
    whole(lines_of(folder, *arguments), "local", named)


def test_methods(folder):
    from cosilo.methods import METHODS

    whole(lines_of(folder, "methods"), *METHODS)


def test_reproduce(folder):
    from cosilo.recipes import RECIPES

    names = [path.stem for path in RECIPES.glob("*.toml") if "[reproduces]" in path.read_text()]
    assert len(names) > 20
    whole(lines_of(folder, "reproduce", "--list"), *names)
