"""The labels that a run found for a silo's unlabelled target points, out of the silo's own record."""

from pathlib import Path
from typing import TYPE_CHECKING

from cosilo.config import build
from cosilo.coordination.institution import Institution
from cosilo.errors import RunError
from cosilo.runs.run import RunDirectory
from cosilo.runs.silo_record import SiloRecord
from cosilo.silo.silo import Silo
from cosilo.text import guess, listing

if TYPE_CHECKING:
    import pandas as pd


def read_labels(folder: Path, name: str) -> "pd.DataFrame":
    """The labels of one silo of a finished run that was started from a recipe.

    A member of an institution is called "INSTITUTION/MEMBER".
    """
    there = list(RunDirectory(folder).result["tasks"])
    if name.partition("/")[0] not in there:
        raise RunError(f"{folder}: there is no silo {name!r}{guess(name, there)}; wants {listing(there)}")
    values, source = build.read_recipe(folder, f"run.silos[{name!r}].target_labels() has its labels there")
    silos = build.federation(values, source).silos
    known = {silo.name: silo for silo in silos if isinstance(silo, Silo)}
    for one in silos:
        if isinstance(one, Institution):
            known |= {f"{one.name}/{member.name}": member for member in one.silos}
    if name not in known:
        wants = guess(name, list(known)) or f"; wants one such as {next(iter(known))}"
        raise RunError(f"{folder}: {name!r} is not a silo with data{wants}")
    silo = known[name]
    record = SiloRecord(folder / "silos" / name.replace("/", "/members/"))
    record.check_identity(silo, but=["shares", "version"])
    record.restore(silo)
    return silo.target_labels()
