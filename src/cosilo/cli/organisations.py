"""The commands between organisations."""

import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from cosilo.cli.labels import known_ending, write_labels
from cosilo.config.settings import read
from cosilo.coordination.institution import Institution
from cosilo.engines.flare import need_flare, processes
from cosilo.engines.flare.kit_settings import settled
from cosilo.engines.flare.kits import fits, provision
from cosilo.engines.flare.names import ADMIN, COORDINATOR, SERVER
from cosilo.engines.flare.party_files import read_federation, read_silo
from cosilo.engines.flare.predicting import predictions
from cosilo.engines.flare.reach import address, is_open, problem
from cosilo.engines.flare.runs import submit as submit_run
from cosilo.engines.flare.session import session, until_reachable
from cosilo.errors import ConfigError, RunError
from cosilo.runs.run import Run, locked, runs_in
from cosilo.silo.silo import Silo
from cosilo.text import listing

out = Console()
err = Console(stderr=True)

FederationFile = Annotated[Path, typer.Argument(metavar="FEDERATION.toml", help="The coordinator's file.")]
Kit = Annotated[Path, typer.Argument(metavar="KIT", help="A start-up kit.")]
Runs = Annotated[Path | None, typer.Option("--runs", help="Where runs are kept; default: in the kit.")]
CoordinatorKit = Annotated[
    Path | None,
    typer.Option("--kit", help="Default: kits/coordinator beside the file."),
]


def add_commands(app: typer.Typer, show: Callable[[Run], None]) -> None:
    """Add the commands to the command line; `show` prints a finished run."""
    coordinator = typer.Typer(no_args_is_help=True, help="The coordinator's side.")
    app.add_typer(coordinator, name="coordinator")

    @app.command("provision")
    def provision_(
        file: FederationFile,
        folder: Annotated[Path | None, typer.Option("--out", help="Default: kits beside the file.")] = None,
    ) -> None:
        """Make one start-up kit for each silo and the coordinator's, with certificates."""
        need_flare()
        settings = read_federation(file)
        folder = file.parent / "kits" if folder is None else folder
        kits = provision(settings, folder)
        table = Table("kit", "for", "start it there with")
        for name in settings.members:
            table.add_row(str(kits[name]), f"silo {name}", "cosilo join KIT SILO.toml")
        kit = kits[SERVER].parent
        table.add_row(
            str(kit), f"the coordinator at {settings.coordinator.host}", "cosilo coordinator start KIT"
        )
        out.print(table)
        out.print("A kit holds a private key: hand each to its silo only, and over a channel you trust.")

    @coordinator.command("start")
    def start(kit: Kit, runs: Runs = None) -> None:
        """Start the coordinator and stay with it; Ctrl-C ends it."""
        need_flare()
        server = processes.server_kit(kit)
        runs = runs or server / "runs"
        process = processes.start_server(server, runs)
        out.print(f"runs: {runs}; log: {server / 'log.txt'}", soft_wrap=True)
        host, port = address(server)
        _stay(process, server, lambda: f"listens at {host}:{port}" if is_open(host, port) else None)

    @app.command()
    def join(
        kit: Kit,
        file: Annotated[Path, typer.Argument(metavar="SILO.toml", help="The silo's own file.")],
        runs: Runs = None,
    ) -> None:
        """Take part with a silo and stay; Ctrl-C ends it."""
        need_flare()
        name, silo = processes.site_name(kit), read_silo(file)
        if silo.name != name:
            raise ConfigError(f"{file}: name: got {silo.name!r}; wants {name!r}, which {kit} is made for")
        folder = runs or kit / "runs"
        _show(silo)
        out.print(f"records, models and audit logs: {folder}; log: {kit / 'log.txt'}", soft_wrap=True)
        problem(kit)  # a certificate that will never do is told before anything is started
        process = processes.start_site(kit, file, folder)
        _stay(process, kit, lambda: _connection(process, kit))

    @app.command()
    def predict(
        silo: Annotated[Path, typer.Argument(metavar="SILO.toml", help="The silo's own file.")],
        record: Annotated[Path, typer.Argument(metavar="RUN", help="The silo's folder of a run.")],
        file: Annotated[Path, typer.Argument(metavar="FILE", help="Instances like the silo's own.")],
        written: Annotated[Path, typer.Option("--out", help="A .csv or .parquet file to write.")],
    ) -> None:
        """Label new instances with the model that a silo got from a run."""
        known_ending(written)
        found = predictions(silo, record, file)
        write_labels(found, written)
        out.print(f"{len(found)} labels: {written}", soft_wrap=True)

    @app.command()
    def submit(file: FederationFile, kit: CoordinatorKit = None) -> None:
        """Start a run on a coordinator that is started, and follow it."""
        need_flare()
        settings = read_federation(file)
        show(submit_run(settings, kit or file.parent / "kits" / COORDINATOR, _tell))

    @app.command()
    def status(kit: Kit) -> None:
        """Which silos are there, and how far the runs are."""
        need_flare()
        with session(kit) as flare:
            out.print(f"silos that are there: {', '.join(sorted(flare.connected())) or 'none'}")
        table = Table("run", "method", "status", "last event")
        for run in runs_in(Path(settled(processes.server_kit(kit)).runs)):
            events = run.events()
            last = events[-1] if events else {}
            told = " ".join(str(last[key]) for key in ("event", "step", "silo") if key in last)
            table.add_row(run.folder.name, run.method, _status(run), told)
        out.print(table)

    @app.command()
    def stop(
        folder: Annotated[Path, typer.Argument(metavar="KIT", help="A kit, or a folder of kits.")],
    ) -> None:
        """End the processes of a kit, or of all kits in a folder."""
        need_flare()
        kits = processes.kits_in(folder)
        if not kits:
            raise ConfigError(f"{folder}: has no kit in it")
        ended = [kit for kit in kits if processes.stop(kit)]
        out.print("\n".join(f"stopped: {kit}" for kit in ended) or "nothing was running", soft_wrap=True)

    @app.command()
    def up(
        file: FederationFile,
        folder: Annotated[Path | None, typer.Option("--dir", help="Default: up beside the file.")] = None,
    ) -> None:
        """Try a federation out on this machine: all its processes, with certificates, on loopback.

        The file of silo NAME is NAME.toml beside the federation's.
        """
        need_flare()
        settings = read_federation(file)
        folder = file.parent / "up" if folder is None else folder
        files = {name: file.parent / f"{name}.toml" for name in settings.members}
        for path in files.values():
            read_silo(path)  # whatever is wrong is told before anything is started
        if settings.coordinator.host not in ("127.0.0.1", "localhost"):
            here = settings.coordinator.model_copy(update={"host": "127.0.0.1"})
            settings = settings.model_copy(update={"coordinator": here})
        kits = folder / "kits"
        if kits.exists():
            fits(settings, kits / COORDINATOR / SERVER)
        else:
            provision(settings, kits)
        (folder / "logs").mkdir(exist_ok=True)
        with ExitStack() as stack:
            server = kits / COORDINATOR / SERVER
            stack.callback(processes.stop, server)
            log = stack.enter_context((folder / "logs" / "coordinator.txt").open("a"))
            processes.start_server(server, folder / "runs", log)
            for name, path in files.items():
                stack.callback(processes.stop, kits / name)
                log = stack.enter_context((folder / "logs" / f"{name}.txt").open("a"))
                processes.start_site(kits / name, path, folder / "silos" / name, log)
            _tell(f"started the coordinator and {len(files)} silos; their logs: {folder / 'logs'}")
            until_reachable(kits / COORDINATOR / ADMIN)
            show(submit_run(settings, kits / COORDINATOR, _tell))


