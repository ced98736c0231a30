"""A recipe on FLARE's simulator: the same messages through FLARE, all processes on this machine."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvflare.collab import collab
from nvflare.collab.runtime.controller import CollabController
from nvflare.collab.runtime.executor import CollabExecutor
from nvflare.job_config.api import FedJob

from cosilo.config import build
from cosilo.coordination.agreement import Limits
from cosilo.coordination.run_loop import PlannedRun, Stopped, contract_of, coordinate_run
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.engines.flare.kits import CLASSES
from cosilo.engines.flare.signing import SealsOfSilo
from cosilo.engines.flare.site import Site
from cosilo.errors import RunError
from cosilo.federation.federation import Federation
from cosilo.progress import bar
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant, Procedure
from cosilo.runs.durable_files import read_lines
from cosilo.runs.run import RunDirectory

_CLASSES = [
    *CLASSES,
    "cosilo.engines.flare.simulator.SimulatedCoordination",
    "cosilo.engines.flare.simulator.SimulatedSite",
]
#: The simulator finds a free port for each silo's process, which takes it only seconds later. If something
#: else has it by then, one of these is in the log when the simulator gives up: the silo's process cannot take
#: the port, or the simulator spoke with the wrong process.
_PORT_TAKEN = ("Address already in use", "Communication error with client")
#: How often a run may be begun because of that.
_TRIES = 3


class SimulatedCoordination:
    """The coordinator of a run directory that has a recipe."""

    def __init__(self, run_folder: str) -> None:
        self.run_folder = run_folder

    @collab.main
    def coordinate(self) -> None:
        """Follow the method; the outcome is in the run directory."""
        folder = Path(self.run_folder)
        federation, carrier = _federation(folder), FlareCarrier({site.name: site for site in collab.clients})
        try:
            coordinate_run(PlannedRun(RunDirectory(folder), federation.method, federation.terms()), carrier)
        except Stopped:
            return  # the run directory says so, and whoever started the simulator reads it there


class SimulatedSite(Site):
    """One silo of a run directory that has a recipe."""

    def __init__(self, run_folder: str) -> None:
        super().__init__(run="simulated", contract={}, certificate="")
        self.run_folder = run_folder

    def folder(self, name: str, kit: Path) -> Path:
        """In the run directory, as on the local engine."""
        return Path(self.run_folder) / "silos" / name

    def agreed(self) -> Contract:
        """Return the contract that the run directory has."""
        federation = _federation(Path(self.run_folder))
        return contract_of(RunDirectory(self.run_folder), federation.method, federation.terms())

    def silo(self, name: str, kit: Path) -> tuple[Participant, Procedure]:
        """The silo of that name in the recipe."""
        federation = _federation(Path(self.run_folder))
        return next(silo for silo in federation.silos if silo.name == name), federation.method

    def limits(self, kit: Path) -> Callable[[], Limits] | None:
        """There are none: all silos have one owner."""
        return None

    def seals_of(self, name: str, kit: Path) -> SealsOfSilo | None:
        """There are none: nobody has keys on the simulator."""
        return None


def _federation(folder: Path) -> Federation:
    values, source = build.read_recipe(folder, "run it on the local engine")
    return build.federation(values, source)


def simulate(folder: Path, names: list[str]) -> None:
    """Do the rest of a run, in processes of FLARE's simulator."""
    federation = _federation(folder)
    contract_of(RunDirectory(folder), federation.method, federation.terms())  # before silos look for it
    where = str(folder.resolve())
    job = FedJob(name="run", min_clients=len(names))
    job.set_app_packages(["cosilo"])
    server = job.to_server(SimulatedCoordination(where), id="coordination")
    job.to_server(CollabController(server_obj_id=server), id="controller")
    for name in names:
        site = job.to(SimulatedSite(where), name, id="site")
        job.to(CollabExecutor(client_obj_id=site), name, id="executor", tasks=["*"])
    log = folder / "flare.txt"
    before = len(RunDirectory(folder).events())
    with bar("on the simulator of FLARE", None) as advance:
        for _ in range(_TRIES):
            said = _simulate_once(job, folder, names, log, advance)
            run = RunDirectory(folder)
            if run.status == "finished":
                return
            if len(run.events()) > before or not any(text in said for text in _PORT_TAKEN):
                break  # it was under way, or something else is wrong
    stops = [event["text"] for event in run.events() if event["event"] == "stop"]
    raise RunError(stops[-1] if stops else f"{log}: FLARE's simulator ended too early; this is its log")


def _simulate_once(
    job: FedJob, folder: Path, names: list[str], log: Path, advance: Callable[[int], None]
) -> str:
    """Let the simulator run to its end; returns what it wrote into the log."""
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Path(scratch) / "workspace"
        (workspace / "local").mkdir(parents=True)
        allowed: dict[str, Any] = {
            "format_version": 2,
            "class_list_enforcement_mode": "enforce",
            "class_allow_list": _CLASSES,
        }
        (workspace / "local" / "resources.json").write_text(json.dumps(allowed), encoding="utf-8")
        job.export_job(scratch)
        command = [sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", f"{scratch}/run"]
        command += ["-w", str(workspace), "-c", ",".join(names), "-n", str(len(names)), "-t", str(len(names))]
        with log.open("ab+") as file:
            begun, seen = file.tell(), 0
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
            while process.poll() is None:
                events = len(read_lines(folder / "events.jsonl"))
                advance(events - seen)
                seen = events
                time.sleep(0.5)
            file.seek(begun)
            return file.read().decode("utf-8", "replace")
