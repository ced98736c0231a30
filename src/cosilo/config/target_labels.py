"""The labels that a run found for a silo's unlabelled target points, out of the silo's own record."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosilo.config.source import Source
from cosilo.data.new_files import read_new
from cosilo.errors import CosiloError, DataError, RunError
from cosilo.runs.durable_files import read_json
from cosilo.runs.silo_state import last_state
from cosilo.silo.model import labels_of
from cosilo.silo.target_labels import target_frame

if TYPE_CHECKING:
    import pandas as pd


def read_labels(record: Path) -> "pd.DataFrame":
    """The labels of one silo's target points, each with what its file says of it beside its features.

    `row` is the place in the file, from 1 on. Without a recipe nobody knows the file: there is only a row.
    """
    import pandas as pd

    state = last_state(record)
    if state is None or not (record / "silo.json").exists():
        raise RunError(f"{record}: has no labels yet; the run did not get that far")
    about = read_json(record / "silo.json")
    if about["wanted"] == about["classes"] and "target labels" not in state.noted():
        raise DataError(f"silo {about['name']!r}: has no target; a run labels the points of a target only")
    labels = labels_of(about)
    found = target_frame(about["name"], state.noted(), lambda codes: labels[codes])
    beside = _beside(about, len(found))
    clash = {name: f"{name}_given" for name in beside.columns if name in found.columns}
    return pd.concat([beside.rename(columns=clash), found], axis=1)


def _beside(about: dict[str, Any], count: int) -> "pd.DataFrame":
    """What the file of the unlabelled points says of each, beside its features."""
    import pandas as pd

    rows = pd.DataFrame({"row": np.arange(1, count + 1)})
    origin = about["origin"] or {}
    if "unlabelled" not in origin:
        return rows
    path = Source("", Path(origin["folder"])).path(Path(origin["unlabelled"]))
    columns = [str(name) for name, _ in about["instances"].get("columns", [])] or None
    text = origin.get("text")
    try:
        _, others = read_new(path, columns, text if "text" in about["instances"] else None)
    except CosiloError:  # the labels are here; the file may have moved
        return rows
    label = origin.get("label")
    if origin.get("gaps") and label in others:
        open_ = np.flatnonzero(others[label] == "")
        others, rows = others.iloc[open_].reset_index(drop=True), pd.DataFrame({"row": open_ + 1})
    if len(others) != count:
        return pd.DataFrame({"row": np.arange(1, count + 1)})
    return pd.concat([rows, others.drop(columns=[label], errors="ignore")], axis=1)
