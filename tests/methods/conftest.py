"""Runs that are killed on the way."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def killed() -> Callable[[Callable[[], Any]], None]:
    """Do some work in a child process, which has to die of SIGKILL before it is done."""

    def until_it_dies(work: Callable[[], Any]) -> None:
        child = os.fork()
        if child == 0:
            try:
                work()
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    return until_it_dies
