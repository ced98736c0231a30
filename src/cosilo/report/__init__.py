"""The report of a run or of a comparison: one self-contained HTML file."""

from cosilo.report.comparison_page import write_comparison
from cosilo.report.run_page import write_report

__all__ = ["write_comparison", "write_report"]
