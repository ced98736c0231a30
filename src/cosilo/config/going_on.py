"""Going on after a run: a silo with more data, and a silo that comes late, from files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cosilo import data
from cosilo.config.build import make_members
from cosilo.config.explain import explain
from cosilo.config.recipe_file import read
from cosilo.config.settings import SiloSettings, validate
from cosilo.config.silos import make_silo
from cosilo.config.source import Source, allow_imports_beside, read_recipe
from cosilo.coordination.boundary import seed_for
from cosilo.coordination.institution import Institution
from cosilo.data.own_files import Table
from cosilo.errors import ConfigError, RunError
from cosilo.federation.late import add_silo
from cosilo.methods import METHODS
from cosilo.protocol.events import Observer
from cosilo.protocol.stage import FEDERATED, Measure
from cosilo.runs.durable_files import new_folder, read_json, write_json
from cosilo.runs.kept_models import choose, last_continued
from cosilo.runs.run import RunDirectory
from cosilo.runs.silo_record import SiloRecord
from cosilo.silo.silo import Silo


@dataclass(frozen=True)
class Continued:
    """What came of training on with more data: accuracies on the silo's own test data, if it has any."""

    silo: str
    instances: int
    before: float | None
    after: float | None


def add_from_file(folder: Path, file: Path, observers: Sequence[Observer] = ()) -> str:
    """Let the silo of a file gain from a finished run; returns its name.

    Its pool is that of its own file, or of the run's recipe.
    """
    run, silo = RunDirectory(folder), silo_from(file)
    if not isinstance(silo, Silo):
        raise ConfigError(f"{file}: is an institution; only a silo can come late")
    if silo.pool is None and (folder / "recipe.json").exists():
        values, source = read_recipe(folder, "")
        _, pool = make_members(validate(values, source.name), source)
        if pool is not None:
            silo.use_pool(pool.X, labels=pool.y)
    add_silo(run, silo, observers)
    return silo.name


def silo_from(file: Path) -> Silo | Institution:
    """The silo that its own file describes, with its data."""
    try:
        settings = SiloSettings.model_validate(read(file))
    except ValidationError as error:
        raise ConfigError(explain(error, str(file), SiloSettings)) from None
    source = Source(str(file), file.parent)
    allow_imports_beside(source)
    return make_silo(settings, source)


def continue_from_files(record: Path, run: RunDirectory | None, files: Sequence[Path]) -> Continued:
    """Let a silo train on with more data, from files like its own; `run` where the whole run is at hand."""
    about = read_json(record / "silo.json")
    origin = about["origin"] or {}
    columns = [str(name) for name, _ in about["instances"].get("columns", [])] or None
    tables = []
    for file in files:
        table = data.read(file, label=origin.get("label"), columns=columns, text=origin.get("text"))
        if table.y is None:
            raise ConfigError(f"{file}: has no labels; wants them, like the silo's own data")
        tables.append(table)
    return train_on(record, _again(record, about, run), tables)


def _again(record: Path, about: dict[str, Any], run: RunDirectory | None) -> Silo:
    """The silo of a record as it was in the run, with its data and its pool."""
    name = about["name"]
    if run is not None:
        values, source = read_recipe(run.folder, f"run.train_on({name!r}, X, y) does it there")
        members, pool = make_members(validate(values, source.name), source)
        silo = next((one for one in members if one.name == name), None)
        if isinstance(silo, Silo) and silo.pool is None and pool is not None:
            silo.use_pool(pool.X, labels=pool.y)
    elif about["origin"] is not None and Path(about["origin"]["file"]).exists():
        silo = silo_from(Path(about["origin"]["file"]))
    else:
        raise RunError(f"{record}: the file that describes silo {name!r} is not where it was")
    if not isinstance(silo, Silo):
        raise RunError(f"{record}: {name!r} is no silo with data of its own in that recipe")
    return silo


def train_on(record: Path, silo: Silo, more: Sequence[Table]) -> Continued:
    """Train on from what a record has, on the silo's data and more, and keep the model beside the others.

    What it got from the others stays part of the lessons; its test data stays what it was.
    """
    about = read_json(record / "silo.json")
    if about["method"] not in METHODS:
        raise ConfigError(f"{record}: {about['method']} is a method of your own; train on with its code")
    method = METHODS[about["method"]](**about["parameters"])
    kept = SiloRecord(record)
    kept.check_identity(silo, but=["shares", "version"])
    silo.seed = seed_for(about["seed"], silo.name, 0)
    silo.hold_out_test_data()
    kept.restore(silo)
    if not silo.trained:
        raise RunError(f"{record}: has no model yet; the run did not get that far")
    scores = [one[Measure.OWN] for one in silo.scores.values() if Measure.OWN in one]
    instances = sum(len(table.X) for table in more)
    for table in more:
        silo.data.grow(table.X, table.y)
    method.train_on(silo)
    last = last_continued(record)
    number = 1 if last is None else int(last.name) + 1
    (record / "continued").mkdir(exist_ok=True)
    with new_folder(record / "continued" / f"{number:05d}") as folder:
        kept.save_state(silo, folder, number)
        write_json(folder / "about.json", {"instances": instances})
    choose(record, "continued")
    after = silo.scores.get(FEDERATED, {}).get(Measure.OWN)
    before = scores[-1].accuracy if scores else None
    return Continued(silo.name, instances, before, None if after is None else after.accuracy)
