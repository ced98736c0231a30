"""Whether a number is reached and a claim holds: arithmetic on values by seed."""

from collections.abc import Mapping
from dataclasses import dataclass

from cosilo.config.reproduces import Claim, Number
from cosilo.report.averages import Average, average

#: By path: one value for each seed, None where a run has none.
Values = Mapping[str, list[float | None]]


@dataclass(frozen=True)
class NumberVerdict:
    """Our value of a number, and whether it reaches the paper's."""

    average: Average | None
    reached: bool | None


def judge_number(number: Number, values: Values) -> NumberVerdict:
    """A number is reached if its mean reaches the paper's, or misses it by no more than its spread.

    >>> number = Number(text="relative accuracy", of="iid.cofed.relative", paper=1.17)
    >>> judge_number(number, {"iid.cofed.relative": [1.12, 1.16, 1.14]}).reached
    False
    >>> judge_number(number, {"iid.cofed.relative": [1.10, 1.22, 1.16]}).reached
    True
    """
    found = average(number_values(number, values))
    if found is None or number.paper is None:
        return NumberVerdict(found, None)
    spread = found.std or 0.0
    short = found.mean - number.paper if number.less else number.paper - found.mean
    return NumberVerdict(found, short <= spread + 1e-12)


def number_values(number: Number, values: Values) -> list[float | None]:
    """By seed."""
    mine = values.get(number.of, [])
    if number.over is None:
        return list(mine)
    others = values.get(number.over, [])
    if not others:
        return [None] * len(mine)
    pairs = zip(mine, others, strict=True)
    return [None if one is None or not other else one / other for one, other in pairs]


@dataclass(frozen=True)
class ClaimVerdict:
    """On how many seeds a claim holds, and whether it holds for the means."""

    seeds: int
    of: int
    mean: bool
    #: By how much, on average.
    by: float

    @property
    def everywhere(self) -> bool:
        """On every seed."""
        return self.seeds == self.of

    @property
    def text(self) -> str:
        """In words."""
        if self.everywhere and self.mean:
            return "holds" if self.of == 1 else f"holds on all {self.of} seeds"
        if self.mean:
            return f"holds on average, on {self.seeds} of {self.of} seeds"
        return f"does not hold ({self.seeds} of {self.of} seeds)"


def judge_claim(claim: Claim, values: Values) -> ClaimVerdict | None:
    """Seed by seed, and for the means; None if a path has no value.

    >>> claim = Claim(text="non-IID gains more", more=["n"], than=["i"])
    >>> judge_claim(claim, {"n": [1.3, 1.2], "i": [1.1, 1.25]}).text
    'holds on average, on 1 of 2 seeds'
    """
    more = [values.get(path, []) for path in claim.more]
    if isinstance(claim.than, list):
        than = [values.get(path, []) for path in claim.than]
    else:
        than = [[claim.than] * len(more[0])]
    rows = [*more, *than]
    seeds = len(rows[0])
    if not seeds or any(len(row) != seeds or None in row for row in rows):
        return None
    floor = isinstance(claim.than, float)
    gaps = [
        min(row[seed] or 0.0 for row in more) - max(row[seed] or 0.0 for row in than) for seed in range(seeds)
    ]
    high = min(sum(value or 0.0 for value in row) for row in more) / seeds
    low = max(sum(value or 0.0 for value in row) for row in than) / seeds
    held = sum(gap > 0 or (floor and gap > -1e-12) for gap in gaps)
    return ClaimVerdict(held, seeds, high > low or (floor and high > low - 1e-12), high - low)
