"""The processes of a kit: FLARE's server at the coordinator, FLARE's client at a silo."""

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, TypeAlias

from cosilo.engines.flare.admission import admitted, waits
from cosilo.engines.flare.kit_manifest import adopt_kit, check_kit
from cosilo.engines.flare.kit_settings import KitSettings, write_kit_settings
from cosilo.engines.flare.kits import confine_server, confine_site
from cosilo.engines.flare.names import COORDINATOR, SERVER
from cosilo.engines.flare.reach import check_can_listen
from cosilo.errors import ConfigError
from cosilo.runs.durable_files import read_json

Process: TypeAlias = "subprocess.Popen[str]"

#: The output of a kit's process, including that of a crash; FLARE's own log is in log.txt.
CONSOLE = "console.txt"
_MODULES = {
    "server": "cosilo.engines.flare.coordinator_process",
    "client": "cosilo.engines.flare.silo_process",
}
#: How the modules of FLARE's job processes begin.
_JOBS = "nvflare.private.fed.app."


def server_kit(kit: Path) -> Path:
    """The server's part of the coordinator's kit, whichever of the two was named."""
    for path in (kit, kit / SERVER, kit / COORDINATOR / SERVER):
        if (path / "startup" / "fed_server.json").exists():
            check_kit(path)
            return path
    raise ConfigError(f"{kit}: is not a coordinator's kit (it has no startup/fed_server.json)")


def site_name(kit: Path) -> str:
    """The silo that a kit is made for."""
    path = kit / "startup" / "fed_client.json"
    if not path.exists():
        then = "is not admitted yet; cosilo receive makes a kit of it and the coordinator's answer"
        wrong = then if waits(kit) else "is not a silo's kit (it has no startup/fed_client.json)"
        raise ConfigError(f"{kit}: {wrong}")
    check_kit(kit)
    return str(read_json(path)["client"]["fqsn"])


def start_server(kit: Path, runs: Path, log: IO[str] | None = None) -> Process:
    """Start the coordinator; `runs` is where its run directories are."""
    kit = server_kit(kit)
    admitted(kit)  # a kit that can let nobody in is told at once
    if not running(kit):  # a running kit has its own error below
        check_can_listen(kit)
    write_kit_settings(kit, KitSettings(runs=str(runs.resolve())))
    confine_server(kit)
    adopt_kit(kit)
    return _start(kit, "server", [], log)


def start_site(kit: Path, silo: Path, runs: Path, log: IO[str] | None = None) -> Process:
    """Start a silo; `silo` is its own file, `runs` where its records are."""
    name = site_name(kit)
    write_kit_settings(kit, KitSettings(runs=str(runs.resolve()), silo=str(silo.resolve())))
    confine_site(kit)
    adopt_kit(kit)
    return _start(kit, "client", [f"uid={name}"], log)


def _start(kit: Path, kind: str, settings: list[str], log: IO[str] | None) -> Process:
    workspace = kit.resolve()
    if there := running(workspace):
        raise ConfigError(f"{kit}: is already running (process {there[0]}); stop it first: cosilo stop {kit}")
    (workspace / "transfer").mkdir(exist_ok=True)
    for left in ("pid.fl", "shutdown.fl", "restart.fl"):  # left behind by a process that was killed
        (workspace / left).unlink(missing_ok=True)
    command = [sys.executable, "-u", "-m", _MODULES[kind], "-m", str(workspace), "-s", f"fed_{kind}.json"]
    command += ["--set", "secure_train=true", *settings, "org=cosilo", "config_folder=config"]
    with nullcontext(log) if log else (workspace / CONSOLE).open("w", encoding="utf-8") as console:
        # A session of its own: Ctrl-C is for the command that stays with it, which then ends it in order.
        return subprocess.Popen(
            command,
            cwd=workspace,
            text=True,
            start_new_session=True,
            umask=0o077,  # records, models and logs are for its owner only
            stdout=console,
            stderr=subprocess.STDOUT,
        )


def running(kit: Path) -> list[int]:
    """The live processes of a kit: the one that was started, and those of the jobs that it started."""
    import psutil

    workspace, found = str(kit.resolve()), []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"] or []
        ours = any(part in _MODULES.values() or part.startswith(_JOBS) for part in command)
        if ours and workspace in command and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


def connected(process: Process, port: int) -> bool:
    """Whether a silo's process has a connection to its coordinator now."""
    import psutil

    try:
        found = psutil.Process(process.pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(one.status == psutil.CONN_ESTABLISHED and one.raddr.port == port for one in found if one.raddr)


def turned_away(kit: Path) -> bool:
    """Whether the coordinator does not admit the silo of a kit, or no longer: FLARE's log ends with that."""
    log = kit / "log.txt"
    if not log.exists():
        return False
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4000))
        last = [line for line in file.read().decode("utf-8", "replace").splitlines() if " - " in line][-12:]
    return any("is not admitted, or not with this" in line or "error:client_quit" in line for line in last)


def stop(kit: Path, patience: float = 10.0) -> bool:
    """End the processes of a kit; returns whether there were any."""
    if not running(kit):
        return False
    for how in (signal.SIGTERM, signal.SIGKILL):
        for number in running(kit):
            with suppress(ProcessLookupError):
                os.kill(number, how)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if not running(kit):
                return True
            time.sleep(0.1)
    return True


def kits_in(folder: Path) -> list[Path]:
    """All kits in a folder, or the folder itself if it is one."""
    return sorted(
        path.parent.parent for path in folder.rglob("startup/fed_*.json") if path.stem != "fed_admin"
    )
