"""What a run looks like to FLARE: a job that names classes of the installed cosilo, and carries no code."""

from pathlib import Path
from typing import Any

from nvflare.collab.runtime.controller import CollabController
from nvflare.collab.runtime.executor import CollabExecutor
from nvflare.job_config.api import FedJob

from cosilo.config.resolve import known_method
from cosilo.engines.flare.party_files import FederationSettings
from cosilo.engines.flare.server import Coordination
from cosilo.engines.flare.site import Site
from cosilo.protocol.contract import Contract

#: Requests a second in all with which silos ask FLARE for tasks. Ours come another way, but a job begins with
#: two of FLARE's own, and whoever asks too early for the second one waits for as long as an interval.
_REQUESTS = 10.0
#: The interval that FLARE has if nothing is said, in seconds.
_LONGEST = 2.0


def task_requests(silos: int) -> dict[str, Any]:
    """The part of a server's settings that says how often each silo of a job asks for tasks."""
    return {"server": {"task_request_interval": min(silos / _REQUESTS, _LONGEST)}}


def export_job(
    settings: FederationSettings,
    run: str,
    folder: Path,
    salt: str,
    certificate: str,
    late: tuple[str, Contract] | None = None,
) -> Path:
    """Write the job of a run, or of a silo that comes late to it; returns the folder to submit to FLARE.

    Silos get the contract of the run, and the coordinator's certificate; `salt` stays with the coordinator.
    """
    method = known_method(settings.method, "federation")
    values = settings.model_dump(mode="json", exclude={"coordinator"}, exclude_none=True)
    values["method"] = {"use": settings.method.use, **settings.method.parameters()}
    contract = settings.terms().contract(method, salt) if late is None else late[1]
    job = FedJob(name=run, min_clients=1)
    job.set_app_packages(["cosilo"])
    name_of_late = None if late is None else late[0]
    server = job.to_server(Coordination(run, values, salt, name_of_late), id="coordination")
    job.to_server(CollabController(server_obj_id=server), id="controller")
    job.to_server(task_requests(len(settings.members)))
    # One by one: else every silo would get the coordinator's part too.
    for name in settings.members if late is None else [late[0]]:
        site = job.to(Site(run, contract.values(), certificate), name, id="site")
        job.to(CollabExecutor(client_obj_id=site), name, id="executor", tasks=["*"])
    job.export_job(str(folder))
    return folder / run
