"""Means over seeds with their spread, and how they are written."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cosilo.report.formatting import ratio


@dataclass(frozen=True)
class Average:
    """A mean over seeds; `std` is None if there is one value only."""

    mean: float
    std: float | None = None

    def parts(self, form: Callable[[float], str], unit: str = "") -> tuple[str, str]:
        """The mean with its unit, and the spread, as people write them; one value has no spread.

        >>> average([0.5, 0.75]).parts("{:.2f}".format)
        ('0.62', '± 0.18')
        """
        return form(self.mean) + unit, "" if self.std is None else f"± {form(self.std)}"

    def text(self, form: Callable[[float], str], unit: str = "") -> str:
        """Both parts in one."""
        return " ".join(self.parts(form, unit)).strip()

    @property
    def percent(self) -> str:
        """As an accuracy or a share.

        >>> average([0.5, 0.75]).percent, average([0.5]).percent
        ('62.5% ± 17.7', '50.0%')
        """
        return self.text(points, "%")

    @property
    def ratio(self) -> str:
        """As a relative accuracy."""
        return self.text(ratio)


def points(share: float) -> str:
    """A share in hundredths.

    >>> points(0.125)
    '12.5'
    """
    return f"{100 * share:.1f}"


def average(values: Iterable[float | None]) -> Average | None:
    """Mean and sample standard deviation of the values that are there, or None.

    >>> average([1.0, None, 3.0])
    Average(mean=2.0, std=1.4142135623730951)
    """
    there = [value for value in values if value is not None]
    if not there:
        return None
    return Average(statistics.fmean(there), statistics.stdev(there) if len(there) > 1 else None)
