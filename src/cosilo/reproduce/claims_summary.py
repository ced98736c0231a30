"""The first page of the results: which claims hold, which do not, which are not decided, and why."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cosilo.config.reproduces import SIZES, Claim, Number, Reproduces, Size
from cosilo.reproduce.library import Reproduction
from cosilo.reproduce.paper_verdict import Verdict, judge_claim
from cosilo.reproduce.record import ReproductionRecord
from cosilo.reproduce.sentences import claim_text, lead_text

#: By name and size.
Records: TypeAlias = Mapping[tuple[str, str], ReproductionRecord]


@dataclass(frozen=True)
class Standing:
    """Where a claim stands after all that was run, and one sentence why; no size if nothing was run."""

    verdict: Verdict
    size: Size | None
    why: str


def standing(one: Reproduction, claim: Claim, records: Records) -> Standing:
    """By the largest size that has a result; laptop size decides nothing."""
    found = {
        size: verdict
        for size in SIZES
        if (record := records.get((one.name, size))) is not None
        and (verdict := judge_claim(claim, record.values, record.silos)) is not None
    }
    if not found:
        return Standing("not decided", None, "it was not run yet.")
    size, verdict = list(found.items())[-1]
    told = claim_text(claim, verdict)
    if size != "laptop":
        told = f"{lead_text(claim, verdict.lead)}, {size} size"
    failed = verdict.verdict == "does not hold"
    why = f"{told}; {_first_sentence(reason(one.about, claim, size))}" if failed else f"{told}."
    return Standing("not decided" if size == "laptop" else verdict.verdict, size, why)


def reason(about: Reproduces, what: Number | Claim, size: Size) -> str:
    """Why a number is not reached or a claim does not hold, as the recipe says it."""
    return what.why.get(size, about.why.get(size, "the cause is not known yet."))


def summary(library: Mapping[str, Reproduction], records: Records) -> str:
    """All claims, paper by paper."""
    lines = [
        "## Which claims hold\n",
        "Night size decides claims, and paper size; what laptop size says is a hint. Behind a claim are the",
        "name of its reproduction and the 95 % interval of the lead.\n",
    ]
    for paper in dict.fromkeys(one.about.paper for one in library.values()):
        mine = [one for one in library.values() if one.about.paper == paper]
        lines += [f"**{paper}**\n", *_of_paper(mine, records)]
    return "\n".join(lines)


def _of_paper(reproductions: Sequence[Reproduction], records: Records) -> list[str]:
    told: dict[str, list[str]] = {
        head: [] for head in ("Hold", "Do not hold", "Not decided", "At laptop size only")
    }
    waiting: Counter[str] = Counter()
    for one in reproductions:
        for claim in one.about.claim:
            where = standing(one, claim, records)
            if where.size is None:
                waiting[f"`{one.name}`"] += 1
                continue
            heads = {"holds": "Hold", "does not hold": "Do not hold", "not decided": "Not decided"}
            head = "At laptop size only" if where.size == "laptop" else heads[where.verdict]
            told[head].append(f"  - {claim.text} (`{one.name}`): {where.why}")
    lines = []
    for head, claims in told.items():
        lines += [f"- {head}: {len(claims) or 'none'}", *claims]
    if waiting:
        lines.append(f"- Not run yet: {waiting.total()} ({', '.join(waiting)})")
    return [*lines, ""]


def _first_sentence(text: str) -> str:
    """What a summary has room for.

    >>> _first_sentence("16 silos instead of 100: few voters. With 50 more gain.")
    '16 silos instead of 100: few voters.'
    """
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", text.strip(), maxsplit=1)[0]
