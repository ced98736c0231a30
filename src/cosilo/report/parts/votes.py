"""CoFED's votes: what was elected, who agreed with whom, what each silo was given."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from cosilo.methods.cofed import OwnDecision, Vote, Votes
from cosilo.protocol.stage import LOCAL, Stage
from cosilo.report.bars import MOST_BARS, named_bars
from cosilo.report.formatting import percent, ratio, short
from cosilo.report.heat_maps import heat_map
from cosilo.report.parts.part import Card, Column, ReportPart, SiloColumn, Table
from cosilo.report.results import Results
from cosilo.report.svg import ORANGE, look, render
from cosilo.text import listing

#: A table with more cells than this would weigh too much; it then shows the first and the last vote.
_MOST_CELLS = 5000


def show_votes(found: Votes, results: Results) -> ReportPart:
    """Bars by class, agreement by pair of silos, a table of rounds; two columns of the table of silos."""
    votes = found.voting
    if not votes:
        return ReportPart()
    last, several = votes[-1], len(votes) > 1
    cards = {"elected": _elected_card(votes, results)}
    if last.voters:
        cards["agreement"] = Card(
            "Agreement between silos",
            "Of the pool instances that both silos put into classes both have, the share they put into the "
            f"same one{' (last round)' if several else ''}; blank where there is none to compare, and 1 by "
            "definition if they share a single class."
            + (
                f" Of {len(last.voters):,} silos {len(last.compared)}, evenly from all."
                if last.compared
                else ""
            ),
            Markup(_agreement_figure(last, results)),
        )
    if several:
        cards["rounds"] = Card("Round by round", table=_table_of_rounds(votes, results))
    received = {name: f"{count:,}" for name, count in last.received.items()}
    columns = [SiloColumn(f"Pseudo-labels received{' (last round)' if several else ''}", received)]
    if last.own_votes:
        columns.append(
            SiloColumn(
                "Of these its own vote", {name: percent(share) for name, share in last.own_votes.items()}
            )
        )
    if results.control:
        columns.append(
            SiloColumn("Relative without labels", {name: ratio(one) for name, one in results.control.items()})
        )
    if any(last.abstained.values()):
        abstained = {name: percent(share) for name, share in last.abstained.items()}
        columns.append(SiloColumn("Abstained on", abstained))
    if last.decisions:
        cards = {"decisions": _decisions_card(last, results), **cards}
        used = {name: "federated" if one.taken else "its own" for name, one in last.decisions.items()}
        columns = [SiloColumn("Model in use", used), *columns]
    notes = [" ".join(in_use(last))] if last.decisions else []
    return ReportPart(cards, columns, [*notes, *(f"Warning: {line}." for line in last.alarms)])


def in_use(vote: Vote) -> list[str]:
    """Which silos use which model, and why, a line each; nothing if no silo said."""
    if not vote.decisions:
        return []
    against = [name for name, one in vote.decisions.items() if not one.taken and not one.doubtful]
    unproven = [name for name, one in vote.decisions.items() if not one.taken and one.doubtful]
    lines = []
    if against:
        kept, its = _keep(against)
        lines.append(f"{kept}: {its} own data speaks against the federated one.")
    if unproven:
        kept, its = _keep(unproven)
        who = "it" if len(unproven) == 1 else "they"
        lines.append(
            f"{kept}: silos agree less on this pool than {who} would expect of data like {its} own, so {who} "
            f"wanted proof of a gain, and {its} own data gives none."
        )
    if not lines:
        return ["Every silo uses the federated model: no silo's own data speaks against it."]
    return [*lines, "Both models are kept; an owner overrules this with `cosilo use`."]


def _keep(names: Sequence[str]) -> tuple[str, str]:
    one = len(names) == 1
    return f"{listing(names)} {'keeps its own model' if one else 'keep their own models'}", (
        "its" if one else "their"
    )


def _decisions_card(vote: Vote, results: Results) -> Card:
    bar = (
        "The offer is refused if it is behind by more than one standard error: one that is just as good is "
        "refused in 16 of 100 cases."
    )
    if any(one.doubtful for one in vote.decisions.values()):
        bar += (
            " A silo that would expect silos to agree better on a pool like its data takes it only if it is "
            "ahead by more than 1.645 standard errors (“wants proof”): one that is no better is taken in at "
            "most 5 of 100 cases."
        )
    rows = []
    for silo in results.shown:
        one = vote.decisions.get(silo.name)
        if one is None:
            continue
        local, offered = silo.scores.get(LOCAL), results.offered.get(silo.name)
        rows.append(
            [
                silo.name,
                "federated" if one.taken else "its own",
                percent(local.accuracy) if local else "–",
                percent(offered) if offered is not None else "–",
                _said(one),
            ]
        )
    return Card(
        "Which model each silo uses",
        "Each silo asked its own data, instances that neither model had learnt from: how many does only the "
        f"offered model get right, and how many only the one before? {bar} Test data took no part in that; "
        "both models are kept.",
        table=Table(
            "Which model each silo uses",
            [
                Column("Silo", "name"),
                Column("In use", "text"),
                Column("Alone, test"),
                Column("Offered, test"),
                Column("Its own data says", "text"),
            ],
            rows,
        ),
    )


def _said(one: OwnDecision) -> str:
    """What a silo's own data said of an offer: in numbers, if the silo tells them."""
    if None not in (one.instances, one.gained, one.lost):
        text = f"{one.gained} better, {one.lost} worse of {one.instances:,}"
    elif one.doubtful:
        text = "a gain" if one.taken else "no gain"
    else:
        text = "nothing against it" if one.taken else "against it"
    return text + ("; wants proof" if one.doubtful else "")


