"""DoFed-SPP's exchange: who learns from whom, which models travelled, what that cost."""

import statistics
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from cosilo.methods.dofed_spp.findings import Exchanges
from cosilo.report.formatting import percent, seconds, size
from cosilo.report.heat_maps import filled_cells
from cosilo.report.parts.affinity import who_learns_from_whom
from cosilo.report.parts.part import Card, Cell, Column, ReportPart, Table
from cosilo.report.results import Results
from cosilo.report.svg import BLUE, DASHED, INK, TALL, look, new, render


def show_exchanges(found: Exchanges, results: Results) -> ReportPart:
    """Similarity, models that travelled, the budget, and all of it round by round."""
    what = "the similarity ratio after the last round (a row adds up to 1)"
    cards = who_learns_from_whom(found.similarity, "similarity ratio", what, results)
    if found.exchange:
        cards["travels"] = Card(
            "Models that travelled",
            "A filled cell is a model that was sent to all silos in that round; nobody else's was. Those of "
            "the first round were uploaded before it, as everyone's were.",
            Markup(_travels_figure(found, results)),
        )
        if found.budget is not None:
            cards["budget"] = Card(
                "Time budget",
                "What the rounds and what came before them took by the method's own reckoning (uploads, "
                "training, ratios, labelling), added up; dashed is what there was.",
                Markup(_budget_figure(found, found.budget)),
            )
        cards["exchange"] = _round_by_round(found)
    return ReportPart(cards)


def _round_by_round(found: Exchanges) -> Card:
    downsized = any(one.reconstruction_error for one in found.exchange)
    titles = ["Round", "Models that travelled", "A silo labels with", "Labels that changed", "New ratios"]
    titles.append("Sent to a silo")
    titles += ["Reconstruction error"] * downsized + ["Budget used"] * (found.budget is not None)
    rows = []
    for one in found.exchange:
        row: list[Cell] = [str(one.round), str(len(one.uploaded)), str(one.labellers)]
        row += [
            "–" if one.labels_moved is None else percent(one.labels_moved),
            str(one.fresh_ratios),
            size(one.bytes_sent),
        ]
        errors = one.reconstruction_error.values()
        if errors:
            row.append((f"{statistics.fmean(errors):.3g}", f"at most {max(errors):.3g}"))
        elif downsized:
            row.append("–")
        if found.budget is not None:
            row.append((seconds(one.seconds), percent(one.seconds / found.budget)))
        rows.append(row)
    note = (
        "A silo labels with at most this many of the models that travelled: those that help it. New ratios: "
        "how many silos found models that help; the others keep the ratios they had."
    )
    if downsized:
        note += (
            " Reconstruction error: what a model lost when it was downsized before it was sent on, "
            "mean over the models."
        )
    if found.budget is not None:
        note += f" The budget is {seconds(found.budget)} for all rounds."
    table = Table("The exchange by round", [Column(title) for title in titles], rows)
    return Card("The exchange, round by round", note, table=table)


def _travels_figure(found: Exchanges, results: Results) -> str:
    """Whose models travelled in which round: a row for each silo, a column for each round."""
    rounds = found.exchange
    cells = [[name in one.uploaded for one in rounds] for name in results.places]
    alt = f"Grid of {len(cells)} silos and {len(rounds)} rounds: filled where the silo's model travelled"
    return filled_cells(
        "travels", alt, np.array(cells, dtype=float), results.places, [one.round for one in rounds], "rounds"
    )


def _budget_figure(found: Exchanges, total: float) -> str:
    """Seconds used up to each round, against T."""
    x = [one.round for one in found.exchange]
    y = [one.seconds for one in found.exchange]
    with look():
        figure = new(TALL)
        axes = figure.add_subplot()
        axes.bar(x, y, 0.7, color=BLUE)
        axes.axhline(total, color=INK, linewidth=1.5, linestyle=DASHED)
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "left", "va": "bottom"}
        axes.annotate(f"T = {total:,.4g} s", (0, total), (4, 3), xycoords=("axes fraction", "data"), **style)
        axes.set_xlim(min(x) - 0.8, max(x) + 0.8)
        axes.set_ylim(0, 1.15 * max(total, *y))
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.set_major_formatter("{x:,.4g}")
        axes.grid(axis="y")
        axes.set_xlabel("rounds")
        axes.set_ylabel("seconds of the budget used")
        return render(figure, "budget", f"{y[-1]:.4g} of {total:.4g} seconds used after {len(x)} rounds")
