"""Progress bars that appear only where a person waits: on a terminal, after two seconds."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

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
