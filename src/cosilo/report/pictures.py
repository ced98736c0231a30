"""The figures of a report, each with its title and a sentence on how to read it."""

from dataclasses import dataclass

from markupsafe import Markup

from cosilo.report import figures, heat_maps, lines, phrases
from cosilo.report.facts import Facts
from cosilo.report.tree import tree


@dataclass(frozen=True)
class Picture:
    """A figure with its sentence on how to read it."""

    title: str
    svg: Markup
    caption: str


def pictures(facts: Facts) -> dict[str, Picture]:
    """All figures of a run, by their id in the page."""
    found = {
        **_accuracy(facts),
        **_institutions(facts),
        **_exchange(facts),
        "overlap": Picture(
            "Overlap of tasks",
            Markup(heat_maps.overlap(facts.results)),
            "A cell counts the classes that the silo of its row and the silo of its column share, darker for "
            "more; on the diagonal are a silo's own classes.",
        ),
        **(_voting(facts) if facts.results.rounds else {}),
    }
    timing = facts.timing
    if timing.asks:
        many = len(timing.asks) > figures.MOST_BARS
        found["timeline"] = Picture(
            "On the clock",
            Markup(figures.timeline(timing)),
            "Each bar adds up all asks for one step, until the last silo had answered."
            if many
            else "Each bar is one ask, from when it went out until the last silo had answered; between bars "
            "the coordinator works alone; the dashed line is the end of the run.",
        )
    return found


def numbers(facts: Facts) -> dict[str, int]:
    """The places of the silos in tables."""
    return {silo.name: number for number, silo in enumerate(facts.results.silos, start=1)}


def _accuracy(facts: Facts) -> dict[str, Picture]:
    results = facts.results
    found = {}
    if results.spread:
        found["relative"] = Picture(
            "Relative accuracy",
            Markup(figures.relative(results)),
            "Each bar counts silos; bars to the right of the solid line at 1 kept or gained accuracy (blue), "
            "bars to the left lost some (orange); the dashed line is the mean.",
        )
    dashed = " Dashed is local training." if results.has_local else ""
    if len(results.stages) - results.has_local > 1 and any(silo.scores for silo in results.silos):
        found["stages"] = Picture(
            "Accuracy by round",
            Markup(lines.stages(facts)),
            "Each thin line is a silo, the thick black line the mean of the "
            f"{phrases.plural(results.compared, 'silo')} with a score after every round{_others(facts)}."
            f"{dashed} Where lines are flat, more rounds change nothing.",
        )
    if facts.simulated and any(facts.simulated.curve(means) for means in _means(facts)):
        found["time-to-accuracy"] = Picture(
            "Accuracy by simulated time",
            Markup(lines.time_to_accuracy(facts)),
            "What the models reach that are there at a time, mean of the silos"
            f"{_others(facts)}; it changes when a round is over.{dashed} Simulated time is computing and "
            "uploading, see Time.",
        )
    return found


def _means(facts: Facts) -> list[dict[str, float]]:
    return [dict(facts.results.means), dict(facts.targets.means), dict(facts.results.joint)]


def _others(facts: Facts) -> str:
    told = ""
    if facts.targets.means:
        told += ", the green line how many target labels are right"
    if facts.results.joint:
        told += ", the orange line the global network over all classes"
    return told


def _exchange(facts: Facts) -> dict[str, Picture]:
    exchange = facts.exchange
    found = {}
    if exchange.similarity and exchange.similarity.any:
        ratios = exchange.similarity.kind == "similarity"
        what = (
            "the similarity ratio after the last round (a row adds up to 1)"
            if ratios
            else "the weight that its model got, added up over the rounds"
        )
        found["similarity"] = Picture(
            "Who learns from whom",
            Markup(heat_maps.similarity(exchange.similarity, numbers(facts))),
            f"The silo of a row learns from the silo of a column: {what}; darker is more, blank nothing.",
        )
    if exchange.rounds:
        found["travels"] = Picture(
            "Models that travelled",
            Markup(heat_maps.travels(exchange, numbers(facts))),
            "A filled cell is a model that was uploaded in that round; nobody else's was.",
        )
    if exchange.rounds and exchange.budget is not None:
        found["budget"] = Picture(
            "Time budget",
            Markup(lines.budget(exchange)),
            "What the rounds took by the method's own reckoning (uploads, training, ratios, labelling), "
            "added up; dashed is what there was.",
        )
    return found


def _institutions(facts: Facts) -> dict[str, Picture]:
    found = {}
    if facts.members:
        found["tree"] = Picture(
            "The federation",
            Markup(tree([silo.name for silo in facts.results.silos], facts.members)),
            "Each institution is a silo of the server; a dot is one of its members, the number says how many "
            "there are.",
        )
    if facts.pace is not None and any(facts.pace.epochs.values()):
        found["epochs"] = Picture(
            "Epochs by institution",
            Markup(lines.epochs(facts.pace)),
            "How many epochs each institution's members train in a round: fewer where its model is far from "
            "the global one.",
        )
    if facts.pace is not None and any(value for row in facts.pace.differences.values() for value in row):
        found["differences"] = Picture(
            "Weight difference by institution",
            Markup(lines.differences(facts.pace)),
            "ω: how far an institution's weights are from the global ones, on a logarithmic axis.",
        )
    return found


def _voting(facts: Facts) -> dict[str, Picture]:
    rounds = facts.results.rounds
    several = len(rounds) > 1
    many = len(rounds[-1].elected) > figures.MOST_BARS
    caption = (
        f"A bar is the number of pool instances that the silos elected to one class"
        f"{' in the last round' if several else ''}, before each silo loses those that contradict each other "
        f"within its own classes{'; the circles are the first round' if several and not many else ''}."
    )
    found = {"elected": Picture("Pseudo-labels by class", Markup(figures.elected(rounds)), caption)}
    if rounds[-1].voters:
        found["agreement"] = Picture(
            "Agreement between silos",
            Markup(heat_maps.agreement(rounds[-1], numbers(facts))),
            "Of the pool instances that both silos put into classes both have, the share they put into the "
            f"same one{' (last round)' if several else ''}; blank where there is none to compare, and 1 by "
            "definition if they share a single class.",
        )
    return found
