"""Numbers and verdicts of a reproduction as people write them."""

from cosilo.report.averages import Average
from cosilo.reproduce.about import Number, Place, Reproduces
from cosilo.reproduce.verdict import Values, judge_claim, judge_number

_PERCENT = {"accuracy", "local", "share", "joint", "labelling"}


def shown(number: Number, value: float) -> str:
    """One value with its unit.

    >>> shown(Number(text="", of="a.b.accuracy"), 0.8537), shown(Number(text="", of="a.b.relative"), 1.356)
    ('85.4 %', '1.356')
    """
    unit = " %" if _is_percent(number) else ""
    return _form(number, value) + unit


def shown_average(number: Number, found: Average | None) -> str:
    """Mean ± spread with its unit, or a dash."""
    if found is None:
        return "–"
    unit = " %" if _is_percent(number) else ""
    spread = "" if found.std is None else f" ± {_form(number, found.std)}"
    return _form(number, found.mean) + spread + unit


def _is_percent(number: Number) -> bool:
    return number.over is None and Place.read(number.of).measure in _PERCENT


def _form(number: Number, value: float) -> str:
    if _is_percent(number):
        return f"{100 * value:.1f}"
    if number.over is not None or Place.read(number.of).measure == "relative":
        return f"{value:.3f}"
    return f"{value:,.1f}"


def verdict_of(number: Number, values: Values) -> str:
    """Reached, not reached, or nothing if the paper gives no number."""
    found = judge_number(number, values)
    if found.reached is None or found.average is None or number.paper is None:
        return ""
    if found.reached:
        return "reached"
    return f"not reached ({_signed(number, found.average.mean - number.paper)})"


def _signed(number: Number, value: float) -> str:
    sign = "+" if value >= 0 else "−"
    return sign + _form(number, abs(value))


def overall(about: Reproduces, values: Values) -> str:
    """The verdict on all of it, in one line."""
    judged = [judge_number(number, values).reached for number in about.number if number.paper is not None]
    claims = [judge_claim(claim, values) for claim in about.claim]
    parts = []
    if judged:
        parts.append(f"{sum(one is True for one in judged)} of {len(judged)} numbers reached")
    if claims:
        held = sum(claim is not None and claim.mean for claim in claims)
        parts.append(f"{held} of {len(claims)} claims hold")
    return ", ".join(parts)
