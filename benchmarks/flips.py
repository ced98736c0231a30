"""Flip one bit of one file and run the commands that read it: `python benchmarks/flips.py [flips] [seed]`.

An unfinished run of CoFED, an unfinished run with institutions and rounds, a finished run of CoFED, a
finished run that labelled targets, a comparison, and the kits of a coordinator and of silos. Every command
that reads from there runs in this process, without FLARE's own processes, each in a fresh copy with the
flip. A flip is

- *named* if a command ends with one line that names the file (*unnamed* if the line does not), or leaves
  something out and says so in such a line,
- *silent* if a command ends well with another result,
- a *traceback* if a command ends in any other way,
- *harmless* if all commands say what they say without it.

Not flipped: texts for people (`log.txt`, `console.txt`), what commands write and none reads (`*.html`,
`.lock`, `state.old`, `reply.old`), files of their owners (`*.toml`, `*.csv`). The ledger of private votes
is not in here.
"""

import io
import shutil
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from cosilo import Run
from cosilo.cli.main import main as cosilo
from cosilo.config import build, recipe_file
from cosilo.errors import CosiloError, RunError
from cosilo.protocol.events import Event
from cosilo.runs import approval
from cosilo.runs.durable_files import write_json

#: Names of files that are not flipped: nothing reads them back, or they are their owners'.
NOT_READ = ("log.txt", "console.txt", ".lock", "state.old", "reply.old")
NOT_READ_ENDINGS = (".html", ".toml", ".csv", ".part")
#: What the last command said on stderr.
_ON_STDERR: list[str] = []
#: What a command says, or whatever else it comes to; it takes the folder of its subject.
Command = Callable[[Path], object]


class Named(CosiloError):
    """A command ended with exit code 2 and one line for each thing that is wrong."""


class Stop(Exception):
    """Ends a run in the middle."""


