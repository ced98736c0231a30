"""Carrying out a run on a running coordinator, in as many jobs as it takes."""

from functools import partial
from pathlib import Path
from secrets import token_hex

from cosilo.coordination.run_loop import late_contract
from cosilo.engines.flare import need_flare
from cosilo.engines.flare.admission import check_admitted
from cosilo.engines.flare.kit_settings import HOLD, read_kit_settings
from cosilo.engines.flare.party_files import FederationSettings, as_federation
from cosilo.engines.flare.processes import server_kit
from cosilo.engines.flare.session import Session, session
from cosilo.engines.flare.story import Story, Tell
from cosilo.errors import RunError
from cosilo.federation.late import check_is_new, method_of
from cosilo.protocol.contract import Contract
from cosilo.runs.durable_files import read_json, read_lines, write_json
from cosilo.runs.locks import locked
from cosilo.runs.run import RunDirectory
from cosilo.runs.run_folders import new_folder_name

_FILE = "federation.json"
#: After a restart of the coordinator it takes silos some seconds to find it again.
_MOMENT = 20.0


def submit(settings: FederationSettings, kit: Path, tell: Tell, patience: float = 60.0) -> RunDirectory:
    """Start a new run and follow it to its end."""
    server = server_kit(kit)
    check_admitted(settings, server)
    parent = Path(read_kit_settings(server).runs)
    parent.mkdir(parents=True, exist_ok=True)
    folder = new_folder_name(parent, settings.method.use)
    return _run_in_jobs(settings, kit, folder, tell, patience, new=True)


def is_between_organisations(folder: Path) -> bool:
    """Whether a run is one between organisations."""
    return (folder / _FILE).exists()


def resume(folder: Path, tell: Tell, patience: float = 60.0) -> RunDirectory:
    """Continue a run that stopped; the coordinator has to be running."""
    need_flare()
    known = read_json(folder / _FILE)
    settings = as_federation(known["federation"], str(folder / _FILE))
    if (folder / "run.json").exists():
        run = RunDirectory(folder)
        if run.status == "finished":
            return run
        if run.status == "refused":
            raise RunError(
                f"{folder}: the silos and the method do not fit together; fix that and submit a new run"
            )
    return _run_in_jobs(settings, Path(known["kit"]), folder, tell, patience, new=False)


def add(folder: Path, name: str, tell: Tell, patience: float = 60.0) -> RunDirectory:
    """Let a silo that has joined the coordinator late gain from a finished run; nobody else does anything."""
    need_flare()
    known = read_json(folder / _FILE)
    settings = as_federation(known["federation"], str(folder / _FILE))
    check_is_new(RunDirectory(folder), name)
    with session(Path(known["kit"])) as flare:
        flare.wait_for([name], patience, tell)
        past = len(read_lines(folder / "events.jsonl"))
        run = RunDirectory(folder)
        late = name, late_contract(run, method_of(run), name)
        job = flare.submit(partial(_export, settings, folder, late))
        tell(f"{folder.name}: job {job}")
        why = flare.follow(job, folder, past, Story(tell))
    run = RunDirectory(folder)
    if name not in run.about["silos"]:
        raise RunError(f"{why or 'the job ended on its way'}\nthe run is as it was; add the silo again")
    return run


def _run_in_jobs(
    settings: FederationSettings, kit: Path, folder: Path, tell: Tell, patience: float, *, new: bool
) -> RunDirectory:
    try:
        with session(kit) as flare:
            _meet(flare, settings, patience, tell, new=new)
            if new:
                values = settings.model_dump(mode="json", exclude_none=True)
                values["method"] = {"use": settings.method.use, **settings.method.parameters()}
                folder.mkdir()
                known = {"federation": values, "kit": str(kit.resolve()), "salt": token_hex(16)}
                write_json(folder / _FILE, known)
            last = _follow(flare, settings, folder, tell)
    except RunError as error:
        raise RunError(f"{error}\n{_then(folder)}" if folder.exists() else str(error)) from error
    if not (folder / "run.json").exists() or RunDirectory(folder).status != "finished":
        raise RunError(f"{last or 'the job ended before the run did'}\n{_then(folder)}")
    return RunDirectory(folder)


def _meet(flare: Session, settings: FederationSettings, patience: float, tell: Tell, *, new: bool) -> None:
    """Wait for the silos; a run that has begun continues with those that are connected after a moment."""
    try:
        flare.wait_for(settings.members, patience if new else _MOMENT, tell)
    except RunError:
        if new:
            raise


def _follow(flare: Session, settings: FederationSettings, folder: Path, tell: Tell) -> str:
    """Follow a run through all its jobs; returns why it did not finish, if that is known."""
    while True:
        (folder / HOLD).unlink(missing_ok=True)
        job = _job_under_way(flare, folder)
        past = _past(folder, under_way=job is not None)
        job = job or flare.submit(partial(_export, settings, folder, None))
        tell(f"{folder.name}: job {job}")
        try:
            last = flare.follow(job, folder, past, Story(tell))
        except KeyboardInterrupt:
            flare.stop(job)
            raise RunError("stopped") from None
        if last != "held":
            return last


def _export(
    settings: FederationSettings, folder: Path, late: tuple[str, Contract] | None, place: Path
) -> Path:
    """Write the job of a run, or of a silo that comes late to it, into a place."""
    from cosilo.engines.flare.job import export_job

    known = read_json(folder / _FILE)
    if "salt" not in known:
        raise RunError(
            f"{folder}: was begun by an earlier version of cosilo, without a contract; submit a new run"
        )
    certificate = (server_kit(Path(known["kit"])) / "startup" / "server.crt").read_text("utf-8")
    return export_job(settings, folder.name, place, known["salt"], certificate, late)


def _past(folder: Path, *, under_way: bool) -> int:
    """How many events of a run are from before its job: all so far, unless the job has begun."""
    events = [event["event"] for event in read_lines(folder / "events.jsonl")]
    if not under_way:
        return len(events)
    return max((place for place, event in enumerate(events) if event in ("start", "resume")), default=0)


def _job_under_way(flare: Session, folder: Path) -> str | None:
    """The job of a run that somebody else asked for; one that died with its coordinator is cleared away."""
    job = flare.jobs().get(folder.name)
    if job is None:
        return None
    try:
        with locked(folder, patience=0.0):
            flare.stop(job)
            return None
    except RunError:
        return job


def _then(folder: Path) -> str:
    if (folder / "run.json").exists() and RunDirectory(folder).status == "refused":
        return f"nothing was computed; the run is in {folder}"
    return f"completed steps are kept: cosilo resume {folder}"
