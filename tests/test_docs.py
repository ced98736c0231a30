"""The examples in the documents run, as they stand: every block of every page.

Python is executed, page by page from the top. Blocks in `console` show what their commands print, word for
word, and so does a block in `text` below a program; `python tests/test_docs.py` takes it again. TOML is
valid, and a block that begins with `# NAME.toml` is that file for the commands below it. Commands exist and
take the arguments shown.
"""

import contextlib
import functools
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
import typer

from cosilo import Federation, Institution, Run, Training
from cosilo.cli.main import app, main
from cosilo.config import recipe_file, settings
from cosilo.config.resolve import find_method
from cosilo.engines.flare.party_files import as_federation

ROOT = Path(__file__).parent.parent
DOCS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "docs").rglob("*.md")
    if "_build" not in path.relative_to(ROOT).parts
)
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]
#: What a block may be. One without a language is a drawing, or what happens at several machines.
LANGUAGES = {"python", "toml", "sh", "console", "text", ""}
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```$", re.M | re.S)


class Block(NamedTuple):
    language: str
    text: str


@functools.cache
def all_blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(language, textwrap.dedent(inside)) for _, language, inside in FENCE.findall(text)]


def blocks(page: str, language: str) -> list[str]:
    return [block.text for block in all_blocks(page) if block.language == language]


@pytest.mark.parametrize("page", PAGES)
def test_no_block_is_in_a_language_that_nothing_here_looks_at(page):
    assert {block.language for block in all_blocks(page)} <= LANGUAGES
    fences = re.findall(r"^ *```", (ROOT / page).read_text(encoding="utf-8"), re.M)
    assert len(fences) == 2 * len(all_blocks(page))


# Python and consoles


@functools.cache
def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))


def is_excerpt(example: str) -> bool:
    """Whether a block shows a part of the source, word for word, and is not a program."""
    return any(textwrap.indent(example, " " * depth) in sources() for depth in (0, 4))


#: Pages that go on where another one ended.
AFTER = {"docs/models.md": "README.md"}


def run_page(page: str, folder: Path) -> tuple[dict, list[tuple[Block, str]]]:
    """Do what a page says, in an empty folder: what Python leaves, and what is printed for each block."""
    names: dict = {"__name__": "__main__"}
    printed, said = [], ""
    for block in [*(all_blocks(AFTER[page]) if page in AFTER else []), *all_blocks(page)]:
        language, text = block
        if language == "python" and not is_excerpt(text):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, page, "exec"), names)
            said = output.getvalue()
            print(said, end="")
        elif language == "text" and said:
            printed.append((block, said))
        elif language == "toml" and (named := re.match(r"# ([\w-]+\.toml)\b", text)):
            (folder / named[1]).write_text(text)
        elif language == "console":
            answers = [f"$ {line}\n{answer(line, folder)}" for line in commands_in(text)]
            printed.append((block, "".join(answers)))
        if language != "python":
            said = ""
    return names, printed


def commands_in(text: str) -> list[str]:
    """The commands at the prompts of a console."""
    return re.findall(r"^[\w.-]*\$ (.*(?:(?<=\\)\n.*)*)", text, re.M)