@dataclass(frozen=True)
class Subject:
    """A folder in which bits are flipped, and the commands that read it, each in a copy of its own.

    `place` is where a damaged copy lies: the same at every flip, since files name folders.
    """

    name: str
    whole: Path
    place: Path
    commands: Mapping[str, Command]

    def files(self) -> list[Path]:
        """Return the files that commands read back, relative to the folder."""
        return [
            path.relative_to(self.whole)
            for path in sorted(self.whole.rglob("*"))
            if path.is_file()
            and path.stat().st_size
            and path.name not in NOT_READ
            and path.suffix not in NOT_READ_ENDINGS
        ]

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """Make a copy in its place, for as long as it is needed."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.whole, self.place)
        try:
            yield self.place
        finally:
            shutil.rmtree(self.place)

    def said(self) -> dict[str, object]:
        """Return what each command says while nothing is damaged."""
        found = {}
        for name, command in self.commands.items():
            with self.copy() as folder:
                found[name] = command(folder)
        return found


def flip(path: Path, place: int, bit: int) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def judge(
    subject: Subject, file: Path, place: int, bit: int, expected: Mapping[str, object]
) -> tuple[str, str]:
    """Flip one bit and run all commands; returns the kind of what came of it, and a line about it."""
    about, named = f"{subject.name}: {file}, byte {place}, bit {bit}", ""
    for name, command in subject.commands.items():
        _ON_STDERR.clear()
        with subject.copy() as folder:
            flip(folder / file, place, bit)
            try:
                found = command(folder)
            except CosiloError as error:
                named = named or f"{about}: {name}: {error}"
                continue
            except Exception:
                return "tracebacks", f"{about}: {name}:\n{traceback.format_exc()}"
        said = "".join(_ON_STDERR)
        if found != expected[name] and file.name not in said:
            return "silent", f"{about}: {name} says something else"
        if found != expected[name]:
            named = named or f"{about}: {name}: {said}"
    if not named:
        return "harmless", about
    return ("named" if file.name in named.partition(f"{about}: ")[2] else "unnamed"), named


def run(*arguments: object) -> str:
    """Run a command in this process and return what it prints; exit code 2 is `Named`."""
    out, errors = io.StringIO(), io.StringIO()
    with patch("sys.argv", ["cosilo", *map(str, arguments)]), redirect_stdout(out), redirect_stderr(errors):
        try:
            cosilo()
        except SystemExit as end:
            code = end.code
    _ON_STDERR.append(errors.getvalue())
    if code == 2:
        raise Named(errors.getvalue())
    if code:
        raise AssertionError(f"exit code {code}: {errors.getvalue()}")
    return out.getvalue()


# ------------------------------------------------------------------------------------------- runs

SILO = """
[[silo]]
name = "{name}"
path = "{name}.csv"
learner = {learner}
"""
COFED = """
seed = 3
[method]
use = "cofed"
[pool]
path = "pool.csv"
[defaults]
label = "digit"
shares = ["labels", "metrics", "size"]
"""
LEARNERS = {
    "north": '{ use = "sklearn.tree.DecisionTreeClassifier", max_depth = 5 }',
    "south": '{ use = "sklearn.naive_bayes.GaussianNB" }',
    "west": '{ use = "sklearn.neighbors.KNeighborsClassifier" }',
}
INSTITUTIONS = """
seed = 3
[method]
use = "fedavg"
rounds = 4
[simulation]
dataset = "digits"
split = { use = "iid", silos = 4, size = 40 }
institutions = 2
learners = [{ use = "mlp", hidden = [256], training = { epochs = 1, lr = 0.05, batch = 20 } }]
shares = ["weights", "size", "metrics"]
"""
TARGETS = """
seed = 1
[method]
use = "local"
[simulation]
dataset = "digits"
split = { use = "subset", silos = 2, clusters = 2, per_class = 20, labelled = 4, unlabelled = 8 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
shares = ["metrics", "weights", "size"]
"""


def write_recipes(folder: Path) -> None:
    """Write recipes, and the data of those whose silos have files."""
    X, y = load_digits(return_X_y=True)
    table = pd.DataFrame(X[:, 10:26], columns=[f"p{i}" for i in range(16)])
    labelled = table.assign(digit=[f"d{value}" for value in y])
    for place, name in enumerate((*LEARNERS, "late")):
        labelled.iloc[80 * place : 80 * place + 80].to_csv(folder / f"{name}.csv", index=False)
    table.iloc[1000:1040].to_csv(folder / "pool.csv", index=False)
    silos = "".join(SILO.format(name=name, learner=learner) for name, learner in LEARNERS.items())
    (folder / "cofed.toml").write_text(COFED + silos)
    (folder / "institutions.toml").write_text(INSTITUTIONS)
    (folder / "targets.toml").write_text(TARGETS)
    (folder / "late.toml").write_text(
        'name = "late"\npath = "late.csv"\nlabel = "digit"\nshares = ["labels", "metrics", "size"]\n'
        'learner = { use = "sklearn.naive_bayes.GaussianNB" }\n'
    )


def begin(folder: Path, recipe: Path, step: str, replies: int) -> None:
    """Begin a run and stop it after this many replies to a step."""
    seen = Counter[str]()

    def watch(event: Event) -> None:
        if event.what == "reply":
            seen[str(event.facts["step"])] += 1
            if seen[step] == replies:
                raise Stop

    federation = build.federation(recipe_file.read(recipe, []), build.Source(str(recipe), recipe.parent))
    try:
        federation.run(folder, observers=[watch])
    except Stop:
        return
    raise AssertionError(f"{recipe}: ended before {step} had {replies} replies")


def outcome(folder: Path) -> object:
    """Return all that a finished run came to, but times: its result, what was sent, and what models say."""
    found = Run.open(folder)
    members: Mapping[str, list[str]] = found.about.get("members", {})
    silos = []
    for name in found.about["silos"]:
        silos += [f"{name}/{member}" for member in members[name]] if name in members else [name]
    return {
        "result": found.result,
        "asks": [_asks(found, name) for name in (None, *members)],
        "left": {name: found.bytes_sent(name) for name in found.about["silos"]},
        "models": {name: _predictions(found, name) for name in silos},
    }


def _asks(found: Run, institution: str | None) -> list[object]:
    keys = ("number", "step", "silos", "sent", "received", "failures")
    return [
        ([ask[key] for key in keys], [one["checksum"] for one in ask["arrivals"].values()])
        for ask in found.asks(institution)
    ]


def _predictions(found: Run, silo: str) -> list[Any]:
    model = found.model(silo)
    labels: list[Any] = model.predict(_instances(16 if "columns" in model.instances else 64)).tolist()
    return labels


def _instances(width: int) -> Any:
    X = load_digits(return_X_y=True)[0][1000:1100]
    return X if width == 64 else pd.DataFrame(X[:, 10:26], columns=[f"p{i}" for i in range(16)])


def resumed(folder: Path) -> object:
    """Resume a run, and return what it came to."""
    run("resume", folder / "run")
    return outcome(folder / "run")


def watched(folder: Path) -> object:
    """Return the figures of the page of an unfinished run."""
    from cosilo.report.live_page import live_part

    return live_part(Run.open(folder / "run"))


def written(*arguments: object, files: list[Path]) -> object:
    """Run a command; return what it says and the texts that it writes."""
    said = run(*arguments)
    return said, [path.read_text("utf-8") for path in files]


def exported(folder: Path) -> object:
    """Export a model; return what its folder says of it."""
    to = folder / "exported"
    run("export", folder / "run", "north", "--to", to)
    return [(to / name).read_text("utf-8") for name in ("model.json", "README.md", "requirements.txt")]


def unfinished(scratch: Path) -> Subject:
    """CoFED, stopped when two of three silos had voted."""
    begin(scratch / "unfinished" / "run", _data(scratch) / "cofed.toml", "label", 2)
    return _subject(scratch, "unfinished", {"watch": watched, "resume": resumed})


def institutions(scratch: Path) -> Subject:
    """FedAvg with large replies and marks, stopped in the third round; institutions have journals too."""
    begin(scratch / "institutions" / "run", _data(scratch) / "institutions.toml", "train", 5)
    return _subject(scratch, "institutions", {"watch": watched, "resume": resumed})


def finished(scratch: Path) -> Subject:
    """CoFED with all that can be done with it afterwards; one silo has trained on with more data."""
    data = _data(scratch)
    run("run", data / "cofed.toml", "--dir", scratch / "finished" / "run")
    run("continue", scratch / "finished" / "run", "south", "--data", data / "late.csv")

    def votes(folder: Path) -> object:
        return written("votes", folder / "run", "--silos", files=[folder / "run" / "votes.html"])

    def predict(folder: Path) -> object:
        to = folder / "out.csv"
        return [
            written("predict", folder / "run", name, data / "pool.csv", "--out", to, files=[to])
            for name in LEARNERS
        ]

    def add(folder: Path) -> object:
        run("add", folder / "run", data / "late.toml")
        return outcome(folder / "run")

    commands: dict[str, Command] = {
        "runs": lambda folder: run("runs", folder),
        "report": lambda folder: written("report", folder / "run", files=[folder / "run" / "report.html"]),
        "votes": votes,
        "audit": lambda folder: [run("audit", folder / "run", name) for name in LEARNERS],
        "predict": predict,
        "export": exported,
        "resume": resumed,
        "use": lambda folder: run("use", folder / "run", "north", "--model", "local"),
        "continue": lambda folder: run("continue", folder / "run", "west", "--data", data / "late.csv"),
        "add": add,
    }
    return _subject(scratch, "finished", commands)


def targets(scratch: Path) -> Subject:
    """Local training whose models labelled a target."""
    run("run", _data(scratch) / "targets.toml", "--dir", scratch / "targets" / "run")

    def labels(folder: Path) -> object:
        to = folder / "out.csv"
        return written("labels", folder / "run", "silo-1", "--out", to, files=[to])

    return _subject(scratch, "targets", {"labels": labels, "resume": resumed})


def compared(scratch: Path) -> Subject:
    """A comparison of two methods."""
    to = scratch / "compared" / "c"
    run("compare", _data(scratch) / "cofed.toml", "--methods", "cofed,local", "--seeds", 1, "--dir", to)

    def report(folder: Path) -> object:
        return written("report", folder / "c", files=[folder / "c" / "comparison.html"])

    def resume(folder: Path) -> object:
        return run("resume", folder / "c"), [outcome(path) for path in sorted(folder.glob("c/*-seed*"))]

    return _subject(scratch, "compared", {"report": report, "resume": resume})


def _data(scratch: Path) -> Path:
    folder = scratch / "data"
    if not folder.exists():
        folder.mkdir()
        write_recipes(folder)
    return folder


def _subject(scratch: Path, name: str, commands: Mapping[str, Command]) -> Subject:
    whole = scratch / "whole" / name
    shutil.copytree(scratch / name, whole)
    return Subject(name, whole, scratch / name, commands)


# ------------------------------------------------------------------------------------------- kits

FEDERATION = {
    "name": "clinics",
    "members": ["north", "south"],
    "method": {"use": "cofed"},
    "pool": {"fingerprint": "299536ae8a26af97", "size": 40},
}


def kits(scratch: Path) -> Subject:
    """The kits of a coordinator and of two silos, of which one has not received its admission yet.

    One has a finished run, and a run that waits for its administrator.
    """
    from cosilo.engines.flare import admission
    from cosilo.engines.flare.kit_settings import KitSettings, write_kit_settings
    from cosilo.engines.flare.party_files import as_federation

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = as_federation({**FEDERATION, "coordinator": {"port": port}}, "federation")
    place = scratch / "kits"
    made = admission.make_all(settings.model_copy(update={"members": ["north"]}), place)
    request, _ = admission.ask_for(place / "south", "south")
    (place / "south.request").write_bytes(request)
    answer = admission.admit(settings, place / "coordinator", request, "south.request")
    write_json(place / "south.admission", answer.model_dump())
    runs = {"north": place / "north" / "runs", "server": place / "coordinator" / "server" / "runs"}
    write_kit_settings(made["north"], KitSettings(str(runs["north"]), str(place / "north.toml")))
    write_kit_settings(made["server"], KitSettings(str(runs["server"])))
    run("run", _data(scratch) / "cofed.toml", "--dir", scratch / "kept")
    shutil.copytree(scratch / "kept" / "silos" / "north", runs["north"] / "done")
    waiting = runs["north"] / "waits"
    waiting.mkdir()
    asked = approval.Subject(contract="c" * 64, limits="d" * 16)
    thread = threading.Thread(
        target=approval.wait_for, args=(waiting, asked, ["cofed: 3 requests", "votes"]), daemon=True
    )
    thread.start()
    while not approval.waiting(runs["north"]):
        time.sleep(0.01)
    whole = scratch / "whole" / "kits"
    shutil.copytree(place, whole)
    approval.answer(waiting, asked, True)
    thread.join()
    return Subject("kits", whole, place, _kit_commands(settings))


def _kit_commands(settings: Any) -> dict[str, Command]:
    from cosilo.engines.flare import admission, processes, reach
    from cosilo.engines.flare.certificates import check_certificate
    from cosilo.engines.flare.kit_settings import read_kit_settings
    from cosilo.engines.flare.kits import confine_server, confine_site
    from cosilo.engines.flare.session import session

    def join(folder: Path) -> object:
        kit = folder / "north"
        found = [processes.site_name(kit), read_kit_settings(kit), reach.connection_problem(kit)]
        confine_site(kit)
        return [*found, _told_flare(kit)]

    def start(folder: Path) -> object:
        kit = processes.server_kit(folder)
        found = [admission.admitted(kit), reach.address(kit), read_kit_settings(kit)]
        reach.check_can_listen(kit)
        confine_server(kit)
        return [*found, _told_flare(kit)]

    def submit(folder: Path) -> object:
        kit = processes.server_kit(folder)
        admission.check_admitted(settings, kit)
        try:
            with session(folder):
                raise AssertionError("nobody listens there")
        except RunError as error:
            if "not running; start it" not in str(error):
                raise
            return str(error), _told_flare(folder / "coordinator" / "admin")

    def admit(folder: Path) -> object:
        request = (folder / "south.request").read_bytes()
        found = admission.admit(settings, folder / "coordinator", request, str(folder / "south.request"))
        return found.model_dump(exclude={"certificate"}), sorted(
            admission.admitted(folder / "coordinator/server")
        )

    def receive(folder: Path) -> object:
        path, kit = folder / "south.admission", folder / "south"
        ends = admission.receive(kit, admission.read_admission(path), str(path))
        startup = kit / "startup"
        parts = [(startup / name).read_bytes() for name in ("client.crt", "rootCA.pem", "client.key")]
        check_certificate(parts[0], parts[1], "south", parts[2], str(path))
        return ends, _told_flare(kit)

    def approve(folder: Path) -> object:
        return run("approve", folder / "north"), run("approve", folder / "north", "waits", "--yes")

    record = Path("north", "runs", "done")
    return {
        "join": join,
        "start": start,
        "submit": submit,
        "runs": lambda folder: run("runs", folder / "north"),
        "audit": lambda folder: run("audit", folder / "north", "done"),
        "report": lambda folder: written("report", folder / record, files=[folder / record / "report.html"]),
        "approve": approve,
        "receive": receive,
        "admit": admit,
    }


def _told_flare(kit: Path) -> dict[str, bytes]:
    """Return what FLARE's process would read of a kit."""
    paths = [path for part in ("startup", "local") for path in sorted((kit / part).glob("*"))]
    return {str(path): path.read_bytes() for path in paths if path.name != "manifest.json"}


# ------------------------------------------------------------------------------------------- all

#: The subjects, and of 25 flips how many are made in each.
SUBJECTS: dict[Callable[[Path], Subject], int] = {
    unfinished: 5,
    institutions: 4,
    finished: 6,
    targets: 2,
    compared: 2,
    kits: 6,
}


def make_flips(subject: Subject, count: int, rng: np.random.Generator) -> Iterator[tuple[Path, int, int]]:
    """Choose bits: the files in turn, each in a random place."""
    files = subject.files()
    order = np.concatenate([rng.permutation(len(files)) for _ in range(-(-count // len(files)))])
    for number in order[:count]:
        size = (subject.whole / files[number]).stat().st_size
        yield files[number], int(rng.integers(size)), int(rng.integers(8))


def count_flips(subject: Subject, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Make this many flips; returns how many of each kind there were, and a line about each."""
    kinds, lines = Counter[str](), []
    expected = subject.said()
    if subject.said() != expected:
        raise AssertionError(f"{subject.name}: commands say something else each time")
    for file, place, bit in make_flips(subject, count, np.random.default_rng(seed)):
        kind, line = judge(subject, file, place, bit, expected)
        kinds[kind] += 1
        lines.append(f"{kind}: {line}")
    return kinds, lines


def main() -> None:
    """Print the figures."""
    flips = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total = Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for make, share in SUBJECTS.items():
            subject = make(Path(scratch).resolve())
            kinds, lines = count_flips(subject, round(flips * share / 25), seed)
            total += kinds
            print("\n".join(lines))
            print(f"{subject.name}: {len(subject.files())} files, {dict(kinds)}", flush=True)
    for kind in ("named", "harmless", "unnamed", "silent", "tracebacks"):
        print(f"figure flips_{kind} {total[kind]}")


if __name__ == "__main__":
    main()
