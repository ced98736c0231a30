"""The page: facts, figures and words put into the template."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cosilo.protocol.stage import FEDERATED, LOCAL, Stage
from cosilo.report import formatting, phrases
from cosilo.report.cards import cards, timeline
from cosilo.report.facts import Facts, gather
from cosilo.report.heat_maps import NAMED
from cosilo.report.metrics import NAMES
from cosilo.report.parts import ReportPart, show
from cosilo.report.results import ENDS, MOST_ROWS, Results, SiloResult, standard_error
from cosilo.runs.durable_files import write
from cosilo.runs.run import RunDirectory
from cosilo.text import listing

#: A table with more rows than this scrolls in a box of its own; on paper it is whole.
_LONG = 30
#: With more fields than this the table of bytes has one column per kind.
_MOST_FIELDS = 9
#: The only script of a page, and only where there are too many silos to list; the page allows no other.
_SEARCH = resources.files("cosilo.report").joinpath("search.js").read_text("utf-8")


def write_report(run: RunDirectory) -> Path:
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
        "percent": formatting.percent,
        "ratio": formatting.ratio,
        "signed": formatting.signed,
        "size": formatting.size,
        "seconds": formatting.seconds,
        "plural": formatting.plural,
        "listing": listing,
        "few": formatting.few,
        "short": formatting.short,
        "standard_error": standard_error,
        "value": _value,
    }
    css = resources.files("cosilo.report").joinpath("report.css").read_text("utf-8")
    found.globals |= {"css": Markup(css), "LOCAL": LOCAL, "FEDERATED": FEDERATED}
    return found


def render(facts: Facts) -> str:
    """The whole page."""
    parts = [show(found, facts.results) for found in facts.findings]
    return (
        environment()
        .get_template("report.html")
        .render(
            about=facts.about,
            results=facts.results,
            traffic=facts.traffic,
            accounts=facts.accounts,
            metrics=facts.metrics,
            metric_names=NAMES,
            timing=facts.timing,
            created=_date(facts.about.created),
            verdict=phrases.verdict(facts),
            certainty=phrases.certainty(facts.results.spread) if facts.results.spread else "",
            cost_of_models=phrases.cost_of_models(facts.traffic),
            rows=_rows(facts),
            scale=_scale(facts),
            cards=cards(facts, parts),
            timeline=timeline(facts.timing),
            columns=[column for part in parts for column in part.columns],
            notes=[note for part in parts for note in part.notes],
            targets=facts.targets,
            labelled=facts.targets.shown,
            simulated=facts.simulated,
            stopped_after=facts.stopped_after,
            clock=list(formatting.dotted(facts.simulated.clock.model_dump(mode="json", exclude_unset=True)))
            if facts.simulated
            else [],
            sent=_sent(facts),
            recipe=list(formatting.dotted(facts.about.recipe.values)) if facts.about.recipe else [],
            federated=FEDERATED in facts.results.stages,
            local=facts.results.has_local or FEDERATED not in facts.results.stages,
            every=_every(facts, parts) if facts.results.many else None,
            search=Markup(_SEARCH),
            search_hash=base64.b64encode(sha256(_SEARCH.encode()).digest()).decode(),
            shown={silo.name for silo in facts.results.shown},
            most_lines=MOST_ROWS,
            ends=ENDS,
            long=len(facts.results.shown) > _LONG,
            numbered=len(facts.results.silos) > NAMED,
        )
    )


def _every(facts: Facts, parts: Sequence[ReportPart]) -> dict[str, Any]:
    """The titles of a short line about every silo; and the lines, by column and packed, for the search."""
    columns = [column for part in parts for column in part.columns]
    results = facts.results
    relative = results.spread is not None
    titles = ["Silo", "Classes", *(str(stage).capitalize() for stage in _ends(results))]
    titles += ["Relative"] * relative + [column.title for column in columns]
    rows = []
    for silo in results.silos:
        scores = [silo.scores.get(stage) for stage in _ends(results)]
        line = [silo.name, str(len(silo.classes))]
        line += [formatting.percent(score.accuracy) if score else _missing(silo) for score in scores]
        if relative:
            line.append("–" if silo.relative is None else formatting.ratio(silo.relative))
        rows.append([*line, *(column.values.get(silo.name, "–") for column in columns)])
    plain = json.dumps(list(zip(*rows, strict=True)), ensure_ascii=False).encode()
    return {"titles": titles, "packed": base64.b64encode(gzip.compress(plain, mtime=0)).decode()}


def _ends(results: Results) -> list[Stage]:
    return [stage for stage in (LOCAL, FEDERATED) if stage in results.stages]


def _date(created: str) -> str:
    try:
        date = datetime.fromisoformat(created)
        return f"{date.day} {date:%b %Y, %H:%M %Z}".rstrip()
    except ValueError:
        return created


def _value(value: object) -> str:
    """A setting as it stands in a recipe."""
    if isinstance(value, list) and len(json.dumps(value)) > 60:
        lines = ",\n".join("  " + json.dumps(one, ensure_ascii=False) for one in value)
        return f"[\n{lines}\n]"
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------------- the table of silos


def _rows(facts: Facts) -> list[dict[str, Any]]:
    low, high = _scale(facts)
    rows = []
    for silo in facts.results.shown:
        local, federated = silo.scores.get(LOCAL), silo.scores.get(FEDERATED)
        some = next(iter(silo.scores.values()), None)
        bar = None
        if local and federated:
            places = [round(4 + 92 * (one.accuracy - low) / (high - low), 1) for one in (local, federated)]
            bar = {"from": places[0], "to": places[1]}
        rows.append(
            {
                "number": facts.results.places[silo.name],
                "silo": silo,
                "instances": some.instances if some else None,
                "local": formatting.percent(local.accuracy) if local else _missing(silo),
                "federated": formatting.percent(federated.accuracy) if federated else _missing(silo),
                "wanted": facts.targets.wanted.get(silo.name, ()),
                "labelling": {
                    stage: formatting.percent(score.accuracy)
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
            columns.append((kind, formatting.plural(len(places), "field"), places))
    rows = []
    by_name = {sent.silo: sent for sent in traffic.silos}
    for sent in (by_name[silo.name] for silo in facts.results.shown):
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
        "whole": all(sent.frames is not None for sent in traffic.silos),
        "lines": Counter((sent.silo, *line) for sent in traffic.silos for line in sent.lines).items(),
        "repeats": [sent for sent in traffic.silos if sent.repeats.messages],
        "not_accepted": [sent for sent in traffic.silos if sent.not_accepted],
        "not_logged": [sent for sent in traffic.silos if sent.not_logged],
        "frames": sum(sent.frames or 0 for sent in traffic.silos),
        "messages": sum(sent.messages for sent in traffic.silos),
        "model": sum(sent.model or 0 for sent in traffic.silos),
    }
