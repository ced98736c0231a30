"""Whether a number is reached and a claim holds: arithmetic on values by seed, and by silo."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scipy.special import betaincinv, stdtrit

from cosilo.config.reproduces import Claim, Number
from cosilo.report.averages import Average, average

#: By path: one value for each seed, None where a run has none.
Values: TypeAlias = Mapping[str, Sequence[float | None]]
#: By path: for each seed the values of the silos, None where a run has none.
SiloValues: TypeAlias = Mapping[str, Sequence[Mapping[str, float] | None]]

Verdict: TypeAlias = Literal["holds", "does not hold", "not decided"]

#: The number of seeds from which on an interval is over seeds; two say next to nothing about their spread.
ENOUGH_SEEDS = 3
_CONFIDENCE = 0.95
_EQUAL = 1e-12


@dataclass(frozen=True)
class NumberVerdict:
    """Our value of a number, and how it stands to the paper's: at it, if it is no further than its spread."""

    average: Average | None
    stands: Literal["above", "at", "below"] | None
    #: Whether it is as good as the paper's.
    reached: bool | None


def judge_number(number: Number, values: Values, silos: SiloValues | None = None) -> NumberVerdict:
    """A number is reached if its mean reaches the paper's, or misses it by no more than its spread.

    That is the one over seeds; of one seed, if silos are known, the standard error over these.

    >>> number = Number(text="relative accuracy", of="iid.cofed.relative", paper=1.17)
    >>> judge_number(number, {"iid.cofed.relative": [1.12, 1.16, 1.14]}).stands
    'below'
    >>> judge_number(number, {"iid.cofed.relative": [1.10, 1.22, 1.16]}).reached
    True
    """
    found = average(number_values(number, values))
    if found is None or number.paper is None:
        return NumberVerdict(found, None, None)
    gap = found.mean - number.paper
    if abs(gap) <= spread_of(number, values, silos or {}) + _EQUAL:
        return NumberVerdict(found, "at", True)
    return NumberVerdict(found, "above" if gap > 0 else "below", (gap < 0) == number.less)


def spread_of(number: Number, values: Values, silos: SiloValues) -> float:
    """What is behind the ± of a number: over its seeds, or of one seed over silos; 0 if that is not known."""
    found = average(number_values(number, values))
    if found is not None and found.std is not None:
        return found.std
    over_silos = error_over_silos(number, values, silos)
    return 0.0 if over_silos is None else over_silos.error


def number_values(number: Number, values: Values) -> list[float | None]:
    """By seed."""
    if number.key in values:
        return list(values[number.key])
    mine, others = values.get(number.of, []), values.get(number.over or "", [])
    if not others:
        return [None] * len(mine)
    pairs = zip(mine, others, strict=True)
    return [None if one is None or not other else one / other for one, other in pairs]


@dataclass(frozen=True)
class SiloError:
    """The standard error of a mean over silos: how far chance may have moved it that drew these silos."""

    error: float
    silos: int


def error_over_silos(number: Number, values: Values, silos: SiloValues) -> SiloError | None:
    """Of a number with one seed, which has no other spread; None if it is no mean over silos.

    >>> number = Number(text="relative accuracy", of="iid.cofed.relative")
    >>> by_silo = {"a": 1.0, "b": 1.2, "c": 1.1}
    >>> error_over_silos(number, {number.of: [1.1]}, {number.of: [by_silo]}).silos
    3
    """
    seeds = [place for place, value in enumerate(number_values(number, values)) if value is not None]
    if len(seeds) != 1:
        return None
    (place,) = seeds
    mine = _at(silos, number.of, place)
    if number.over is not None:
        others = _at(silos, number.over, place)
        mine = {name: value / others[name] for name, value in mine.items() if others.get(name)}
    found = average(mine.values())
    if found is None or found.std is None:
        return None
    return SiloError(found.std / math.sqrt(len(mine)), len(mine))


def _at(silos: SiloValues, path: str, place: int) -> Mapping[str, float]:
    """By silo, on one of the seeds; nothing if nothing is known."""
    rows = silos.get(path, [])
    return (rows[place] or {}) if place < len(rows) else {}


@dataclass(frozen=True)
class Lead:
    """The mean of paired differences with its confidence interval; one pair has none."""

    mean: float
    low: float
    high: float
    pairs: int
    over: Literal["seeds", "silos"]


@dataclass(frozen=True)
class ClaimVerdict:
    """Whether a claim holds, and the lead that says so: the smallest of those it speaks of."""

    verdict: Verdict
    lead: Lead


