"""Models of silos out of their records, without their data, and what they say about files."""

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosilo.config.resolve import make_learner
from cosilo.config.settings import LearnerSettings
from cosilo.config.source import Source, allow_imports_beside
from cosilo.data.instances import Instances, example
from cosilo.data.new_files import read_new
from cosilo.errors import DataError, LearnerError, RunError
from cosilo.learners.adapt import as_learner
from cosilo.learners.base import Learner
from cosilo.learners.untrained import read_untrained
from cosilo.runs.durable_files import read_json
from cosilo.silo.model import Model, open_model

if TYPE_CHECKING:
    import pandas as pd


def model_of(record: Path, learner: Any = None, which: str | None = None) -> Model:
    """A silo's model; `learner` is like the one it trained, where the record does not say how to make it."""
    if not (record / "silo.json").exists():
        raise RunError(f"{record}: is not a silo's record of a run (it has no silo.json)")
    about = read_json(record / "silo.json")
    made = _untrained(record, about) if learner is None else deepcopy(as_learner(learner))
    return open_model(record, about, made, which)


def _untrained(record: Path, about: dict[str, Any]) -> Learner:
    """The silo's learner before any training, made as its recipe says or read from the record."""
    origin = about["origin"]
    if origin is not None:
        source = Source(str(record / "silo.json"), Path(origin["folder"]))
        allow_imports_beside(source)
        settings = LearnerSettings.model_validate(origin["learner"])
        return as_learner(make_learner(settings, example(about["instances"]), f"{source.name}: learner"))
    found, why = None, "it is not a scikit-learn object"
    try:
        found = read_untrained(record)
    except LearnerError as error:
        why = str(error)
    if found is None:
        raise RunError(
            f"{record}: only Python can make its {about['learner']} again ({why}); hand one over: "
            f"Run.open(…, learners={{{about['name']!r}: …}})"
        )
    return found


def predictions(model: Model, file: Path, text: str | None = None, labeller: bool = False) -> "pd.DataFrame":
    """What the instances of a file are, by a silo's model: its other columns, label and probability.

    `text` names the column of texts, if the silo's recipe does not. With `labeller`, the models of others
    that labelled the silo's target are asked instead; there is then a confidence, and who spoke.
    """
    import pandas as pd

    origin = model.about["origin"] or {}
    X, beside = _read(model, file, text or origin.get("text"), origin.get("label"))
    found = model.label(X) if labeller else model.to_frame(X)
    clash = {name: f"{name}_given" for name in beside.columns if name in found.columns}
    return pd.concat([beside.rename(columns=clash).reset_index(drop=True), found], axis=1)


def _read(model: Model, file: Path, text: str | None, label: str | None) -> "tuple[Instances, pd.DataFrame]":
    """The instances of a file like the silo's own, and its other columns."""
    wants = model.instances
    if "text" in wants and file.suffix.lower() in (".csv", ".parquet") and text is None:
        raise DataError(f"{file}: which column has the texts? say so: --text COLUMN")
    columns = [str(name) for name, _ in wants["columns"]] if "columns" in wants else None
    return read_new(file, columns, text if "text" in wants else None, label)
