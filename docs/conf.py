"""How Sphinx makes the site of these pages: `make docs` writes it to docs/_build/html.

The pages are also read as they stand, on a code host, so they are plain Markdown. What only the site has is
put in for a comment of the form `<!-- site: … -->` while a page is read; `site/pages.py` knows these.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "site"))

import pages  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

from cosilo.version import __version__  # noqa: E402

project = "cosilo"
author = "The cosilo maintainers"
release = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "results"]
nitpicky = False
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types, in words
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
default_role = "code"
add_module_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "cosilo"
html_static_path = ["site/style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "default"


def setup(app: Sphinx) -> None:
    """Sphinx asks for this."""
    app.connect("source-read", _fill)


def _fill(_app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = pages.filled(name, source[0], DOCS)
