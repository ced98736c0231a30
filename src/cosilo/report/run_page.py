"""The page: facts, figures and words put into the template."""

import json
from collections import Counter
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cosilo.report import phrases
from cosilo.report.facts import Facts, gather
from cosilo.report.heat_maps import NAMED
from cosilo.report.pictures import pictures
from cosilo.report.results import SiloResult
from cosilo.runs.durable_files import write
from cosilo.runs.run import Run
from cosilo.text import listing

#: A table with more rows than this scrolls in a box of its own; on paper it is whole.
_LONG = 30
#: A table with more cells than this would weigh too much; it then shows the first and the last round.
_MOST_CELLS = 5000
#: With more fields than this the table of bytes has one column per kind.
_MOST_FIELDS = 9


def write_report(run: Run) -> Path:
    """Write `report.html` into the run's folder; one file that opens anywhere, offline."""
    path = run.folder / "report.html"
    write(path, render(gather(run)).encode())
    return path


def environment() -> Environment:
    """What templates are filled in with: strict, escaped, and with the words of a report as filters."""
    found = Environment(
        loader=PackageLoader("cosilo", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "percent": phrases.percent,
        "ratio": phrases.ratio,
        "signed": phrases.signed,
        "size": phrases.size,
        "seconds": phrases.seconds,
        "plural": phrases.plural,
        "listing": listing,
        "few": phrases.few,
        "short": phrases.short,
        "value": _value,
    }
    css = resources.files("cosilo.report").joinpath("report.css").read_text("utf-8")
    found.globals["css"] = Markup(css)
    return found


def render(facts: Facts) -> str:
    """The whole page."""
    return (
        environment()
        .get_template("report.html")
        .render(
            about=facts.about,
            results=facts.results,
            traffic=facts.traffic,
            timing=facts.timing,
            created=_date(facts.about.created),
            verdict=phrases.verdict(facts),
            certainty=phrases.certainty(facts.results.spread) if facts.results.spread else "",
            exchange=phrases.exchange(facts.traffic),
            rows=_rows(facts),
            scale=_scale(facts),
            pictures=pictures(facts),
            targets=facts.targets,
            labelled=facts.targets.shown,
            travels=facts.exchange,
            members=facts.members,
            simulated=facts.simulated,
            clock=list(phrases.dotted(facts.simulated.clock.model_dump(mode="json", exclude_unset=True)))
            if facts.simulated
            else [],
            classes=_classes(facts),
            sent=_sent(facts),
            recipe=list(phrases.dotted(facts.about.recipe.values)) if facts.about.recipe else [],
            federated="federated" in facts.results.stages,
            local=facts.results.has_local or "federated" not in facts.results.stages,
            long=len(facts.results.silos) > _LONG,
            numbered=len(facts.results.silos) > NAMED,
            abstained=any(silo.abstained for silo in facts.results.silos),
        )
    )


def _date(created: str) -> str:
    try:
        date = datetime.fromisoformat(created)
        return f"{date.day} {date:%b %Y, %H:%M %Z}".rstrip()
    except ValueError:
        return created


def _value(value: Any) -> str:
    """A setting as it stands in a recipe."""
    if isinstance(value, list) and len(json.dumps(value)) > 60:
        lines = ",\n".join("  " + json.dumps(one, ensure_ascii=False) for one in value)
        return f"[\n{lines}\n]"
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------------- the table of silos


def _rows(facts: Facts) -> list[dict[str, Any]]:
    low, high = _scale(facts)
    rows = []
    for number, silo in enumerate(facts.results.silos, start=1):
        local, federated = silo.scores.get("local"), silo.scores.get("federated")
        some = next(iter(silo.scores.values()), None)
        bar = None
        if local and federated:
            places = [round(4 + 92 * (one.accuracy - low) / (high - low), 1) for one in (local, federated)]
            bar = {"from": places[0], "to": places[1]}
        rows.append(
            {
                "number": number,
                "silo": silo,
                "instances": some.instances if some else None,
                "local": phrases.percent(local.accuracy) if local else _missing(silo),
                "federated": phrases.percent(federated.accuracy) if federated else _missing(silo),
                "wanted": facts.targets.wanted.get(silo.name, ()),
                "labelling": {
                    stage: phrases.percent(score.accuracy)
                    for stage in facts.targets.stages
                    if (score := facts.targets.score(silo.name, stage))
                },
                "trend": _trend(silo),
                "bar": bar,
                "failures": Counter(silo.failures).items(),
            }
        )
    return rows


def _missing(silo: SiloResult) -> str:
    return "kept private" if silo.private else "failed" if silo.failures else "none"


def _trend(silo: SiloResult) -> str:
    if silo.relative is None:
        return ""
    return "up" if silo.relative > 1 else "down" if silo.relative < 1 else "same"


def _scale(facts: Facts) -> tuple[float, float]:
    """The ends of the little accuracy bars: tenths that hold every score."""
    scores = [score.accuracy for silo in facts.results.silos for score in silo.scores.values()]
    return (int(10 * min(scores, default=0) - 1e-9) / 10, 1.0) if scores and min(scores) < 1 else (0.9, 1.0)


# ---------------------------------------------------------------------- votes


def _classes(facts: Facts) -> dict[str, Any]:
    """Exact numbers of every vote: a row per class."""
    rounds = facts.results.rounds
    if not rounds:
        return {"rounds": [], "rows": []}
    if len(rounds) * len(rounds[-1].elected) > _MOST_CELLS:
        rounds = (rounds[0], rounds[-1])
    holders = dict.fromkeys(facts.results.vocabulary, 0)
    for silo in facts.results.silos:
        for name in silo.classes:
            holders[name] += 1
    rows = [(name, holders[name], [one.elected.get(name, 0) for one in rounds]) for name in holders]
    return {"rounds": rounds, "rows": rows}


# ---------------------------------------------------------------------- what left


def _sent(facts: Facts) -> dict[str, Any]:
    """The columns of the table of bytes: fields, or kinds where there are many fields."""
    traffic = facts.traffic
    by_field = len(traffic.fields) <= _MOST_FIELDS
    columns = []
    # How many messages all silos sent of a field, where they sent the same number; it then stands on top.
    same: list[int | None] = []
    if by_field:
        for place, field in enumerate(traffic.fields):
            counts = {cell.messages for sent in traffic.silos if (cell := sent.cells[place])}
            same.append(counts.pop() if len(counts) == 1 else None)
            each = f", {same[-1]} each" if (same[-1] or 0) > 1 else ""
            columns.append((field.name, f"{field.step}, {field.kind}{each}", [place]))
    else:
        for kind in dict.fromkeys(field.kind for field in traffic.fields):
            places = [place for place, field in enumerate(traffic.fields) if field.kind == kind]
            columns.append((kind, phrases.plural(len(places), "field"), places))
    rows = []
    for sent in traffic.silos:
        cells: list[tuple[int | None, int] | None] = []
        for _, _, places in columns:
            there = [cell for cell in (sent.cells[place] for place in places) if cell]
            odd = by_field and there and same[places[0]] is None
            size = sum(cell.bytes for cell in there)
            cells.append((there[0].messages if odd else None, size) if there else None)
        rows.append((sent, cells))
    return {
        "columns": columns,
        "rows": rows,
        "sums": [sum(traffic.fields[i].bytes for i in places) for _, _, places in columns],
        "own": all(sent.own_log for sent in traffic.silos),
        "lines": Counter((sent.silo, *line) for sent in traffic.silos for line in sent.lines).items(),
        "repeats": [sent for sent in traffic.silos if sent.repeats.messages],
        "not_accepted": [sent for sent in traffic.silos if sent.not_accepted],
        "not_logged": [sent for sent in traffic.silos if sent.not_logged],
        "frames": sum(sent.frames or 0 for sent in traffic.silos),
        "messages": sum(sent.messages for sent in traffic.silos),
        "model": sum(sent.model or 0 for sent in traffic.silos),
    }
