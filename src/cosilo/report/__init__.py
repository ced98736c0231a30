"""The report of a run or of a comparison: one self-contained HTML file.

What draws is imported when something is drawn: a run takes a second less to begin.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosilo.report.comparison_page import write_comparison
    from cosilo.report.run_page import write_report

__all__ = ["write_comparison", "write_report"]

if not TYPE_CHECKING:
    from cosilo.lazy import names_from

    __getattr__ = names_from(__name__, {"write_comparison": "comparison_page", "write_report": "run_page"})
