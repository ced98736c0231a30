"""The commands between organisations."""

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosilo.cli.checking import show_silo
from cosilo.cli.printing import new_table, say, show, tell
from cosilo.errors import ConfigError, RunError

if TYPE_CHECKING:
    from cosilo.engines.flare.processes import Process
    from cosilo.runs.run import RunDirectory

FederationFile = Annotated[Path, typer.Argument(metavar="FEDERATION.toml", help="The coordinator's file.")]
Kit = Annotated[Path, typer.Argument(metavar="KIT", help="A start-up kit.")]
Runs = Annotated[Path | None, typer.Option("--runs", help="Where runs are kept; default: in the kit.")]
_NOT_ADMITTED = (
    "the coordinator does not admit this silo, or not with this certificate; "
    "ask anew: cosilo request SILO.toml --kit KIT"
)
CoordinatorKit = Annotated[
    Path | None,
    typer.Option("--kit", help="Default: kits/coordinator beside the file."),
]


def start(kit: Kit, runs: Runs = None) -> None:
    """Start the coordinator and stay with it; Ctrl-C ends it."""
    from cosilo.engines import flare
    from cosilo.engines.flare import processes
    from cosilo.engines.flare.reach import address, is_open

    flare.need_flare()
    server = processes.server_kit(kit)
    runs = runs or server / "runs"
    process = processes.start_server(server, runs)
    say(f"runs: {runs}; log: {server / 'log.txt'}")
    host, port = address(server)
    _stay(process, server, lambda: f"listens at {host}:{port}" if is_open(host, port) else None)


def join(
    kit: Kit,
    file: Annotated[Path, typer.Argument(metavar="SILO.toml", help="The silo's own file.")],
    runs: Runs = None,
) -> None:
    """Take part with a silo and stay; Ctrl-C ends it."""
    from cosilo.engines import flare
    from cosilo.engines.flare import processes
    from cosilo.engines.flare.party_files import read_silo
    from cosilo.engines.flare.reach import connection_problem

    flare.need_flare()
    name, silo = processes.site_name(kit), read_silo(file)
    if silo.name != name:
        raise ConfigError(f"{file}: name: got {silo.name!r}; wants {name!r}, which {kit} is made for")
    folder = runs or kit / "runs"
    show_silo(silo)
    say(f"records, models and audit logs: {folder}; log: {kit / 'log.txt'}")
    connection_problem(kit)  # a certificate that will never do is told before anything is started
    news = silo_news(kit, folder)
    process = processes.start_site(kit, file, folder)
    _stay(process, kit, lambda: _connection(process, kit), news)


def submit(file: FederationFile, kit: CoordinatorKit = None) -> None:
    """Start a run on a coordinator that is started, and follow it."""
    from cosilo.cli.results import show_run
    from cosilo.engines import flare
    from cosilo.engines.flare import runs
    from cosilo.engines.flare.names import COORDINATOR
    from cosilo.engines.flare.party_files import read_federation

    flare.need_flare()
    settings = read_federation(file)
    show_run(runs.submit(settings, kit or file.parent / "kits" / COORDINATOR, tell))


def status(kit: Kit) -> None:
    """Which silos are there, and how far the runs are."""
    from cosilo.engines import flare
    from cosilo.engines.flare.kit_settings import read_kit_settings
    from cosilo.engines.flare.processes import server_kit
    from cosilo.engines.flare.session import session
    from cosilo.runs.run_folders import runs_in

    flare.need_flare()
    with session(kit) as server:
        say(f"silos that are there: {', '.join(sorted(server.connected())) or 'none'}")
    table = new_table("run", "method", "status", "last event")
    for run in runs_in(Path(read_kit_settings(server_kit(kit)).runs), tell):
        events = run.events()
        last = events[-1] if events else {}
        told = " ".join(str(last[key]) for key in ("event", "step", "silo") if key in last)
        table.add_row(run.folder.name, run.method, _status(run), told)
    show(table)


def stop(
    folder: Annotated[Path, typer.Argument(metavar="KIT", help="A kit, or a folder of kits.")],
) -> None:
    """End the processes of a kit, or of all kits in a folder."""
    from cosilo.engines import flare
    from cosilo.engines.flare import processes

    flare.need_flare()
    kits = processes.kits_in(folder)
    if not kits:
        raise ConfigError(f"{folder}: has no kit in it")
    ended = [kit for kit in kits if processes.stop(kit)]
    say("\n".join(f"stopped: {kit}" for kit in ended) or "nothing was running")


