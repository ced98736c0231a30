"""The shell completes commands, methods and reproductions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COSILO = str(Path(sys.executable).with_name("cosilo"))


def completed(*words):
    """What bash is offered for the last word."""
    environment = {
        **os.environ,
        "_COSILO_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["cosilo", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run([COSILO], capture_output=True, text=True, env=environment)
    return done.stdout.split()


def test_the_script_for_bash():
    # Without a shell above, as in a test, typer takes its name.
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [COSILO, "--show-completion", "bash"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "complete -o default -F _cosilo_completion cosilo" in done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["repr"], ["reproduce"]),
        (["compare", "x.toml", "--methods", "fedp"], ["fedprox"]),
        (["compare", "x.toml", "--methods", "local,cof"], ["local,cofed"]),
        (["compare", "x.toml", "--methods", "cofed,cof"], []),
        (["reproduce", "cofed_cif"], ["cofed_cifar"]),
    ],
)
def test_names(words, offered):
    assert completed(*words) == offered
