"""Asking the coordinator for a run: submit it, follow it, and let it continue when a silo is back."""

import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from cosilo.engines.flare.kit_manifest import adopt_kit, check_kit
from cosilo.engines.flare.kit_settings import HOLD
from cosilo.engines.flare.names import ADMIN, COORDINATOR
from cosilo.engines.flare.reach import is_open
from cosilo.engines.flare.story import Story
from cosilo.errors import ConfigError, RunError
from cosilo.runs.durable_files import read_json, read_lines
from cosilo.text import listing

_POLL = 1.0


def admin_kit(kit: Path) -> Path:
    """The part of the coordinator's kit that asks for runs, whichever of the two was named."""
    for path in (kit, kit / ADMIN, kit / COORDINATOR / ADMIN, kit.parent / ADMIN):
        if (path / "startup" / "fed_admin.json").exists():
            return path
    raise ConfigError(f"{kit}: is not a coordinator's kit (it has no startup/fed_admin.json)")


class Session:
    """A connection to a running coordinator."""

    def __init__(self, flare: Any) -> None:
        self._flare = flare

    def connected(self) -> list[str]:
        """The silos that are connected."""
        return [client.name for client in self._flare.get_connected_client_list()]

    def jobs(self) -> dict[str, str]:
        """The jobs of unfinished runs, by run."""
        found = self._flare.list_jobs()
        over = ("FINISHED", "ABORTED", "FAILED", "REJECTED", "ABNORMAL")
        return {job["job_name"]: job["job_id"] for job in found if not str(job["status"]).startswith(over)}

    def wait_for(self, members: list[str], patience: float, tell: Callable[[str], None]) -> None:
        """Wait until all silos are connected."""
        end, told = time.monotonic() + patience, None
        while missing := [name for name in members if name not in self.connected()]:
            if missing != told:
                tell(f"waiting for {listing(missing)}")
                told = missing
            if time.monotonic() > end:
                raise RunError(f"not connected: {listing(missing)}; start them: cosilo join KIT SILO.toml")
            time.sleep(_POLL)

    def submit(self, folder: Callable[[Path], Path]) -> str:
        """Give the coordinator a job, which `folder` writes into a place for it; returns its number."""
        with tempfile.TemporaryDirectory() as place:
            return str(self._flare.submit_job(str(folder(Path(place)))))

    def stop(self, job: str) -> None:
        """End a job; what its run completed is kept."""
        from nvflare.fuel.flare_api.api_spec import InternalError, JobNotRunning

        with suppress(JobNotRunning, InternalError):  # FLARE may list a job that died with its server
            self._flare.abort_job(job)

    def status(self, job: str) -> str:
        """What FLARE says about a job."""
        return str(self._flare.get_job_status(job))

    def follow(self, job: str, folder: Path, past: int, story: Story) -> str:
        """Tell what happens in a run until it finished, stopped or its job ended; why, if it did not finish.

        The first `past` events are from before this job. When a silo that was lost is there again the job is
        held, so that the run can continue with it: the result is then "held".
        """
        seen, lost, next_look = past, set[str](), 0.0
        while True:
            now, ended = time.monotonic(), False
            if now >= next_look:
                next_look, ended = now + _POLL, self.status(job).startswith("FINISHED")
                if lost & set(self.connected()):
                    (folder / HOLD).touch()
                    lost.clear()
            new = read_lines(folder / "events.jsonl")[seen:]
            seen += len(new)
            for event in new:
                story(event)
                match event:
                    case {"event": "failure", "kind": "lost", "silo": silo}:
                        lost.add(silo)
                    case {"event": "finish"}:
                        return ""
                    case {"event": "held"}:
                        return "held"
                    case {"event": "stop", "text": text}:
                        return str(text)
            if ended:
                return f"the job ended on its way ({self.status(job)})"
            story.wait()
            time.sleep(0.1)


@contextmanager
def session(kit: Path, patience: float = 15.0) -> Iterator[Session]:
    """Connect to the coordinator of a kit."""
    from nvflare.fuel.flare_api.api_spec import InternalError, NoConnection
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    kit = admin_kit(kit)
    check_kit(kit)
    adopt_kit(kit)
    about = read_json(kit / "startup" / "fed_admin.json")["admin"]
    logging.getLogger("nvflare").setLevel(logging.CRITICAL)  # failures are reported below in one line
    where = f"the coordinator at {about['host']}:{about['port']}"
    if not is_open(about["host"], about["port"]):
        raise RunError(f"{where}: not running; start it: cosilo coordinator start KIT")
    try:
        with redirect_stdout(StringIO()):
            flare = new_secure_session(about["username"], str(kit.resolve()), timeout=patience)
    except Exception as error:
        raise RunError(
            f"{where}: does not answer ({type(error).__name__}); its log is KIT/server/log.txt"
        ) from None
    try:
        yield Session(flare)
    except (NoConnection, InternalError) as error:
        raise RunError(f"{where}: the connection broke ({error})") from None
    finally:
        with suppress(Exception):  # the coordinator may be gone already
            flare.close()


def until_reachable(kit: Path, patience: float = 60.0) -> None:
    """Wait for a coordinator that was just started."""
    end = time.monotonic() + patience
    while True:
        try:
            with session(kit, patience=5.0):
                return
        except RunError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)
