"""A written page as a path that a notebook shows as a link."""

import os
from html import escape
from pathlib import Path


class Link(type(Path())):  # type: ignore[misc]
    """Where a page is; in a notebook a link to it.

    >>> Link("runs/first/report.html")._repr_html_()
    '<a href="runs/first/report.html" target="_blank">runs/first/report.html</a>'
    """

    def _repr_html_(self) -> str:
        """A link that starts where the notebook is."""
        path = escape(os.path.relpath(self))
        return f'<a href="{path}" target="_blank">{path}</a>'
