"""What commands print: lines and tables. Names of silos, classes and files are printed as they are, but for
characters that would do something to the terminal.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from cosilo.text import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text


def say(line: "str | Text") -> None:
    """Print a line of the result; nothing breaks it, so that paths and commands can be copied."""
    _console().print(_harmless(line) if isinstance(line, str) else line, soft_wrap=True)


def show(thing: "str | Table") -> None:
    """Print a table, or prose that is broken between words."""
    _console().print(_harmless(thing) if isinstance(thing, str) else thing)


def tell(line: str, style: str = "") -> None:
    """Print a line for whoever waits, on stderr."""
    _console(stderr=True).print(_harmless(line), style=style, soft_wrap=True)


def _harmless(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))


def new_table(*columns: str, right: Collection[str] = (), title: str | None = None) -> "Table":
    """A table with these columns, some of them aligned to the right; what is too wide is folded, not cut.

    The first column has names, which stay whole if they leave the other columns half of the width.
    """
    from rich.cells import cell_len
    from rich.table import Table

    class Harmless(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*(_harmless(one) if isinstance(one, str) else one for one in cells), **options)

        def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
            room = options.max_width - 3 * len(self.columns) - 1  # but for lines and the spaces next to them
            names = self.columns[0]
            names.no_wrap = max(cell_len(str(one)) for one in (names.header, *names.cells)) <= room // 2
            yield from super().__rich_console__(console, options)

    table = Harmless(title=title)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _console(stderr: bool = False) -> "Console":
    """Made for each print: what it prints to, and how wide that is, may have changed since the last."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
