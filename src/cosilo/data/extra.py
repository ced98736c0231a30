"""Modules of the `data` extra: imported when they are needed, so that `import cosilo.data` stays cheap."""

import importlib
from typing import Any

from cosilo.errors import DataError, with_extra


def import_extra(module: str, purpose: str, extra: str = "data") -> Any:
    """The module, or an error that says what to install.

    >>> import_extra("json", "reading JSON").loads("3")
    3
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = "pillow" if module.startswith("PIL") else module.partition(".")[0]
        raise DataError(
            f"{purpose} needs {package}, which cannot be imported: {with_extra(extra)}"
        ) from error
