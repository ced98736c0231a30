"""The page of results: written from records by a command, never by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cosilo.config.reproduces import SIZES, Claim, Number, Reproduces, Size, ValuePath
from cosilo.reproduce.claims_summary import Records, reason, summary
from cosilo.reproduce.figure import draw, draw_curves, drawn
from cosilo.reproduce.library import Reproduction
from cosilo.reproduce.paper_verdict import judge_claim, judge_number
from cosilo.reproduce.record import ReproductionRecord, read_record
from cosilo.reproduce.sentences import lead_text, overall, shown, shown_average, verdict_of

_HEAD = """# Results

What the papers say, and what cosilo finds. `cosilo reproduce --page docs/results.md` writes this page from
the records in `docs/results/`, each made by `cosilo reproduce NAME`. Why something is so is written by hand
in its recipe, with the command that a number comes from where no table has it.
"""

_READING = """## How to read the rest

- A number is the mean over the seeds ± standard deviation (n − 1), after the last round, never the best one.
  Of one seed it has its standard error over silos in brackets. Bars in figures are these ±. Nothing is chosen
  on test data, except where a line says so.
- **Reached**: the paper's own method gets to the paper's number, or misses it by no more than its ±;
  exceeded: it is better by more than that. Of the methods it is compared with, the page only says whether
  they are above or below what the paper found: a rival that does better here makes the claim harder.
- Laptop size takes minutes on two cores, with fewer silos, samples and rounds than the paper has; night size
  takes up to eight hours; paper size has the paper's protocol. A dash: the paper gives no number that ours
  could be held against, or a size does not have it.