def mean_agreement(vote: Vote) -> float | None:
    """Over the pairs of different silos that can be compared."""
    values = [
        value
        for i, row in enumerate(vote.agreement)
        for j, value in enumerate(row)
        if i < j and value is not None
    ]
    return statistics.fmean(values) if values else None


def _elected_card(votes: Sequence[Vote], results: Results) -> Card:
    several, many = len(votes) > 1, len(votes[-1].elected) > MOST_BARS
    return Card(
        "Pseudo-labels by class",
        "A bar is the number of pool instances that the silos elected to one class"
        f"{' in the last round' if several else ''}; by the paper's rule before each silo loses those that "
        "contradict each other within its own classes"
        f"{'; the circles are the first round' if several and not many else ''}"
        f"{f'; shown are the {MOST_BARS // 2} classes with most and with least' if many else ''}.",
        Markup(_elected_figure(votes)),
        _table_of_classes(votes, results),
    )


def _table_of_classes(votes: Sequence[Vote], results: Results) -> Table:
    shown = votes
    if len(votes) * len(votes[-1].elected) > _MOST_CELLS:
        shown = [votes[0], votes[-1]]
    holders = dict.fromkeys(results.vocabulary, 0)
    for silo in results.silos:
        for name in silo.classes:
            holders[name] += 1
    titles = ["Elected"] if len(votes) == 1 else [vote.stage for vote in shown]
    return Table(
        "Pseudo-labels by class",
        [Column("Class", "name"), Column("Silos with it"), *map(Column, titles)],
        [
            [name, str(count), *[f"{vote.elected.get(name, 0):,}" for vote in shown]]
            for name, count in holders.items()
        ],
        summary="Every class in numbers",
        longest=30,
    )


def _table_of_rounds(votes: Sequence[Vote], results: Results) -> Table:
    rows = []
    if LOCAL in results.means:
        rows.append([str(LOCAL), percent(results.means[LOCAL]), "", "", ""])
    for number, vote in enumerate(votes, start=1):
        agreed, stage = mean_agreement(vote), Stage.parse(vote.stage)
        rows.append(
            [
                f"round {number}",
                percent(results.means[stage]) if stage in results.means else "–",
                f"{sum(vote.elected.values()):,}",
                f"{statistics.fmean(vote.received.values()):,.0f}" if vote.received else "–",
                ratio(agreed) if agreed is not None else "–",
            ]
        )
    titles = ["Mean accuracy", "Elected", "Mean received", "Mean agreement"]
    return Table("Results by round", [Column("After", "name"), *map(Column, titles)], rows)


def _elected_figure(votes: Sequence[Vote]) -> str:
    """How many pseudo-labels of each class the last vote elected, and the first one."""
    last, first = votes[-1].elected, votes[0].elected
    alt = f"Bar chart of the pseudo-labels elected for each of {len(last)} classes"
    with look():
        if len(last) > MOST_BARS:
            return render(_ends(last), "elected", alt)
        form = "{:,}" if len(votes) == 1 else ""  # numbers would be in the way of the circles
        figure = named_bars([short(name, 18) for name in last], list(last.values()), form)
        axes = figure.axes[0]
        axes.set_xlabel("pool instances elected")
        if len(votes) > 1:
            at = range(len(last))
            style: dict[str, Any] = {"facecolor": "white", "edgecolor": ORANGE, "linewidth": 2, "zorder": 3}
            circles = [first.get(name, 0) for name in last]
            axes.scatter(circles, at, s=38, clip_on=False, **style)
            axes.set_xlim(0, 1.05 * max(*circles, *last.values(), 1))
        return render(figure, "elected", alt)


def _ends(elected: Mapping[str, int]) -> Figure:
    """Of many classes those that got most and those that got least, each by its name."""
    order = sorted(elected, key=lambda name: -elected[name])
    few = MOST_BARS // 2
    most, least = order[:few], order[-few:]
    names = [short(name, 18) for name in most], [short(name, 18) for name in least]
    counts = [elected[name] for name in most], [elected[name] for name in least]
    between = f"({len(order) - 2 * few} between)"
    figure = named_bars([*names[0], between, *names[1]], [*counts[0], 0, *counts[1]], "")
    figure.axes[0].set_xlabel("pool instances elected")
    return figure


def _agreement_figure(vote: Vote, results: Results) -> str:
    """How often each pair of silos gave the same label."""
    matrix = np.array([[np.nan if v is None else v for v in row] for row in vote.agreement], dtype=float)
    alt = f"Heat map of the share of pool labels on which each pair of {len(matrix)} silos agrees"
    names = vote.compared or vote.voters
    places = [results.places[name] for name in names]
    return heat_map("agreement", alt, matrix, names, "{:.2f}", "agreement", top=1.0, places=places)
