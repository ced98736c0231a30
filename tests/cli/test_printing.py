"""What is printed is what there is: brackets are no markup, and names are folded, not cut."""

import os
import subprocess
import sys

import pytest
import typer.main
from rich.text import Text

from cosilo.cli.main import app
from cosilo.cli.printing import new_table, say, show, tell

ODD = ["[/]", "[red]", "[bold]b[/bold]", ":smile:", "\\[x]"]


def commands(group, path=()):
    """Every command of the command line, by what one types for it."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_brackets_where_the_text_has_them(path):
    command = COMMANDS[path]
    for text in [command.help, *[getattr(one, "help", None) for one in command.params]]:
        if text is not None:
            assert Text.from_markup(text).plain == text.replace("\\[", "[")


@pytest.mark.parametrize("word", ["compare", "reproduce"])
def test_help_names_tables_of_a_recipe(cosilo, word):
    table = {"compare": "[compare.NAME]", "reproduce": "[reproduces]"}[word]
    code, output, _ = cosilo(word, "--help")
    assert code == 0
    assert table in output


@pytest.mark.parametrize("name", ODD)
def test_lines_and_tables_take_any_name(capsys, name):
    say(name)
    tell(name)
    table = new_table(name, title=name)
    table.add_row(name)
    show(table)
    shown = capsys.readouterr()
    assert shown.out.count(name) == 4
    assert shown.err == f"{name}\n"


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """Write a recipe with these silos, whose classes are called [/] and [red]."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{age}.5,{'[/]' if age % 2 else '[red]'}\n" for age in range(20, 60))
    (tmp_path / "people.csv").write_text("age,sick\n" + rows)
    (tmp_path / "pool.csv").write_text("age\n" + "\n".join(f"{age}.5" for age in range(20, 60)) + "\n")

    def write(*names):
        silos = "".join(f'[[silo]]\nname = "{name}"\npath = "people.csv"\n' for name in names)
        learner = 'learner = { use = "sklearn.tree.DecisionTreeClassifier" }'
        text = f'[pool]\npath = "pool.csv"\n[defaults]\nlabel = "sick"\n{learner}\n{silos}'
        (tmp_path / "[recipe].toml").write_text(text)
        return "[recipe].toml"

    return write


def test_commands_take_classes_and_files_with_odd_names(recipe, cosilo):
    file = recipe("north", "south")
    code, output, errors = cosilo("check", file)
    assert (code, errors) == (0, "")
    assert file in output
    assert "[/], [red]" in output
    code, output, errors = cosilo("run", file, "--dir", "[x]")
    assert (code, errors) == (0, "")
    assert "│ north " in output
    assert "│ [/] [red] " in output
    assert "report: [x]/report.html" in output
    assert "│ [x] " in cosilo("runs", ".")[1]
    code, output, errors = cosilo("compare", file, "--methods", "local", "--seeds", "1", "--dir", "[y]")
    assert (code, errors) == (0, "local, seed 0 (1 of 1)\n")
    assert "comparison: [y]" in output
    code, _, errors = cosilo("check", file, "--set", "defaults.label=[/]")
    assert code == 2
    assert "no column '[/]'" in errors


def test_a_table_that_is_too_wide_folds_names_and_loses_no_letter(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    name = "St-Elsewhere-" * 6 + "end"
    table = new_table("silo", "task", "federated", "relative")
    table.add_row(name, "a b c", "97.1%", "1.012")
    show(table)
    shown = capsys.readouterr().out
    assert "…" not in shown
    column = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    assert "".join(column) == name
    assert "97.1%" in shown


def test_names_of_silos_are_whole_in_a_pipe(recipe):
    long = "north-western-regional-hospital-of-the-second-kind-and-more"
    command = [sys.executable, "-m", "cosilo.cli.main", "run", recipe(long, "south"), "--dir", "run"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert "".join(row.split("│")[1].strip() for row in rows) == long + "south"
    assert max(map(len, rows)) <= 80


def test_the_width_is_that_of_the_moment(capsys, monkeypatch):
    table = new_table("words")
    table.add_row("many words " * 20)
    widths = []
    for columns in ("40", "90"):
        monkeypatch.setenv("COLUMNS", columns)
        show(table)
        widths.append(max(map(len, capsys.readouterr().out.splitlines())))
    assert widths[0] <= 40 < widths[1] <= 90
