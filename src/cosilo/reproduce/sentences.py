"""Numbers and verdicts of a reproduction as people write them."""

from cosilo.config.reproduces import Number, Reproduces, ValuePath
from cosilo.report.averages import Average
from cosilo.reproduce.paper_verdict import Values, judge_claim, judge_number

PERCENT = "share"
_UNITS = {
    **dict.fromkeys(("accuracy", "local", "share", "joint", "labelling"), PERCENT),
    **dict.fromkeys(("relative", "control", "taught"), "ratio"),
    "elected": "labels",
    "rounds_to": "rounds",
    "seconds_to": "simulated seconds",
}


def unit(number: Number) -> str:
    """What a number is counted in."""
    return "ratio" if number.over is not None else _UNITS[ValuePath.parse(number.of).measure]


def shown(number: Number, value: float) -> str:
    """One value with its unit.

    >>> shown(Number(text="", of="a.b.accuracy"), 0.8537), shown(Number(text="", of="a.b.relative"), 1.356)
    ('85.4 %', '1.356')
    """
    return _form(number, value) + (" %" if unit(number) == PERCENT else "")


def shown_average(number: Number, found: Average | None) -> str:
    """Mean ± spread with its unit, or a dash."""
    if found is None:
        return "–"
    spread = "" if found.std is None else f" ± {_form(number, found.std)}"
    return _form(number, found.mean) + spread + (" %" if unit(number) == PERCENT else "")


def _form(number: Number, value: float) -> str:
    if unit(number) == PERCENT:
        return f"{100 * value:.1f}"
    if unit(number) == "ratio":
        return f"{value:.3f}"
    return f"{value:,.1f}"


def verdict_of(number: Number, values: Values) -> str:
    """Reached, exceeded by more than the spread, not reached; nothing if the paper gives no number."""
    found = judge_number(number, values)
    if found.reached is None or found.average is None or number.paper is None:
        return ""
    gap = found.average.mean - number.paper
    if not found.reached:
        return f"not reached ({_signed(number, gap)})"
    exceeded = abs(gap) > (found.average.std or 0.0) and found.average.std is not None
    return f"exceeded ({_signed(number, gap)})" if exceeded else "reached"


def _signed(number: Number, value: float) -> str:
    sign = "+" if value >= 0 else "−"
    return sign + _form(number, abs(value))


def overall(about: Reproduces, values: Values) -> str:
    """The verdict on all of it, in one line."""
    judged = [
        judge_number(number, values).reached
        for number in about.number
        if number.paper is not None and number.of in values
    ]
    claims = [judge_claim(claim, values) for claim in about.claim if claim.more[0] in values]
    parts = []
    if judged:
        parts.append(f"{sum(one is True for one in judged)} of {len(judged)} numbers reached")
    if claims:
        held = sum(claim is not None and claim.mean for claim in claims)
        parts.append(f"{held} of {len(claims)} claims hold")
    return ", ".join(parts)
