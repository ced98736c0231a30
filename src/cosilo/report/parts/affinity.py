"""Who learns from whom: FedFomo's weights, and any matrix of that kind."""

import numpy as np
from markupsafe import Markup

from cosilo.methods.fedfomo import Affinity
from cosilo.protocol.findings import Matrix
from cosilo.report.heat_maps import heat_map
from cosilo.report.parts.part import Card, ReportPart
from cosilo.report.results import Results


def show_affinity(found: Affinity, results: Results) -> ReportPart:
    """The heat map."""
    what = "the weight that its model got, added up over the rounds"
    return ReportPart(who_learns_from_whom(found.affinity, "weight over all rounds", what, results))


def who_learns_from_whom(matrix: Matrix | None, label: str, what: str, results: Results) -> dict[str, Card]:
    """A card with the heat map of a matrix; none if nobody learns from anybody."""
    if matrix is None or not any(value > 0 for row in matrix.values for value in row):
        return {}
    values = np.array(matrix.values, dtype=float)
    values[values <= 0] = np.nan
    alt = f"Heat map of how much each of {len(values)} silos, a row, learns from each other one, a column"
    svg = heat_map(
        "similarity",
        alt,
        values,
        matrix.silos,
        "{:.2f}",
        label,
        top=float(np.nanmax(values)),
        places=[results.places[name] for name in matrix.silos],
        sides=("learns", "from"),
    )
    caption = f"The silo of a row learns from the silo of a column: {what}; darker is more, blank nothing."
    return {"similarity": Card("Who learns from whom", caption, Markup(svg))}
