"""The page of a run's votes: what each rule would elect, and what that looks like."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, is_frame, take
from cosilo.methods.cofed.alarm import alarms, single_votes
from cosilo.methods.cofed.elections import Outcome
from cosilo.methods.cofed.looking import Look, examples
from cosilo.report.elected_sheet import are_pictures, as_bytes
from cosilo.report.formatting import ratio, short
from cosilo.report.run_page import environment
from cosilo.runs.durable_files import write


@dataclass(frozen=True)
class Shown:
    """One instance: a picture as a data address, or a text."""

    place: int
    content: str


def write_votes_page(
    path: Path, folder: str, look: Look, outcome: Outcome, shown: str, pool: Instances | None
) -> None:
    """Write the page; with the pool, it shows what `outcome` elected."""
    sheets = {}
    if pool is not None:
        sheets = {
            name: [Shown(int(place), _show(take(pool, np.array([place])))) for place in places]
            for code, name in enumerate(look.classes)
            for places in [examples(outcome, look.ballots, code)]
        }
    page = environment().get_template("votes.html")
    text = page.render(
        folder=folder,
        look=look,
        verdict=verdict(look),
        sheets=sheets,
        shown=shown,
        pictures=pool is not None and are_pictures(pool),
    )
    write(path, text.encode())


def verdict(look: Look) -> str:
    """What the votes say about the pool, in a sentence or two."""
    said = alarms(look.kappas)
    if not look.is_doubtful:
        said = [f"silos go with each other's votes by a median κ of {ratio(look.median_kappa)}", *said]
    said += [
        f"by the paper's rule, {line}"
        for line in single_votes(0.3, dict(zip(look.classes, look.holders, strict=True)))
    ]
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in said)


def _show(one: Instances) -> str:
    if isinstance(one, np.ndarray) and one.ndim in (3, 4):
        return _picture(one[0])
    if is_frame(one):
        return short(", ".join(f"{name} {value}" for name, value in one.iloc[0].items()), 160)
    if isinstance(one, np.ndarray) and one.ndim == 2:
        return short(" ".join(f"{value:g}" for value in one[0].tolist()), 160)
    return short(str(one[0]), 160)


def _picture(pixels: NDArray[np.generic]) -> str:
    from matplotlib.image import imsave

    values = as_bytes(pixels)
    file = io.BytesIO()
    if values.ndim == 2:
        imsave(file, values, cmap="gray", vmin=0, vmax=255, format="png")
    else:
        imsave(file, values, format="png")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
