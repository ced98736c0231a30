"""What a kit knows of this machine: a file in its `local` folder, which no job can bring or change."""

from dataclasses import asdict, dataclass
from pathlib import Path

from cosilo.errors import ConfigError, RunError
from cosilo.runs.durable_files import read_json, write_json

_FILE = "cosilo.json"
#: A file with this name in a run directory ends the run's job before the next step: a silo is back.
HOLD = "hold"


@dataclass(frozen=True)
class KitSettings:
    """Where runs are kept on this machine, and at a silo the file that describes the silo."""

    runs: str
    silo: str | None = None


def write_kit_settings(kit: Path, place: KitSettings) -> None:
    """Write the settings of a kit on this machine."""
    write_json(kit / "local" / _FILE, asdict(place))


def read_kit_settings(kit: Path) -> KitSettings:
    """Read the settings of a kit on this machine."""
    path = kit / "local" / _FILE
    if not path.exists():
        raise ConfigError(
            f"{kit}: was never started on this machine; start it: cosilo coordinator start KIT, "
            "at a silo cosilo join KIT SILO.toml"
        )
    try:
        return KitSettings(**read_json(path))
    except RunError:
        raise ConfigError(
            f"{path}: is damaged (its checksum differs); start the kit again, which writes it"
        ) from None
