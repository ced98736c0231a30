"""Which cosilo this is: runs and reports say it."""

__version__ = "0.1.0"
