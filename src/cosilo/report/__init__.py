"""The report of a run: one self-contained HTML file."""

from cosilo.report.page import write_report

__all__ = ["write_report"]