- **Holds**: the 95 % confidence interval (Student's t) of the paired differences is above 0, for every method
  that the claim speaks of; **does not hold**: for one of them it is nowhere above 0; else **not decided**.
  Where a claim is that something changes little, the interval has to be within the bound that it names.
  Pairs are seeds; with fewer than three of these, silos, where a value is a mean over silos: that tells of
  other silos in such a federation, and less of other seeds. How many silos gain is counted, over all seeds
  (Clopper and Pearson's interval).
- The one global network of a method is judged among all classes, on test data of which each instance counts
  once: at the first silo that has it. So there may be fewer silos behind its number.
- A record is **of an earlier recipe** if the recipe has changed since it was made: `cosilo reproduce NAME`
  would give other numbers now. What it says decides nothing.
"""

_HEADS = " | ".join(f"{size} size" for size in SIZES)


def load_records(folder: Path) -> Records:
    """All records of a folder."""
    found = [read_record(path) for path in sorted(folder.glob("*.json"))]
    return {(record.name, record.size): record for record in found}


def write_page(path: Path, library: Mapping[str, Reproduction]) -> list[str]:
    """Write the page and its figures from the records in the folder beside it.

    Returns the names of the reproductions that have no record.
    """
    folder = path.with_suffix("")
    records = load_records(folder)
    parts, missing = [_HEAD, summary(library, records), _READING, _overview(library, records)], []
    paper = None
    for name, one in library.items():
        mine = {size: records[name, size] for size in SIZES if (name, size) in records}
        if not mine:
            missing.append(name)
            continue
        if one.about.paper != paper:
            paper = one.about.paper
            parts.append(f"## {paper}\n")
        if _has_numbers(one.about, mine):
            earlier = [size for size, record in mine.items() if one.changed_since(record)]
            (folder / f"{name}.svg").write_text(draw(one.about, mine, earlier), "utf-8")
        if curves := _curves(mine):
            (folder / f"{name}-curves.svg").write_text(draw_curves(one.about.curve, curves.curves), "utf-8")
        parts.append(section(one, mine, folder))
    path.write_text("\n".join(parts), "utf-8")
    return missing


def _overview(library: Mapping[str, Reproduction], records: Records) -> str:
    rows = [f"| reproduction | paper | {_HEADS} |", "|---|---|---|---|---|"]
    for name, one in library.items():
        verdicts = [
            overall(one.about, record) + (" (of an earlier recipe)" if one.changed_since(record) else "")
            if (record := records.get((name, size))) is not None
            else _not_there(one.about, size)
            for size in SIZES
        ]
        rows.append(f"| `{name}` | {one.about.paper}, {one.about.what} | {' | '.join(verdicts)} |")
    return "\n".join(rows) + "\n"


def section(one: Reproduction, records: Mapping[Size, ReproductionRecord], pictures: Path) -> str:
    """One reproduction; `pictures` is the folder beside the page."""
    about = one.about
    lines = [
        f"### {about.what}: {about.shows}\n",
        f"`cosilo reproduce {one.name}`. {about.note}".rstrip() + "\n",
    ]
    run = [claim for claim in about.claim if any(one.has(claim.more[0]) for one in records.values())]
    if _has_numbers(about, records):
        lines += [*_table(about, records), "", *_goals(records)]
    if run:
        lines += [*_claims(about, run, records), ""]
    lines += _unequal(records)
    whys = _whys(one, records)
    if whys:
        lines += [*whys, ""]
    if _has_numbers(about, records):
        lines.append(f"![{about.what}: ours and the paper's]({pictures.name}/{one.name}.svg)\n")
    if (pictures / f"{one.name}-elected.png").exists():
        lines.append(f"![Images that were elected to each class]({pictures.name}/{one.name}-elected.png)\n")
    if curves := _curves(records):
        texts = "; ".join(curve.text for curve in drawn(about.curve, curves.curves))
        lines.append(f"![Curves at {curves.size} size: {texts}]({pictures.name}/{one.name}-curves.svg)\n")
    lines += [_facts(one, record) for record in records.values()]
    return "\n".join(lines) + "\n"


def _has_numbers(about: Reproduces, records: Mapping[Size, ReproductionRecord]) -> bool:
    """Whether there is one to show: a recipe may have lost the cases that records are of."""
    return any(record.has(number.of) for number in about.number for record in records.values())


def _table(about: Reproduces, records: Mapping[Size, ReproductionRecord]) -> list[str]:
    rows = [f"| | paper | {_HEADS} |", "|---|---|---|---|---|"]
    for number in about.number:
        if not any(record.has(number.of) for record in records.values()):
            continue  # of a case that no size has run
        cells = [number.text, "–" if number.paper is None else shown(number, number.paper)]
        for size in SIZES:
            record = records.get(size)
            if record is None or not record.has(number.of):
                cells.append(_not_there(about, size, [number.of]))
                continue
            found = shown_average(number, record)
            verdict = verdict_of(about, number, record)
            cells.append(f"{found}; {verdict}" if verdict else found)
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _goals(records: Mapping[Size, ReproductionRecord]) -> list[str]:
    """The accuracies that times are taken to."""
    told = []
    for size, record in records.items():
        by_goal: dict[float, list[str]] = {}
        for cell, goal in record.goals.items():
            by_goal.setdefault(goal, []).append(cell)
        # Seeds and cases that were run apart may have been timed to different ones.
        texts = [
            f"{goal:.1%}".replace("%", " %") + (f" ({', '.join(cells)})" if len(by_goal) > 1 else "")
            for goal, cells in by_goal.items()
        ]
        if texts:
            told.append(f"{', '.join(texts)} at {size} size")
    return [f"Times are those to an accuracy of {'; '.join(told)}.\n"] if told else []


def _unequal(records: Mapping[Size, ReproductionRecord]) -> list[str]:
    """What compared methods are not equal in."""
    told: dict[str, list[str]] = {}
    for size, record in records.items():
        for case, found in record.unequal.items():
            for line in found:
                told.setdefault(line, []).append(f"{case}, {size}" if len(record.unequal) > 1 else size)
    return [*(f"- {line} ({'; '.join(where)} size)." for line, where in told.items()), ""] if told else []


def _claims(about: Reproduces, run: list[Claim], records: Mapping[Size, ReproductionRecord]) -> list[str]:
    rows = [f"| claim | {_HEADS} |", "|---|---|---|---|"]
    for claim in run:
        cells = [claim.text]
        for size in SIZES:
            record = records.get(size)
            found = None if record is None else judge_claim(claim, record.values, record.silos)
            if found is None:
                cells.append(_not_there(about, size, claim.paths))
            else:
                cells.append(f"**{found.verdict}** ({lead_text(claim, found.lead)})")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _curves(records: Mapping[Size, ReproductionRecord]) -> ReproductionRecord | None:
    """The record of the largest size that has curves."""
    return next((record for record in reversed(list(records.values())) if record.curves), None)


def _not_there(about: Reproduces, size: Size, paths: Sequence[str] = ()) -> str:
    """Whether a size could have it, and has not been run, or does not have such a case at all."""
    cases = about.cases_in(size) if size in about.sizes else []
    return "not run" if cases and all(ValuePath.parse(path).case in cases for path in paths) else "–"


def _whys(one: Reproduction, records: Mapping[Size, ReproductionRecord]) -> list[str]:
    """A sentence on what is not reached or does not hold, and on other claims with one of their own."""
    told: dict[tuple[str, str], list[str]] = {}
    for size, record in records.items():
        past = one.changed_since(record)  # what is said of the present recipe need not be true of another
        everything: list[Number | Claim] = [*one.about.number, *one.about.claim]
        for what in everything:
            paths = what.paths if isinstance(what, Claim) else [what.of]
            question = _question(one.about, what, record)
            why = reason(one.about, what, size, holds=question == "Why")
            if question and why and not any(ValuePath.parse(path).case in past for path in paths):
                whose = what.text + (f" ({size} size)" if len(records) > 1 else "")
                told.setdefault((question, why), []).append(whose)
    return [f"{question} ({'; '.join(whose)}): {why}" for (question, why), whose in told.items()]


def _question(about: Reproduces, what: Number | Claim, record: ReproductionRecord) -> str:
    """What a reader asks of it, if anything."""
    if isinstance(what, Number):
        missed = judge_number(what, record.values, record.silos).reached is False and about.is_own(what)
        return "Why not" if missed else ""
    held = judge_claim(what, record.values, record.silos)
    if held is None:
        return ""
    if held.verdict == "not decided":
        return "Why not decided" if record.size in what.why else ""
    return "Why" if held.verdict == "holds" else "Why not"


def _facts(one: Reproduction, record: ReproductionRecord) -> str:
    seeds = ", ".join(map(str, record.seeds))
    changed = one.changed_since(record)
    note = ""
    if changed:
        # Where only some cases are of an earlier recipe, these are named.
        some = f" in {', '.join(changed)}" if record.recipes else ""
        note = f" **Of an earlier recipe**, which has changed since{some}."
    return (
        f"{record.size.capitalize()} size: {record.scale}, seeds {seeds}; {record.minutes:,.0f} minutes on "
        f"{record.machine}; cosilo {record.version}, commit {record.commit}, {record.date}.{note}  "
    )
