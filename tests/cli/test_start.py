"""Commands that compute nothing do not wait for the libraries that compute."""

import json
import subprocess
import sys

import pytest

HEAVY = {"sklearn", "pandas", "matplotlib", "scipy", "torch", "nvflare", "ray", "pyarrow", "skops"}
RECIPE = """
[simulation]
dataset = "digits"
split = { use = "iid", silos = 2 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
"""
COMMAND = """
import json, sys
from cosilo.cli.main import main
sys.argv = ["cosilo", *sys.argv[1:]]
try:
    main()
except SystemExit as stop:
    print(json.dumps([stop.code, sorted(sys.modules)]))
"""


def loaded(code, *words, folder=None):
    """What the last line of a fresh process says, and what the process wrote to stderr."""
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def packages(modules):
    return {name.partition(".")[0] for name in modules}


def test_the_package_and_the_command_line_load_little():
    found, _ = loaded("import json, sys, cosilo.cli.main; print(json.dumps(sorted(sys.modules)))")
    assert packages(found) & (HEAVY | {"numpy", "pydantic", "rich"}) == set()
    assert len(found) < 220


@pytest.mark.parametrize(
    ("words", "most"), [(["--help"], 450), (["compare", "--help"], 450), (["methods"], 600), (["runs"], 600)]
)
def test_commands_that_only_look_load_nothing_that_computes(tmp_path, words, most):
    (code, modules), errors = loaded(COMMAND, *words, folder=tmp_path)
    assert (code, errors) == (0, "")
    assert packages(modules) & HEAVY == set()
    assert len(modules) < most


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sede = 3\n" + RECIPE, "error: recipe.toml: sede: there is no such key (did you mean 'seed'?)"),
        (
            RECIPE + '[method]\nuse = "cofde"\n',
            "there is no method 'cofde' (did you mean 'cofed'?)",
        ),
        (RECIPE + "[method]\nalhpa = 1\n", "method.alhpa: there is no such key (did you mean 'alpha'?)"),
    ],
)
def test_a_misspelt_recipe_is_told_before_anything_that_computes_is_loaded(tmp_path, text, line):
    (tmp_path / "recipe.toml").write_text(text)
    (code, modules), errors = loaded(COMMAND, "check", "recipe.toml", folder=tmp_path)
    assert code == 2
    assert line in errors
    assert errors.count("\n") == 1
    assert packages(modules) & HEAVY == set()
    assert len(modules) < 600


def test_names_of_the_package_are_there_when_they_are_asked_for():
    import cosilo

    assert [cosilo.Silo.__name__, cosilo.FML.__name__, cosilo.Run.__name__] == ["Silo", "FML", "Run"]
    assert {"CoFED", "Target", "METHODS"} <= set(dir(cosilo))
    assert all(hasattr(cosilo, name) for name in cosilo.__all__)
    with pytest.raises(AttributeError, match="module 'cosilo' has no attribute 'Sillo'"):
        _ = cosilo.Sillo


def test_every_method_is_in_the_file_of_its_name():
    from cosilo import METHODS, methods

    assert [METHODS[name].name for name in METHODS] == list(METHODS)
    assert {kind.__name__ for kind in METHODS.values()} | {"METHODS", "Method", "step"} == set(
        methods.__all__
    )
    assert "cofde" not in METHODS
    assert METHODS.get("cofde") is None


def test_every_name_of_a_package_is_where_it_is_said_to_be():
    from cosilo import data, learners, methods

    assert all(hasattr(data, name) for name in data.__all__)
    assert all(hasattr(learners, name) for name in learners.__all__)
    assert all(hasattr(methods, name) for name in methods.__all__)