def up(
    file: FederationFile,
    folder: Annotated[Path | None, typer.Option("--dir", help="Default: up beside the file.")] = None,
) -> None:
    """Try a federation out on this machine: all its processes, with certificates, on loopback.

    The file of silo NAME is NAME.toml beside the federation's.
    """
    from cosilo.cli.results import show_run
    from cosilo.engines import flare
    from cosilo.engines.flare import processes, runs
    from cosilo.engines.flare.admission import check_admitted, make_all
    from cosilo.engines.flare.names import ADMIN, COORDINATOR, SERVER
    from cosilo.engines.flare.party_files import read_federation, read_silo
    from cosilo.engines.flare.session import until_reachable
    from cosilo.engines.flare.watchdog import watch

    flare.need_flare()
    settings = read_federation(file)
    folder = file.parent / "up" if folder is None else folder
    files = {name: file.parent / f"{name}.toml" for name in settings.members}
    for name, path in files.items():
        if not path.exists():
            raise ConfigError(f"{path}: no such file; wants the file of silo {name!r} there")
        silo = read_silo(path)  # whatever is wrong is told before anything is started
        if silo.name != name:
            raise ConfigError(f"{path}: name: got {silo.name!r}; wants {name!r}, which the file is called")
    if settings.coordinator.host not in ("127.0.0.1", "localhost"):
        here = settings.coordinator.model_copy(update={"host": "127.0.0.1"})
        settings = settings.model_copy(update={"coordinator": here})
    kits = folder / "kits"
    if kits.exists():
        check_admitted(settings, kits / COORDINATOR / SERVER)
    else:
        make_all(settings, kits)
    (folder / "logs").mkdir(exist_ok=True)
    with ExitStack() as stack:
        server = kits / COORDINATOR / SERVER
        watchdog = watch([server, *(kits / name for name in files)])
        stack.callback(watchdog.wait)
        if watchdog.stdin is not None:
            stack.callback(watchdog.stdin.close)
        stack.callback(processes.stop, server)
        log = stack.enter_context((folder / "logs" / "coordinator.txt").open("a"))
        processes.start_server(server, folder / "runs", log)
        for name, path in files.items():
            stack.callback(processes.stop, kits / name)
            log = stack.enter_context((folder / "logs" / f"{name}.txt").open("a"))
            processes.start_site(kits / name, path, folder / "silos" / name, log)
        tell(f"started the coordinator and {len(files)} silos; their logs: {folder / 'logs'}")
        until_reachable(kits / COORDINATOR / ADMIN)
        show_run(runs.submit(settings, kits / COORDINATOR, tell))


def _status(run: "RunDirectory") -> str:
    """The status of a run; one that says it is running, and nobody is at work on it, was interrupted."""
    from cosilo.runs.locks import locked

    if run.status == "running":
        with suppress(RunError), locked(run.folder, patience=0.0):
            return "interrupted"
    return run.status


def silo_news(kit: Path, runs: Path) -> Callable[[], list[str]]:
    """What tells of runs that begin, end or wait for an administrator, each once."""
    from cosilo.runs.approval import waiting
    from cosilo.runs.silo_runs import News

    news, told = News(runs), set[str]()

    def lines() -> list[str]:
        waits = [name for name in waiting(runs) if name not in told]
        told.update(waits)
        return [*(f"run {name} waits for you: cosilo approve {kit} {name}" for name in waits), *news.lines()]

    return lines


def _stay(
    process: "Process", kit: Path, state: Callable[[], str | None], news: Callable[[], list[str]] = list
) -> None:
    """Wait for the process of a kit and tell when its state changes; it goes when this one is told to."""
    from cosilo.engines.flare import processes

    signal.signal(signal.SIGTERM, lambda *_: processes.stop(kit))
    told = None
    try:
        while (code := process.poll()) is None:
            now = state()
            if now is not None and now != told:
                tell(f"{datetime.now():%H:%M:%S} {now}")
                told = now
            for line in news():
                tell(f"{datetime.now():%H:%M:%S} {line}")
            time.sleep(1.0)
    except KeyboardInterrupt:
        processes.stop(kit)
        return
    if code > 0 and processes.turned_away(kit):
        raise RunError(f"{kit}: {_NOT_ADMITTED}")
    if code > 0:
        raise RunError(f"{kit}: ended with code {code}; its last words: {kit / processes.CONSOLE}")


def _connection(process: "Process", kit: Path) -> str | None:
    """What a silo's owner wants to know about the connection; None while it is being made."""
    from cosilo.engines.flare.processes import connected, turned_away
    from cosilo.engines.flare.reach import address, connection_problem

    host, port = address(kit)
    if connected(process, port) and turned_away(kit):
        return _NOT_ADMITTED
    if connected(process, port):
        return f"connected to the coordinator at {host}:{port}"
    try:
        trouble = connection_problem(kit)
        return trouble and f"{trouble}; trying until it is there"
    except ConfigError as error:  # the coordinator was replaced by another one; it may come back
        return str(error)
