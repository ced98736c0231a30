"""The cards of a run's page: what every run has, and what its method's findings add."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from cosilo.protocol.stage import Stage
from cosilo.report import bars, heat_maps, lines
from cosilo.report.facts import Facts
from cosilo.report.formatting import plural
from cosilo.report.parts import Card, Column, ReportPart, Table
from cosilo.report.results import MOST_DRAWN, Results
from cosilo.report.timing import Timing
from cosilo.report.tree import tree
from cosilo.text import listing


def cards(facts: Facts, parts: Sequence[ReportPart]) -> dict[str, Card]:
    """All cards of a run but the timeline, by their id in the page."""
    found = {
        **_accuracy(facts),
        **_federation(facts),
        "overlap": Card(
            "Overlap of tasks",
            "A cell counts the classes that the silo of its row and the silo of its column share, darker for "
            f"more; on the diagonal are a silo's own classes.{_some(facts.results)}",
            Markup(heat_maps.overlap(facts.results)),
        ),
    }
    for part in parts:
        found |= part.cards
    return found


def _some(results: Results) -> str:
    """Where a figure has not all silos."""
    count = len(results.silos)
    return f" Of {count:,} silos {MOST_DRAWN}, evenly from all." if count > MOST_DRAWN else ""


def timeline(timing: Timing) -> Card | None:
    """When each ask went out and was answered."""
    if not timing.asks:
        return None
    many = len(timing.asks) > bars.MOST_BARS
    return Card(
        "On the clock",
        "Each bar adds up all asks for one step, until the last silo had answered."
        if many
        else "Each bar is one ask, from when it went out until the last silo had answered; between bars "
        "the coordinator works alone; the dashed line is the end of the run.",
        Markup(bars.timeline(timing)),
    )


def _accuracy(facts: Facts) -> dict[str, Card]:
    results = facts.results
    found = {}
    if results.spread:
        found["relative"] = Card(
            "Relative accuracy",
            "Each bar counts silos; bars to the right of the solid line at 1 kept or gained accuracy (blue), "
            "bars to the left lost some (orange); the dashed line is the mean.",
            Markup(bars.relative(results)),
        )
    dashed = " Dashed is local training." if results.has_local else ""
    if len(results.stages) - results.has_local > 1 and any(silo.scores for silo in results.silos):
        found["stages"] = Card(
            "Accuracy by round",
            "Each thin line is a silo, the thick black line the mean of the "
            f"{plural(results.compared, 'silo')} with a score after every round{_other_lines(facts)}."
            f"{dashed} Where lines are flat, more rounds change nothing.{_some(results)}",
            Markup(lines.by_stage(facts)),
        )
    if facts.simulated and any(facts.simulated.curve(means) for means in _means(facts)):
        found["time-to-accuracy"] = Card(
            "Accuracy by simulated time",
            "The accuracy of the models that exist at a given time, mean of the silos"
            f"{_other_lines(facts)}; it changes when a round is over.{dashed} Simulated time is computing "
            "and sending, see Time.",
            Markup(lines.by_simulated_time(facts)),
        )
    return found


def _means(facts: Facts) -> list[Mapping[Stage, float]]:
    return [facts.results.means, facts.targets.means, facts.results.joint]


def _other_lines(facts: Facts) -> str:
    told = ""
    if facts.targets.means:
        told += ", the green line how many target labels are right"
    if facts.results.joint:
        told += ", the orange line the global network over all classes"
    return told


def _federation(facts: Facts) -> dict[str, Card]:
    if not facts.members:
        return {}
    members = Table(
        "Members by institution",
        [Column("Institution", "name"), Column("Members"), Column("Names", "text")],
        [[name, f"{len(inside):,}", listing(inside, 50)] for name, inside in facts.members.items()],
        summary="Members by name",
        longest=30,
    )
    return {
        "tree": Card(
            "The federation",
            "Each institution is a silo of the server; a dot is one of its members, the number says how many "
            "there are.",
            Markup(tree([silo.name for silo in facts.results.silos], facts.members)),
            members,
        )
    }
