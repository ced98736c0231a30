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
from cosilo.reproduce.sentences import lead_text

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
    #: Why it does not hold, as the recipe says it.
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
        why = reason(one.about, claim, size)
        found.append(Standing(one.name, claim, size, verdict, earlier, why))
    found.sort(key=lambda standing: not standing.earlier)
    return found[-1] if found else None


def reason(about: Reproduces, what: Number | Claim, size: Size) -> str:
    """Why a number is not reached or a claim does not hold, as the recipe says it."""
    return what.why.get(size, about.why.get(size, "the cause is not known yet."))


def summary(library: Mapping[str, Reproduction], records: Records) -> str:
    """All claims, paper by paper."""
    lines = [
        "## Which claims hold\n",
        "Night and paper size decide; laptop size is too small to. Behind a claim are its reproduction, the",
        "size, and by how much it leads: a 95 % interval over seeds, or with fewer than three over silos.",
        "An asterisk: by a recipe that has changed since.\n",
    ]
    for paper in dict.fromkeys(one.about.paper for one in library.values()):
        mine = [one for one in library.values() if one.about.paper == paper]
        lines += _of_paper(paper, mine, records)
    return "\n".join(lines)


def _of_paper(paper: str, reproductions: Iterable[Reproduction], records: Records) -> list[str]:
    told: dict[Verdict, list[str]] = {"holds": [], "does not hold": [], "not decided": []}
    small: dict[str, list[Standing]] = {}
    waiting: Counter[str] = Counter()
    for one in reproductions:
        for claim in one.about.claim:
            where = standing(one, claim, records)
            if where is None:
                waiting[one.name] += 1
            elif where.size == "laptop":
                small.setdefault(one.name, []).append(where)
            else:
                told[where.verdict].append(_line(where))
    if small:
        names = ", ".join(f"`{name}` {_hint(claims)}" for name, claims in small.items())
        told["not decided"].append(f"  - Run at laptop size only; how many hold there: {names}.")
    if waiting:
        names = ", ".join(f"`{name}` {count}" for name, count in waiting.items())
        told["not decided"].append(f"  - Not run: {names}.")
    undecided = sum(map(len, small.values())) + waiting.total()
    undecided += len(told["not decided"]) - bool(small) - bool(waiting)
    heads: dict[Verdict, str] = {
        "holds": f"**Hold** ({len(told['holds'])})",
        "does not hold": f"**Do not hold** ({len(told['does not hold'])})",
        "not decided": f"**Not decided** ({undecided})",
    }
    lines = [f"### {paper}\n"]
    for verdict, head in heads.items():
        lines += [f"- {head}", *told[verdict]]
    return [*lines, ""]


def _line(where: Standing) -> str:
    """A claim that was run at a size which decides, and one sentence why it stands so."""
    told = lead_text(where.claim, where.found.lead)
    if where.earlier:
        told += f"*, which {where.found.verdict}; the present recipe was not run."
    elif where.verdict == "not decided" and where.size not in where.claim.why:
        told += "; that may be chance."
    elif where.verdict != "holds":
        told += f"; {_first_sentence(where.why)}"
    else:
        told += "."
    return f"  - {where.claim.text} (`{where.name}`, {where.size}): {told}"


def _hint(claims: list[Standing]) -> str:
    """What laptop size says."""
    hold = sum(where.found.verdict == "holds" for where in claims)
    return f"{hold} of {len(claims)}" + ("*" if any(where.earlier for where in claims) else "")


def _first_sentence(text: str) -> str:
    """What a summary has room for.

    >>> _first_sentence("16 silos instead of 100: few voters. With 50 more gain.")
    '16 silos instead of 100: few voters.'
    """
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", text.strip(), maxsplit=1)[0]
