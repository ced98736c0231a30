"""For the owner of a silo: labels for new instances, by the silo's model in a run."""

from pathlib import Path
from typing import TYPE_CHECKING

from cosilo import data
from cosilo.engines.flare.party_files import read_settings, read_silo
from cosilo.errors import ConfigError, RunError
from cosilo.runs.silo_record import SiloRecord
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    import pandas as pd


def predictions(silo_file: Path, record: Path, instances: Path, labeller: bool = False) -> "pd.DataFrame":
    """A label for each instance of a file like the silo's own; `record` is the silo's folder of the run.

    By the silo's own model, or by the `labeller` that the run left it, with confidence and who spoke.
    """
    import pandas as pd

    settings, silo = read_settings(silo_file), read_silo(silo_file)
    if not isinstance(silo, Silo):
        raise ConfigError(f"{silo_file}: is an institution; the models are those of its members")
    if not (record / "audit.jsonl").exists():
        raise RunError(f"{record}: is not a silo's record of a run (it has no audit.jsonl)")
    kept = SiloRecord(record)
    kept.check_identity(silo, but=["shares", "version"])
    kept.restore(silo)
    if not silo.trained:
        raise RunError(f"{record}: has no model yet; the run did not get that far")
    label = settings.label if settings.label in _columns(instances) else None
    table = data.read(instances, label=label, columns=settings.columns, text=settings.text)
    return silo.label(table.X) if labeller else pd.DataFrame({"label": silo.predict(table.X)})


def _columns(path: Path) -> list[str]:
    """The columns of a CSV file; none for other files."""
    import pandas as pd

    if path.suffix.lower() != ".csv" or not path.exists():
        return []
    return [str(name) for name in pd.read_csv(path, nrows=0).columns]