#: Keys of the coordinator's file that no silo's has: they tell them apart if another one is misspelt.
_AGREED = {"method", "vocabulary", "coordinator"}


def _party(values: Mapping[str, Any]) -> str | None:
    """Whose file it is, if it is no recipe."""
    if "members" in values or ("name" in values and values.keys() & _AGREED):
        return "federation"
    return "silo" if "name" in values else None


def refuse_party(values: Mapping[str, Any], file: Path) -> None:
    """Say what runs the file of a silo or a coordinator: it is no recipe."""
    runs = {
        "federation": f"`cosilo up {file}` runs it on this machine, `cosilo submit` between organisations",
        "silo": f"`cosilo join KIT {file}` takes part with it",
    }
    whose = _party(values)
    if whose is not None:
        raise ConfigError(f"{file}: is the file of a {whose}, not a recipe; {runs[whose]}")


def check_party(file: Path) -> bool:
    """Check the file of a silo or a coordinator and say what is in it; whether it is one."""
    values = read(file)
    whose = _party(values)
    if whose == "federation":
        settings = read_federation(file)
        where = settings.coordinator
        out.print(f"federation {settings.name}: {listing(settings.members)}; method {settings.method.use}")
        out.print(f"coordinator at {where.host}:{where.port}\nready to provision")
        return True
    if whose is None:
        return False
    _show(read_silo(file))
    out.print("ready to join")
    return True


def _show(silo: Silo | Institution) -> None:
    """What a silo is to others: how much it has is for its owner."""
    classes, shares = listing(silo.task.classes), ", ".join(sorted(silo.shares)) or "nothing"
    out.print(f"silo {silo.name}: {silo.size} training instances, classes {classes}; may leave: {shares}")
    if isinstance(silo, Silo) and silo.pool is not None:
        labels = "" if silo.pool_labels is None else f", classes {', '.join(np.unique(silo.pool_labels))}"
        out.print(f"pool: size {len(silo.pool)}, fingerprint {silo.pool_fingerprint}{labels}", soft_wrap=True)


def _status(run: Run) -> str:
    """The status of a run; one that says it is running, and nobody is at work on it, was interrupted."""
    if run.status == "running":
        with suppress(RunError), locked(run.folder, patience=0.0):
            return "interrupted"
    return run.status


def _stay(process: "processes.Process", kit: Path, state: Callable[[], str | None]) -> None:
    """Wait for the process of a kit and tell when its state changes; it goes when this one is told to."""
    signal.signal(signal.SIGTERM, lambda *_: processes.stop(kit))
    told = None
    try:
        while (code := process.poll()) is None:
            now = state()
            if now is not None and now != told:
                _tell(f"{datetime.now():%H:%M:%S} {now}")
                told = now
            time.sleep(1.0)
    except KeyboardInterrupt:
        processes.stop(kit)
        return
    if code > 0:
        raise RunError(f"{kit}: ended with code {code}; its last words: {kit / processes.CONSOLE}")


def _connection(process: "processes.Process", kit: Path) -> str | None:
    """What a silo's owner wants to know about the connection; None while it is being made."""
    host, port = address(kit)
    if processes.connected(process, port):
        return f"connected to the coordinator at {host}:{port}"
    try:
        trouble = problem(kit)
        return trouble and f"{trouble}; trying until it is there"
    except ConfigError as error:  # the coordinator was replaced by another one; it may come back
        return str(error)


def _tell(line: str) -> None:
    err.print(line, highlight=False, soft_wrap=True, markup=False)
