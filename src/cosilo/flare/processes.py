"""The processes of a kit: FLARE's server at the coordinator, FLARE's client at a silo."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, TypeAlias

from cosilo.errors import ConfigError
from cosilo.flare.kits import COORDINATOR, SERVER, confine_server, confine_site
from cosilo.flare.place import Place, settle
from cosilo.runs.files import read_json

Process: TypeAlias = "subprocess.Popen[str]"

_PID = "cosilo.pid"
_MODULES = {
    "server": "nvflare.private.fed.app.server.server_train",
    "client": "nvflare.private.fed.app.client.client_train",
}


def server_kit(kit: Path) -> Path:
    """The server's part of the coordinator's kit, whichever of the two was named."""
    for path in (kit, kit / SERVER, kit / COORDINATOR / SERVER):
        if (path / "startup" / "fed_server.json").exists():
            return path
    raise ConfigError(f"{kit}: is not a coordinator's kit (it has no startup/fed_server.json)")


def site_name(kit: Path) -> str:
    """The silo that a kit is made for."""
    path = kit / "startup" / "fed_client.json"
    if not path.exists():
        raise ConfigError(f"{kit}: is not a silo's kit (it has no startup/fed_client.json)")
    return str(read_json(path)["client"]["fqsn"])


def start_server(kit: Path, runs: Path, log: IO[str] | None = None) -> Process:
    """Start the coordinator; `runs` is where its run directories are."""
    kit = server_kit(kit)
    settle(kit, Place(runs=str(runs.resolve())))
    confine_server(kit)
    return _start(kit, "server", [], log)


def start_site(kit: Path, silo: Path, runs: Path, log: IO[str] | None = None) -> Process:
    """Start a silo; `silo` is its own file, `runs` where its records are."""
    name = site_name(kit)
    settle(kit, Place(runs=str(runs.resolve()), silo=str(silo.resolve())))
    confine_site(kit)
    return _start(kit, "client", [f"uid={name}"], log)


def _start(kit: Path, kind: str, settings: list[str], log: IO[str] | None) -> Process:
    workspace = kit.resolve()
    if (number := running(workspace)) is not None:
        raise ConfigError(f"{kit}: is running already (process {number}); end it first: cosilo stop {kit}")
    (workspace / "transfer").mkdir(exist_ok=True)
    for left in ("pid.fl", "shutdown.fl", "restart.fl"):  # what a process that was killed left behind
        (workspace / left).unlink(missing_ok=True)
    command = [sys.executable, "-u", "-m", _MODULES[kind], "-m", str(workspace), "-s", f"fed_{kind}.json"]
    command += ["--set", "secure_train=true", *settings, "org=cosilo", "config_folder=config"]
    options: dict[str, Any] = {"stdout": log, "stderr": subprocess.STDOUT} if log else {}
    # A group of its own: with the process go the job processes that it started.
    process = subprocess.Popen(command, cwd=workspace, text=True, start_new_session=True, **options)
    (workspace / _PID).write_text(str(process.pid), encoding="utf-8")
    return process


def running(kit: Path) -> int | None:
    """The process of a kit, if it lives."""
    try:
        number = int((kit / _PID).read_text(encoding="utf-8"))
        # A number may have gone to somebody else since.
        told = Path(f"/proc/{number}/cmdline")
        alive = not told.exists() or str(kit.resolve()).encode() in told.read_bytes()
        os.kill(number, 0)
    except (OSError, ValueError):
        return None
    return number if alive else None


def stop(kit: Path, patience: float = 10.0) -> bool:
    """End the process of a kit with all that it started; whether there was one."""
    number = running(kit)
    if number is None:
        return False
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(number, how)
            end = time.monotonic() + patience
            while time.monotonic() < end and _lives(number):
                time.sleep(0.1)
        except ProcessLookupError:
            break
    (kit / _PID).unlink(missing_ok=True)
    return True


def _lives(group: int) -> bool:
    """Whether anything of a process group is left that does more than wait to be buried."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(group, os.WNOHANG)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def kits_in(folder: Path) -> list[Path]:
    """All kits in a folder, or the folder itself if it is one."""
    return sorted(
        path.parent.parent for path in folder.rglob("startup/fed_*.json") if path.stem != "fed_admin"
    )
