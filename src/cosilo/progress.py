"""Progress bars that appear only where a person waits: on a terminal or in a notebook, after two seconds."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

PATIENCE = 2.0


class Advance(Protocol):
    """Called with the number of things done since the last call."""

    def __call__(self, by: int = 1) -> None:
        """Report progress."""


@contextmanager
def bar(label: str, total: int | None, *, shown: bool = True) -> Iterator[Advance]:
    """A bar for `total` things (None: unknown), each of which the body reports.

    >>> with bar("training", 2) as advance:
    ...     advance()
    ...     advance()
    """
    if shown and _in_notebook():
        with _notebook_bar(label, total) as advance:
            yield advance
        return
    if not shown or not sys.stderr.isatty():
        yield lambda by=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(label, total=total)
    # A timer, because the first thing may take minutes and reports nothing until it is done.
    timer = threading.Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda by=1: progress.advance(task, by)
    finally:
        timer.cancel()
        if progress.live.is_started:
            progress.stop()


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook. Does not import IPython: a kernel has imported it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _notebook_bar(label: str, total: int | None) -> Iterator[Advance]:
    """A bar in the output of the cell, which goes when the work is done."""
    from html import escape

    shown: Any = import_module("IPython.display")
    began, done = time.monotonic(), 0
    handle: Any = None

    def advance(by: int = 1) -> None:
        nonlocal done, handle
        done += by
        if time.monotonic() - began < PATIENCE:
            return
        most = "" if total is None else f' max="{total}"'
        of = "" if total is None else f" of {total}"
        page = shown.HTML(f'{escape(label)} <progress value="{done}"{most}></progress> {done}{of}')
        if handle is None:
            handle = shown.display(page, display_id=True)
        else:
            handle.update(page)

    try:
        yield advance
    finally:
        if handle is not None:
            handle.update(shown.HTML(""))
