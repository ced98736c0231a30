"""The coordinator's end of a FLARE job."""

from pathlib import Path
from typing import Any

from nvflare.collab import collab

import cosilo
from cosilo.config.resolve import known_method
from cosilo.coordination.run_loop import PlannedRun, conduct
from cosilo.engines.flare import alterations
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.engines.flare.kit_settings import HOLD, settled
from cosilo.engines.flare.party_files import as_federation
from cosilo.protocol.events import Event, Happening
from cosilo.runs.events import EventLog
from cosilo.runs.run import begin, locked

alterations.send_bytes_only()


class Held(Exception):
    """The job ends here and the run goes on in another one: a silo is back."""


class Coordination:
    """One job of a run: it goes on where the last one ended; `federation` is what the partners agreed on."""

    def __init__(self, run: str, federation: dict[str, Any]) -> None:
        self.run, self.federation = run, federation

    @collab.main
    def coordinate(self) -> None:
        """Follow the method; what became of it is in the run directory."""
        folder = Path(settled(Path(collab.workspace.get_root_dir())).runs) / self.run

        def hold() -> None:
            if (folder / HOLD).exists():
                (folder / HOLD).unlink()
                raise Held("a silo is back; the run goes on with it in another job")

        carrier = FlareCarrier({site.name: site for site in collab.clients}, hold)
        conduct_job(folder, self.federation, carrier)


def conduct_job(folder: Path, federation: dict[str, Any], carrier: FlareCarrier) -> None:
    """Start a run or go on with it."""
    settings = as_federation(federation, "federation")
    method, agreed = known_method(settings.method, "federation"), settings.agreed()
    about = {
        "cosilo": cosilo.__version__,
        "method": {"use": method.name, **method.model_dump(mode="json")},
        "seed": agreed.seed,
        "silos": agreed.silos,
        "pool": agreed.pool,
        "pool_size": agreed.pool_size,
    }
    with locked(folder):
        run = begin(folder, about, None)
        if run.status == "finished":
            return
        run.mark("running", quorum=agreed.quorum, timeout=agreed.timeout, engine="flare")
        try:
            conduct(PlannedRun(run, method, agreed), carrier)
        except Held:
            run.mark("stopped")
            EventLog(folder / "events.jsonl")(Event(Happening.HELD))
