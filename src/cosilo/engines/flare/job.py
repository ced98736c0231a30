"""What a run looks like to FLARE: a job that names classes of the installed cosilo, and carries no code."""

from pathlib import Path

from nvflare.collab.runtime.controller import CollabController
from nvflare.collab.runtime.executor import CollabExecutor
from nvflare.job_config.api import FedJob

from cosilo.config.resolve import known_method
from cosilo.engines.flare.party_files import FederationSettings
from cosilo.engines.flare.server import Coordination
from cosilo.engines.flare.site import Site


def export_job(settings: FederationSettings, run: str, folder: Path, late: str | None = None) -> Path:
    """Write the job of a run, or of a silo that comes late to it; returns the folder to submit to FLARE."""
    method = {"use": settings.method.use, **settings.method.parameters()}
    values = settings.model_dump(mode="json", exclude={"coordinator"}, exclude_none=True)
    job = FedJob(name=run, min_clients=1)
    job.set_app_packages(["cosilo"])
    server = job.to_server(Coordination(run, {**values, "method": method}, late), id="coordination")
    job.to_server(CollabController(server_obj_id=server), id="controller")
    told = known_method(settings.method, "federation").told_silos(settings.method.parameters())
    # One by one: else every silo would get the coordinator's part too.
    for name in settings.members if late is None else [late]:
        site = job.to(Site(run, settings.seed, {"use": settings.method.use, **told}), name, id="site")
        job.to(CollabExecutor(client_obj_id=site), name, id="executor", tasks=["*"])
    job.export_job(str(folder))
    return folder / run