def answer(command: str, folder: Path) -> str:
    """What a command prints, errors among it, in a terminal 90 characters wide."""
    words = shlex.split(command)
    printed = io.StringIO()
    if words[0] == "cosilo":  # in this process, which has imported everything
        with (
            mock.patch.object(sys, "argv", words),
            mock.patch.dict(os.environ, COLUMNS="90"),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            contextlib.suppress(SystemExit),
        ):
            main()
    else:
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=os.environ | path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        printed.write(done.stdout)
    lines = printed.getvalue().replace(str(folder), ".").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def comparable(text: str) -> str:
    """Without what differs from one run to the next: seconds and dates."""
    text = re.sub(r" *\b\d+(\.\d+)? (ms|s|min)\b", " 1 s", text)
    return re.sub(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?", "2026-01-01", text)


def same(shown: str, printed: str) -> bool:
    """Whether a console shows what was printed; a `…` on a line of its own stands for any lines."""
    parts = [re.escape(comparable(part)) for part in re.split(r"^…\n", shown, flags=re.M)]
    return re.fullmatch("(?s:.*)".join(parts), comparable(printed)) is not None


def about_readme(names: dict, printed: str) -> None:
    assert len([line for line in blocks("README.md", "python")[0].splitlines() if line]) <= 25
    assert min(names["run"].relative_accuracy().values()) >= 1


def about_networks(names: dict, printed: str) -> None:
    assert sorted(names["run"].relative_accuracy()) == ["even", "odd"]
    assert names["weights"]["head.weight"].shape == (10, 200)
    assert "'instances': 150" in printed
    assert names["layered"].about["members"] == {"hospital-a": ["ward-1", "ward-2"]}
    assert names["ward"].trained


def about_data(names: dict, printed: str) -> None:
    assert Path("split.png").stat().st_size > 0
    assert sorted(names["run"].scores("local")) == ["clinic"]
    assert names["run"].silos["clinic"].predict(names["digits"].X[:1]).dtype == names["digits"].y.dtype


def about_privacy(names: dict, printed: str) -> None:
    assert "ε = 8, δ = 1e-05 for each record" in printed


#: What should be true after the programs of a page, beyond that they run.
AFTERWARDS = {
    "README.md": about_readme,
    "docs/networks.md": about_networks,
    "docs/data.md": about_data,
    "docs/privacy.md": about_privacy,
}
DONE = [page for page in PAGES if blocks(page, "console") or not all(map(is_excerpt, blocks(page, "python")))]


def test_pages_with_more_to_check_have_programs():
    assert set(AFTERWARDS) <= set(DONE)


@pytest.mark.parametrize("page", DONE)
def test_what_a_page_says_can_be_done(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names, printed = run_page(page, tmp_path)
    for (_, shown), real in printed:
        assert same(shown, real), (
            f"{page} shows\n{shown}\nbut this is printed (python tests/test_docs.py takes it again):\n{real}"
        )
    AFTERWARDS.get(page, lambda names, printed: None)(names, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("$ a\ndone in 0.1 s\n", "$ a\ndone in 12.3 s\n", True),
        ("$ a\n│ 696 ms │\n", "$ a\n│  1.2 s │\n", True),
        ("$ a\none\n…\nlast\n", "$ a\none\ntwo\nthree\nlast\n", True),
        ("$ a\none\n…\n", "$ a\none\ntwo\n", True),
        ("$ a\n87.1%\n", "$ a\n87.2%\n", False),
        ("$ a\none\n", "$ a\none\ntwo\n", False),
    ],
)
def test_what_counts_as_the_same(shown, printed, fits):
    assert same(shown, printed) is fits


# TOML


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")])
def test_toml_blocks_are_what_a_file_may_say(page):
    for example in blocks(page, "toml"):
        values = tomllib.loads(example)
        if "members" in values:
            as_federation(values, page)
        elif "name" in values:
            settings.SiloSettings.model_validate(values)
        else:  # a recipe, or a part of one: what is missing does not matter, what is there does
            learner = values.pop("learner", None)
            rest = (
                {} if values.keys() & {"silo", "simulation"} else {"silo": [{"name": "a", "path": "a.csv"}]}
            )
            recipe = settings.validate({**values, **rest}, page)
            find_method(recipe.method, page)
            if learner is not None:
                Training(**settings.LearnerSettings(**learner).training)


# Commands


def typed(page: str) -> list[str]:
    """The commands that a page says to type: lines of shell blocks, and at prompts of any other block."""
    shell = [line for text in blocks(page, "sh") for line in text.replace("\\\n", " ").splitlines()]
    prompts = [line for block in all_blocks(page) for line in commands_in(block.text)]
    return [line.replace("\\\n", " ") for line in [*shell, *prompts]]


def mentioned(page: str) -> list[str]:
    """The commands that a page speaks of, in the middle of a sentence: `cosilo resume RUN`."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return [" ".join(found.split()) for found in re.findall(r"`(cosilo\s[^`]+)`", text)]


def find(words: list[str]):
    """The command that words name, and the words after its name."""
    command, rest = typer.main.get_command(app), words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"there is no command {rest[0]!r}: {' '.join(words)}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def parse(line: str) -> None:
    """Refuse a command that the command line would refuse; nothing is carried out."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["cosilo"]:
        command, rest = find(words)
        command.make_context(words[-1], rest, resilient_parsing="--help" in rest or "--version" in rest)
    elif words[:1] == ["make"]:
        targets = re.findall(r"^([\w/.-]+):(?!=)", (ROOT / "Makefile").read_text(), re.M)
        assert words[1] in targets, f"the Makefile has no target {words[1]!r}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_can_be_typed_as_shown(page):
    for line in typed(page):
        parse(line)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_spoken_of_exist_with_their_options(page):
    for text in mentioned(page):
        words = text.replace("COMMAND ", "run ").split()
        command, rest = find(words)
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= options, text


@pytest.mark.parametrize(
    "line", ["cosilo rum a.toml", "cosilo run", "cosilo run a.toml --sets b=1", "make love"]
)
def test_a_command_that_does_not_exist_is_found_out(line):
    with pytest.raises((AssertionError, typer.exceptions.TyperException)):
        parse(line)


# The README and the contributors' guide


def test_the_recipe_of_the_readme_is_valid(tmp_path):
    (example,) = blocks("README.md", "toml")
    (tmp_path / "clinics.toml").write_text(example)
    values = settings.validate(recipe_file.read(tmp_path / "clinics.toml"), "clinics.toml")
    assert [silo.label for silo in values.silo] == ["diagnosis", "diagnosis"]


@pytest.fixture
def census(tmp_path, monkeypatch):
    """The contributors' example as a file of its own, in a folder that nobody imports from otherwise."""
    (example,) = blocks("CONTRIBUTING.md", "python")
    (tmp_path / "census.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("census", None)


def test_the_method_of_the_contributors_guide_from_the_command_line(census, cosilo):
    recipe = """
[method]
use = "census.Census"
at_least = 2

[simulation]
dataset = "digits"
split = { use = "iid", silos = 3 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
shares = ["size", "metrics"]
"""
    (census / "recipe.toml").write_text(recipe)
    code, _, errors = cosilo("run", "recipe.toml", "--dir", "run")
    assert (code, errors) == (0, "")
    result = Run(census / "run").result
    assert len(result["scores"]["local"]) == 3
    assert result["instances"] == 1297  # those that a dataset of 1797 keeps for training


def test_the_method_of_the_contributors_guide_in_python(census, monkeypatch, silos):
    monkeypatch.syspath_prepend(census)
    module = importlib.import_module("census")
    inside = Institution("inside", silos(shares=["size", "metrics"]), shares=["size"])
    federation = Federation([*silos(shares=["size"]), inside], method=module.Census(at_least=46))
    run = federation.run(census / "run")
    assert run.findings(module.Count).instances == 3 * 45  # the institution's alone is large enough
    assert run.audit("tree")[-1]["fields"]["size"]["about"] == "training instances"


def test_the_method_of_the_contributors_guide_imports_from_cosilo_only():
    (example,) = blocks("CONTRIBUTING.md", "python")
    assert re.findall(r"(?:from|import) (cosilo\S*)", example) == ["cosilo"]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_silos_of_the_readme_gain_whatever_they_are_dealt(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, names = blocks("README.md", "python")[0], {}
    assert program.count("random_state=0") == 1
    exec(program.replace("random_state=0", f"random_state={seed}"), names)
    relative = names["run"].relative_accuracy()
    assert sum(relative.values()) / len(relative) > 1.05
    assert min(relative.values()) >= 1


# Links


@pytest.mark.parametrize("page", PAGES)
def test_links_between_documents_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        assert target.startswith("http") or (path.parent / target).exists(), target


def take_again() -> None:
    """Write what consoles print into the pages that show it."""
    for page in DONE:
        if not blocks(page, "console"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            _, printed = run_page(page, Path(folder).resolve())
        text = (ROOT / page).read_text(encoding="utf-8")
        for (language, shown), real in printed:
            if not same(shown, real):
                text = text.replace(f"```{language}\n{shown}```", f"```{language}\n{real}```", 1)
        (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    take_again()
