"""The command line, as a person types it."""

import sys
from collections.abc import Callable

import pytest

from cosilo.cli import main


@pytest.fixture
def cosilo(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process; gives exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cosilo", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        output = capsys.readouterr()
        return int(stop.value.code or 0), output.out, output.err

    return run
