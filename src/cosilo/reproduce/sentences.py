"""Numbers and verdicts of a reproduction as people write them."""

from collections import Counter

from cosilo.config.reproduces import Claim, Number, Reproduces, ValuePath
from cosilo.report.formatting import size
from cosilo.reproduce.paper_verdict import (
    ClaimVerdict,
    Lead,
    error_over_silos,
    judge_claim,
    judge_number,
    number_values,
)
from cosilo.reproduce.record import ReproductionRecord

PERCENT = "share"
RATIO = "ratio"
#: Relative accuracy less that of the control.
TAUGHT = "beyond the control"
BYTES = "bytes"
_UNITS = {
    **dict.fromkeys(("accuracy", "local", "share", "own_votes", "joint", "labelling"), PERCENT),
    **dict.fromkeys(("relative", "control"), RATIO),
    "taught": TAUGHT,
    "elected": "labels",
    "bytes": BYTES,
    "rounds_to": "rounds",
    "seconds_to": "simulated seconds",
}


def unit(number: Number) -> str:
    """What a number is counted in."""
    return RATIO if number.over is not None else _UNITS[ValuePath.parse(number.of).measure]


def shown(number: Number, value: float) -> str:
    """One value with its unit.

    >>> shown(Number(text="", of="a.b.accuracy"), 0.8537), shown(Number(text="", of="a.b.relative"), 1.356)
    ('85.4 %', '1.356')
    """
    return _form(number, value) + (" %" if unit(number) == PERCENT else "")


def shown_average(number: Number, record: ReproductionRecord) -> str:
    """Mean ± spread with its unit, or of one seed the standard error over silos; or a dash."""
    found = judge_number(number, record.values).average
    if found is None:
        return "–"
    spread = "" if found.std is None else f" ± {_form(number, found.std)}"
    text = _form(number, found.mean) + spread + (" %" if unit(number) == PERCENT else "")
    one = error_over_silos(number, record.values, record.silos)
    if one is not None:
        return f"{text} (± {_form(number, one.error)}, {one.silos} silos)"
    # Cases may have been run on some of the record's seeds only.
    seeds = sum(value is not None for value in number_values(number, record.values))
    return f"{text} ({seeds} seeds)" if 1 < seeds < len(record.seeds) else text


def _form(number: Number, value: float) -> str:
    if unit(number) == PERCENT:
        return f"{100 * value:.1f}"
    if unit(number) in (RATIO, TAUGHT):
        return f"{value:.3f}".replace("-", "−")
    if unit(number) == BYTES:
        return size(value)
    return f"{value:,.1f}"


def verdict_of(about: Reproduces, number: Number, record: ReproductionRecord) -> str:
    """How a number stands to the paper's; only one of the paper's own method can be reached or not."""
    found = judge_number(number, record.values, record.silos)
    if found.stands is None or found.average is None or number.paper is None:
        return ""
    gap = f" ({_signed(number, found.average.mean - number.paper)})"
    if not about.is_own(number):
        return "as in the paper" if found.stands == "at" else f"{found.stands} the paper's{gap}"
    if not found.reached:
        return f"not reached{gap}"
    return "reached" if found.stands == "at" else f"exceeded{gap}"


def _signed(number: Number, value: float) -> str:
    sign = "+" if value >= 0 else "−"
    return sign + _form(number, abs(value))


def claim_text(claim: Claim, found: ClaimVerdict | None) -> str:
    """The verdict on a claim, with the interval that it comes from."""
    return "no result" if found is None else f"{found.verdict} ({lead_text(claim, found.lead)})"


def lead_text(claim: Claim, lead: Lead) -> str:
    """By how much something leads.

    >>> claim = Claim(text="", more=["all.fml.accuracy"], than=["all.fml.local"])
    >>> lead_text(claim, Lead(0.02, 0.01, 0.03, 3, "seeds"))
    '+1.0 to +3.0 points, 3 seeds'
    """
    like = Number(text="", of=claim.more[0])
    kind = _kind(like)
    if lead.pairs == 1:
        return f"{_signed(like, lead.mean)}{kind}, one seed"
    return f"{_signed(like, lead.low)} to {_signed(like, lead.high)}{kind}, {lead.pairs} {lead.over}"


def chance_text(lead: Lead) -> str:
    """Why a claim is not decided, as far as its interval tells."""
    if lead.pairs == 1:
        return "one seed does not tell what is chance."
    return "that may be chance, and they are no further apart than that."


def _kind(number: Number) -> str:
    """The word after a difference."""
    named = {PERCENT: " points", RATIO: "", TAUGHT: "", BYTES: ""}
    return named.get(unit(number), f" {unit(number)}")


def overall(about: Reproduces, record: ReproductionRecord) -> str:
    """The verdict on all of it, in one line: the numbers of the paper's own method, and the claims."""
    own = [number for number in about.number if about.is_own(number) and number.counts]
    judged = [judge_number(number, record.values, record.silos).reached for number in own]
    numbers = [reached for reached in judged if reached is not None]
    claims = Counter(
        found.verdict
        for claim in about.claim
        if not claim.ours and (found := judge_claim(claim, record.values, record.silos)) is not None
    )
    parts = []
    if numbers:
        parts.append(f"{sum(numbers)} of {len(numbers)} numbers reached")
    if claims:
        parts.append(f"{claims['holds']} of {claims.total()} claims hold")
        if failing := claims["does not hold"]:
            parts.append(f"{failing} do{'es' if failing == 1 else ''} not")
        if claims["not decided"]:
            parts.append(f"{claims['not decided']} not decided")
    return ", ".join(parts) or "nothing to judge in the cases that were run"