def judge_claim(claim: Claim, values: Values, silos: SiloValues | None = None) -> ClaimVerdict | None:
    """By 95 % intervals of paired differences, over seeds; over silos, if known, with fewer than three seeds.

    How many silos gain is counted: its interval is that of a share of all of them (Clopper and Pearson).

    A claim that something leads several others holds if every lead is above 0 with all of its interval, and
    does not hold if one is nowhere above 0. One that something changes little holds if all intervals are
    within its bound, and does not hold if one is all outside. None if a path has no value.

    >>> claim = Claim(text="non-IID gains more", more=["n"], than=["i"])
    >>> judge_claim(claim, {"n": [1.3, 1.2, 1.3], "i": [1.1, 1.0, 1.2]}).verdict
    'holds'
    >>> judge_claim(claim, {"n": [1.3], "i": [1.1]}).verdict
    'not decided'
    """
    others: list[str] | list[float] = claim.than if isinstance(claim.than, list) else [claim.than]
    found = [_lead(more, than, values, silos or {}) for more in claim.more for than in others]
    leads = [lead for lead in found if lead is not None]
    if len(leads) < len(found):
        return None
    if claim.within is not None:
        return _level(leads, claim.within)
    # A given number has to be reached, and others to be surpassed.
    least = claim.by + (-_EQUAL if isinstance(claim.than, float) else _EQUAL)
    highest = min(leads, key=lambda lead: lead.high)
    if highest.high < least:
        return ClaimVerdict("does not hold", highest)
    lowest = min(leads, key=lambda lead: (lead.low, lead.mean))
    return ClaimVerdict("holds" if lowest.low >= least else "not decided", lowest)


def _level(leads: Sequence[Lead], within: float) -> ClaimVerdict:
    """Whether all are within a bound, and the lead that is furthest from being so."""
    furthest = max(leads, key=lambda lead: max(abs(lead.low), abs(lead.high)))
    for lead in leads:
        if lead.low > within or lead.high < -within:
            return ClaimVerdict("does not hold", lead)
    inside = -within <= furthest.low and furthest.high <= within
    return ClaimVerdict("holds" if inside else "not decided", furthest)


def _lead(more: str, than: str | float, values: Values, silos: SiloValues) -> Lead | None:
    """By how much one path is above another one, or above a number."""
    mine = values.get(more, [])
    others = [than] * len(mine) if isinstance(than, float) else values.get(than, [])
    by_seed: list[float] = []
    by_silo: list[float] = []
    for place, (one, other) in enumerate(zip(mine, others, strict=False)):
        if one is None or other is None:
            continue
        pairs = _differences_of_silos(more, than, silos, place)
        by_silo += pairs
        # A method may have been run for some of the silos: the others' values are no match for theirs.
        by_seed.append(statistics.fmean(pairs) if pairs else one - other)
    if not by_seed:
        return None
    if isinstance(than, float) and _is_share(more) and by_silo:
        return _interval_of_share([difference + than > 0.5 for difference in by_silo], than)
    if len(by_seed) < ENOUGH_SEEDS <= len(by_silo):
        return _interval(by_silo, "silos")
    return _interval(by_seed, "seeds")


def _differences_of_silos(more: str, than: str | float, silos: SiloValues, place: int) -> list[float]:
    """Of the silos that both have on a seed."""
    mine = _at(silos, more, place)
    if isinstance(than, float):
        return [value - than for value in mine.values()]
    theirs = _at(silos, than, place)
    return [value - theirs[name] for name, value in mine.items() if name in theirs]


def _is_share(path: str) -> bool:
    """Whether silos say yes or no each: all of twenty have no spread, and are no certainty."""
    return path.partition("@")[0].endswith(".share")


def _interval_of_share(yes: Sequence[bool], than: float) -> Lead:
    """By how much a share is above a number, with its exact interval."""
    count, silos, tail = sum(yes), len(yes), (1 - _CONFIDENCE) / 2
    low = float(betaincinv(count, silos - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, silos - count, 1 - tail)) if count < silos else 1.0
    return Lead(count / silos - than, low - than, high - than, silos, "silos")


def _interval(differences: Sequence[float], over: Literal["seeds", "silos"]) -> Lead:
    """Student's interval of the mean."""
    found = average(differences)
    assert found is not None
    if found.std is None:
        return Lead(found.mean, -math.inf, math.inf, 1, over)
    pairs = len(differences)
    half = float(stdtrit(pairs - 1, (1 + _CONFIDENCE) / 2)) * found.std / math.sqrt(pairs)
    return Lead(found.mean, found.mean - half, found.mean + half, pairs, over)
