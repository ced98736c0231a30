"""No table cuts a name at 80 columns: what is too wide is folded, and every character is there."""

from collections.abc import Callable

import pytest

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


@pytest.fixture
def lines_of(cosilo, tmp_path, monkeypatch) -> Callable[..., list[str]]:
    """What a command prints in a terminal 80 columns wide, in a folder with the recipe."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def lines(*arguments: str) -> list[str]:
        code, output, _ = cosilo(*arguments)
        assert code == 0
        return output.splitlines()

    return lines


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


def test_check_run_and_runs(lines_of):
    whole(lines_of("check", "recipe.toml"), *LONG, "GaussianNB")
    whole(
        lines_of("run", "recipe.toml", "--dir", "runs/a-run-with-a-name-of-its-own-in-a-folder"),
        *LONG,
    )
    whole(lines_of("runs"), "runs/a-run-with-a-name-of-its-own-in-a-folder")


def test_compare(lines_of):
    named = "a-long-name-for-cofed-by-the-rule-of-the-paper"
    arguments = ("compare", "recipe.toml", "--methods", f"local,{named}", "--seeds", "1", "--dir", "compared")
    whole(lines_of(*arguments), "local", named)


def test_methods(lines_of):
    from cosilo.methods import METHODS

    whole(lines_of("methods"), *METHODS)


def test_reproduce(lines_of):
    from cosilo.recipes import RECIPES

    names = [path.stem for path in RECIPES.glob("*.toml") if "[reproduces]" in path.read_text()]
    assert len(names) > 20
    *lines, _ = lines_of("reproduce", "--list")  # no table: five columns left no room for words
    assert {line.partition(":")[0] for line in lines if line[:1] != " "} == set(names)
