"""The coordinator's end of a FLARE job."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nvflare.collab import collab

from cosilo.config.resolve import known_method
from cosilo.coordination.run_loop import PlannedRun, contract_of, coordinate_run, late_contract
from cosilo.engines.flare import alterations
from cosilo.engines.flare.admission import admitted
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.engines.flare.kit_settings import HOLD, read_kit_settings
from cosilo.engines.flare.party_files import as_federation
from cosilo.engines.flare.signing import SealsOfCoordinator, Signatory
from cosilo.engines.local.memory import keep_freed_memory
from cosilo.errors import CosiloError
from cosilo.federation.late import method_of, welcome
from cosilo.protocol.contract import Contract
from cosilo.protocol.events import Event, Happening
from cosilo.runs.events import EventLog
from cosilo.runs.locks import locked
from cosilo.runs.run import RunDirectory
from cosilo.runs.run_folders import begin
from cosilo.version import PROTOCOL, __version__

alterations.send_bytes_only()
alterations.tell_no_contents()


class JobHeld(Exception):
    """The job ends here and the run continues in another one: a silo is back."""


class Coordination:
    """One job of a run: it continues where the last ended; `federation` is what the partners agreed on."""

    def __init__(self, run: str, federation: dict[str, Any], salt: str, late: str | None = None) -> None:
        self.run, self.federation, self.salt = run, federation, salt
        #: A silo that comes when the run is over, which the job is for.
        self.late = late

    @collab.main
    def coordinate(self) -> None:
        """Follow the method; the outcome is in the run directory."""
        keep_freed_memory()
        kit = Path(collab.workspace.get_root_dir())
        folder = Path(read_kit_settings(kit).runs) / self.run

        def hold() -> None:
            if (folder / HOLD).exists():
                (folder / HOLD).unlink()
                raise JobHeld("a silo is back; the run continues with it in another job")

        sites = {site.name: site for site in collab.clients}
        signatory = Signatory.of(kit, "server")

        def carrier(contract: Contract) -> FlareCarrier:
            seals = SealsOfCoordinator(
                self.run, contract.hash, signatory, lambda name: admitted(kit).get(name)
            )
            return FlareCarrier(sites, hold, partial(admitted, kit), seals)

        if self.late is None:
            coordinate_job(folder, self.federation, self.salt, carrier)
        else:
            welcome_late(folder, self.late, carrier)


def coordinate_job(
    folder: Path, federation: dict[str, Any], salt: str, carrier: Callable[[Contract], FlareCarrier]
) -> None:
    """Start a run or continue it."""
    settings = as_federation(federation, "federation")
    method, terms = known_method(settings.method, "federation"), settings.terms()
    about = {
        "cosilo": __version__,
        "protocol": PROTOCOL,
        "salt": salt,
        "method": {"use": method.name, **method.model_dump(mode="json")},
        "seed": terms.seed,
        "silos": terms.silos,
        "pool": terms.pool,
        "pool_size": terms.pool_size,
    }
    with locked(folder):
        run = begin(folder, about, None)
        if run.status == "finished":
            return
        run.set_status("running", quorum=terms.quorum, timeout=terms.timeout, engine="flare")
        try:
            contract = contract_of(run, method, terms)
            coordinate_run(PlannedRun(run, method, terms), carrier(contract))
        except JobHeld:
            run.set_status("stopped")
            with EventLog(folder / "events.jsonl") as events:
                events(Event(Happening.HELD))


def welcome_late(folder: Path, name: str, carrier: Callable[[Contract], FlareCarrier]) -> None:
    """Let a silo that comes late gain from a finished run; nobody else is asked."""
    with EventLog(folder / "events.jsonl") as events:
        try:
            run = RunDirectory(folder)
            welcome(run, name, carrier(late_contract(run, method_of(run), name)), [events])
        except CosiloError as error:
            events(Event(Happening.STOP, {"text": str(error)}))
        else:
            events(Event(Happening.FINISH))
