"""The first page of the results: which claims hold, which do not, which are not decided, and why."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cosilo.config.reproduces import SIZES, Claim, Number, Reproduces, Size, ValuePath
from cosilo.reproduce.library import Reproduction
from cosilo.reproduce.paper_verdict import ClaimVerdict, Verdict, judge_claim
from cosilo.reproduce.record import ReproductionRecord
from cosilo.reproduce.sentences import chance_text, lead_text

#: By name and size.
Records: TypeAlias = Mapping[tuple[str, str], ReproductionRecord]


@dataclass(frozen=True)
class Standing:
    """Where a claim stands after all that was run: what the largest size says of it."""

    name: str
    claim: Claim
    size: Size
    found: ClaimVerdict
    #: Whether the recipe has changed since.
    earlier: bool
    #: Why, as the recipe says it.
    why: str

    @property
    def verdict(self) -> Verdict:
        """Laptop size decides nothing, and neither does a recipe that is no longer the recipe."""
        return "not decided" if self.size == "laptop" or self.earlier else self.found.verdict


def standing(one: Reproduction, claim: Claim, records: Records) -> Standing | None:
    """By the largest size with a result of the present recipe, or else of an earlier one; None: not run."""
    found = []
    for size in SIZES:
        record = records.get((one.name, size))
        verdict = None if record is None else judge_claim(claim, record.values, record.silos)
        if record is None or verdict is None:
            continue
        changed = set(one.changed_since(record))
        earlier = any(ValuePath.parse(path).case in changed for path in claim.paths)
        why = reason(one.about, claim, size, holds=verdict.verdict == "holds")
        found.append(Standing(one.name, claim, size, verdict, earlier, why))
    found.sort(key=lambda standing: not standing.earlier)
    return found[-1] if found else None


def reason(about: Reproduces, what: Number | Claim, size: Size, holds: bool = False) -> str:
    """Why a claim holds, if the recipe says so; or why it does not, or a number is not reached."""
    if holds and isinstance(what, Claim):
        return what.why_it_holds.get(size, "")
    return what.why.get(size, about.why.get(size, "the cause is not known yet."))


def summary(library: Mapping[str, Reproduction], records: Records) -> str:
    """All claims, paper by paper."""
    lines = [
        "## Which claims hold\n",
        "Night and paper size decide; laptop size is too small to. First comes the name of the reproduction,",
        "and in brackets by how much something leads: a 95 % interval over seeds, or over silos where there",
        "are fewer than three seeds. An asterisk: by a recipe that has changed since.\n",
    ]
    small: dict[str, list[Standing]] = {}
    waiting: Counter[str] = Counter()
    for paper in dict.fromkeys(one.about.paper for one in library.values()):
        mine = [one for one in library.values() if one.about.paper == paper]
        lines += _of_paper(paper, mine, records, small, waiting)
    if small or waiting:
        lines.append("### Not run at night")
    if small:
        lines.append(f"- At laptop size only; how many claims hold there: {_hints(small)}.")
    if waiting:
        names = ", ".join(f"`{name}` {count}" for name, count in waiting.items())
        lines.append(f"- Not at all; how many claims there are: {names}.")
    return "\n".join([*lines, ""])


def _of_paper(
    paper: str,
    reproductions: Iterable[Reproduction],
    records: Records,
    small: dict[str, list[Standing]],
    waiting: Counter[str],
) -> list[str]:
    """What was run at night or larger; the rest goes to those that are told at the end."""
    told: dict[Verdict, list[Standing]] = {"holds": [], "does not hold": [], "not decided": []}
    own: dict[str, list[Standing]] = {}
    for one in reproductions:
        for claim in one.about.claim:
            where = standing(one, claim, records)
            if where is None:
                waiting[one.name] += 1
            elif claim.ours and where.size != "laptop":
                own.setdefault(one.name, []).append(where)
            elif where.size == "laptop":
                small.setdefault(one.name, []).append(where)
            else:
                told[where.verdict].append(where)
    heads: dict[Verdict, str] = {
        "holds": "Hold",
        "does not hold": "Do not hold",
        "not decided": "Not decided",
    }
    lines = [f"### {paper}"]
    for verdict, some in told.items():
        if some:
            lines += [f"- **{heads[verdict]}** ({len(some)})", *_lines(some)]
    if own:
        lines.append(
            f"- Claims that are cosilo's own, and not the paper's, hold in the sections below: {_hints(own)}."
        )
    return [*lines, ""]


def _lines(claims: Iterable[Standing]) -> list[str]:
    """A line for claims with the same reason, which it ends with; those without one by reproduction."""
    together: dict[tuple[str, str], dict[str, list[str]]] = {}
    for where in claims:
        why = _reason(where)
        lead = lead_text(where.claim, where.found.lead) + ("*" if where.earlier else "")
        source = f"`{where.name}`, {where.size}"
        together.setdefault((why or source, why), {}).setdefault(source, []).append(
            f"{where.claim.text} ({lead})"
        )
    return [
        "  - "
        + "; ".join(f"{source}: {'; '.join(texts)}" for source, texts in sources.items())
        + (f": {why}" if why else ".")
        for (_, why), sources in together.items()
    ]


def _reason(where: Standing) -> str:
    """One sentence on why a claim holds, does not hold or is not decided."""
    if where.earlier:
        return f"that {where.found.verdict}, by a recipe that has changed since."
    if where.verdict == "not decided" and where.size not in where.claim.why:
        return chance_text(where.found.lead)
    return _first_sentence(where.why)


def _hints(by_name: Mapping[str, list[Standing]]) -> str:
    """How many claims of each reproduction hold."""
    texts = []
    for name, claims in by_name.items():
        hold = sum(where.found.verdict == "holds" for where in claims)
        mark = "*" if any(one.earlier for one in claims) else ""
        texts.append(f"`{name}` {hold} of {len(claims)}{mark}")
    return ", ".join(texts)


def _first_sentence(text: str) -> str:
    """What a summary has room for.

    >>> _first_sentence("16 silos instead of 100: few voters. With 50 more gain.")
    '16 silos instead of 100: few voters.'
    """
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", text.strip(), maxsplit=1)[0]
