"""A run: one execution, with a directory that holds all of it.

```
run.json       settings, seed, status            events.jsonl   what happened when
recipe.json    where it came from, if a file     result.json    scores and findings, when finished
journal/       replies, to replay a crash with   silos/NAME/    each silo's own record and audit log
                                                 silos/NAME/members/NAME/    those of an institution's
asks.jsonl     every completed ask
```
"""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from numpy.typing import NDArray
from pydantic import ValidationError

from cosilo.errors import ConfigError, RunError
from cosilo.protocol.findings import Findings
from cosilo.protocol.message import Fields
from cosilo.protocol.metrics import NUMBERS, gain
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure, Stage
from cosilo.protocol.wire import decode
from cosilo.runs.audit import outgoing
from cosilo.runs.durable_files import explain_write_errors, read_json, read_lines, write_json
from cosilo.runs.journal import Journal, replies_in
from cosilo.runs.kept_models import model_bytes
from cosilo.runs.silo_state import last_state
from cosilo.simulated_time.clock import Clock, Moment
from cosilo.simulated_time.institution_time import layered
from cosilo.text import differences, guess, listing

F = TypeVar("F", bound=Findings)


class RunDirectory:
    """A run directory, finished or not."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / "run.json").exists():
            raise RunError(
                f"{self.folder}: is not a run directory (it has no run.json); `cosilo runs` lists runs"
            )
        #: Settings, seed and status.
        self.about: dict[str, Any] = read_json(self.folder / "run.json")
        wanted = {"method", "seed", "silos", "status", "created"}
        if not isinstance(self.about, dict) or not wanted <= set(self.about):
            raise RunError(f"{self.folder / 'run.json'}: is damaged; restore it or start a new run")

    def __repr__(self) -> str:
        failed = ""
        if self.status == "finished" and self.failures:
            failed = (
                f", {len({one['silo'] for one in self.failures})} of {len(self.about['silos'])} silos failed"
            )
        return f"<Run {self.folder}: {self.method}, {self.status}{failed}>"

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self.about["method"]["use"])

    @property
    def status(self) -> str:
        """`running`, `interrupted` (its process is gone), `stopped`, `refused` or `finished`."""
        status = str(self.about["status"])
        return "interrupted" if status == "running" and _is_left(self.folder) else status

    def set_status(self, status: str, **facts: Any) -> None:
        """Change the status."""
        self.about = {**self.about, "status": status, **facts}
        write_json(self.folder / "run.json", self.about)

    def need_finished(self) -> None:
        """Raise unless the run is finished."""
        if self.status != "finished":
            raise RunError(
                f"{self.folder}: the run is {self.status}, not finished; `cosilo resume` continues it"
            )

    @property
    def result(self) -> dict[str, Any]:
        """Scores and findings of a finished run."""
        self.need_finished()
        found: dict[str, Any] = read_json(self.folder / "result.json")
        return found

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The steps that silos of a finished run did not do: ask, step, silo, kind, and why in one line."""
        found: list[dict[str, Any]] = self.result["failures"]
        return found

    def failed_silos(self) -> str:
        """Which silos failed, in one line; nothing if none did."""
        each = {failure["silo"]: failure for failure in reversed(self.failures)}
        told = "; ".join(f"step {one['step']!r}: {one['text']}" for one in reversed(each.values()))
        left = len(self.about["silos"]) - len(each)
        return (
            f"{len(each)} of {len(self.about['silos'])} silos failed, {left} did all steps: {told}"
            if each
            else ""
        )

    def findings(self, kind: type[F]) -> F | None:
        """What the method found out besides scores; None if it has no findings of that kind."""
        result = self.result
        if not kind.model_fields.keys() & result.keys():
            return None
        try:
            return kind.model_validate(result)
        except ValidationError as error:
            first = error.errors()[0]
            where, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
            raise RunError(
                f"{self.folder / 'result.json'}: is damaged ({where}: {what}); restore it or start a new run"
            ) from None

    def events(self) -> list[dict[str, Any]]:
        """What happened when."""
        return read_lines(self.folder / "events.jsonl")

    def asks(self, institution: str | None = None) -> list[dict[str, Any]]:
        """Every completed ask: step, seconds, and of each silo the form of its reply or its failure.

        With an institution, what that asked its members; `within` is the ask of the coordinator.
        """
        folder = self.folder if institution is None else self.folder / "silos" / institution
        return read_lines(folder / "asks.jsonl")

    def last_replies(self, step: str) -> dict[str, Fields]:
        """What each silo replied when it was last asked for a step, as far as the journal still has it."""
        asks = sorted((self.folder / "journal").glob(f"[0-9]*-{step}"))
        last = {name: reply for ask in asks for name, reply in replies_in(ask).items()}
        return {name: Fields(decode(reply)) for name, reply in last.items()}

    @property
    def clock(self) -> Clock | None:
        """The clock of the run's simulated time, if it has one."""
        found = self.about.get("clock")
        try:
            return None if found is None else Clock.model_validate(found)
        except ValidationError:
            raise RunError(f"{self.folder / 'run.json'}: its clock is damaged; restore it") from None

    def moments(self, clock: Clock | None = None) -> list[Moment]:
        """Every ask in simulated time, by the run's own clock or by another one; none without a clock."""
        clock = self.clock if clock is None else clock
        if clock is None:
            return []
        members = {name: self.asks(name) for name in self.about.get("members", {})}
        return layered(self.asks(), members, clock, self.about["seed"])

    def record(self, silo: str) -> Path:
        """The folder that a silo keeps of a finished run; a member is "INSTITUTION/MEMBER"."""
        self.need_finished()
        path = self.folder / "silos" / silo.replace("/", "/members/")
        self.known(silo)
        if not path.is_dir():
            raise RunError(f"{path}: is not there; silos keep their models, and this one's is elsewhere")
        return path

    def audit(self, silo: str) -> list[dict[str, Any]]:
        """All that left a silo, in order; a member of an institution is called "INSTITUTION/MEMBER"."""
        self.known(silo)
        return outgoing(self.audit_path(silo))

    def known(self, silo: str) -> None:
        """Raise unless there is such a silo, or an institution of which it may be a member."""
        there = self.about["silos"]
        if silo.partition("/")[0] not in there:
            raise RunError(
                f"{self.folder}: there is no silo {silo!r}{guess(silo, there)}; wants {listing(there)}"
            )

    def audit_path(self, silo: str) -> Path:
        """Where the audit log of a silo is, if its record is on this machine."""
        return self.folder / "silos" / silo.replace("/", "/members/") / "audit.jsonl"

    def bytes_sent(self, silo: str) -> int:
        """Bytes of the messages that left a silo; where its log is kept at the silo, of those that came."""
        if log := self.audit(silo):
            return sum(entry.get("bytes", 0) for entry in log if not entry.get("again"))
        return sum(ask.get("received", {}).get(silo, 0) for ask in self.asks())

    def scores(self, stage: Stage | str) -> dict[str, float]:
        """Accuracy after a stage (`local`, `federated`) of the silos that share it."""
        self._check_stage(stage)
        found = self.result["scores"].get(str(stage), {})
        return {name: score["accuracy"] for name, score in found.items()}

    def joint_accuracies(self) -> dict[str, float]:
        """What the global network reaches at the end on the part of the joint test set that each silo brings.

        Members stand for their institution. Only where the records are on this machine.
        """
        members: dict[str, list[str]] = self.about.get("members", {})
        found = {}
        for name in self.about["silos"]:
            for one in [f"{name}/{member}" for member in members[name]] if name in members else [name]:
                state = last_state(self.folder / "silos" / one.replace("/", "/members/"))
                scores = state.scores if state else {}
                if (score := scores.get(str(FEDERATED), {}).get(str(Measure.JOINT))) is not None:
                    found[one] = float(score["accuracy"])
        return found

    def relative_accuracy(self) -> dict[str, float]:
        """Accuracy after the federation divided by that of local training, by silo: above 1 is a gain."""
        local, federated = self.scores(LOCAL), self.scores(FEDERATED)
        return {name: federated[name] / local[name] for name in federated if local.get(name)}

    def metrics(self, stage: Stage | str) -> dict[str, dict[str, Any]]:
        """By silo, what it shares of its metrics beside accuracy after a stage (`protocol.metrics`)."""
        self._check_stage(stage)
        found: dict[str, dict[str, Any]] = self.result.get("metrics", {}).get(str(stage), {})
        return found

    def _check_stage(self, stage: Stage | str) -> None:
        """Raise if the run had no such stage."""
        there = self.result["scores"]
        if str(stage) not in {*there, *self.result.get("metrics", {}), str(LOCAL), str(FEDERATED)}:
            raise ConfigError(f"stage {str(stage)!r}{guess(str(stage), list(there))}; wants {listing(there)}")

    def relative(self, metric: str) -> dict[str, float]:
        """How much better a metric is after the federation than after local training, by silo.

        Above 1 is a gain, whether more of it is better or less (`log_loss`, `calibration_error`).
        """
        if metric == "accuracy":
            return self.relative_accuracy()
        if metric not in NUMBERS:
            there = ["accuracy", *NUMBERS]
            raise ConfigError(f"metric {metric!r}{guess(metric, there)}; wants one of {listing(there)}")
        local, federated = self.metrics(LOCAL), self.metrics(FEDERATED)
        pairs = {
            name: (local[name].get(metric), federated[name].get(metric))
            for name in federated
            if name in local
        }
        return {
            name: found
            for name, (before, after) in pairs.items()
            if before is not None and after is not None and (found := gain(metric, before, after)) is not None
        }

    def relative_control(self) -> dict[str, float]:
        """The same of a model that had as much training without what others taught, where there is one."""
        local, found = self.scores(LOCAL), self.result.get("control", {}).get(str(FEDERATED), {})
        return {name: score["accuracy"] / local[name] for name, score in found.items() if local.get(name)}

    def global_weights(self) -> dict[str, NDArray[Any]]:
        """The weights of the global network after the last round, of a method that has one."""
        mark = Journal(self.folder / "journal").last_mark
        weights: Any = None if mark is None else mark.state.get("weights")
        if weights is None:
            raise RunError(f"{self.folder}: {self.method} keeps no global network")
        return dict(weights)

    def model_bytes(self) -> dict[str, int]:
        """The size of each silo's model, where the record is on this machine."""
        folder = self.folder / "silos"
        return {name: model_bytes(folder / name) for name in self.about["silos"] if (folder / name).is_dir()}


def record_in(folder: Path, silo: str) -> Path:
    """A silo's record: in the directory of a run, or the folder itself, where a silo keeps its own runs."""
    if (folder / "run.json").exists():
        return RunDirectory(folder).record(silo)
    if not (folder / "silo.json").exists():
        raise RunError(f"{folder}: is neither the directory of a run nor a silo's record of one")
    name = str(read_json(folder / "silo.json")["name"])
    if name != silo:
        raise RunError(f"{folder}: is the record of silo {name!r}; got {silo!r}")
    return folder


def begin(
    folder: Path, settings: Mapping[str, Any], recipe: Mapping[str, Any] | None, whole: Path | None = None
) -> RunDirectory:
    """Open the run directory for these settings: a new one, or that of an unfinished run.

    `whole` is the folder that its owner has a say in, if not this one.
    """
    path = folder / "run.json"
    if path.exists():
        run = RunDirectory(folder)
        other = instead(whole or folder)
        before = {key: run.about.get(key) for key in settings}
        late = run.about.get("late", {})  # came when it was over
        before["silos"] = [name for name in run.about["silos"] if name not in late]
        for key, was, now in differences(before, dict(settings)):
            raise RunError(f"{folder}: was begun with {key} = {was!r}, now it is {now!r}; {other}")
        return run
    own = {
        ".lock",
        "recipe.json",
        "federation.json",
        "recipe.json.part",
        "run.json.part",
    }  # a crash may leave
    if folder.exists() and any(entry.name not in own for entry in folder.iterdir()):
        raise RunError(f"{folder}: is not empty and not a run; choose another directory")
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if recipe is not None:
        write_json(folder / "recipe.json", recipe)
    created = datetime.now().astimezone().isoformat(timespec="seconds")
    write_json(path, {**settings, "created": created, "status": "running"})
    return RunDirectory(folder)


def instead(folder: Path) -> str:
    """What to do where a folder holds another run."""
    number = 2
    while (other := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return f"choose another folder, such as {other}, or delete this one"


def new_folder_name(parent: Path, method: str) -> Path:
    """A free name for a run: date, method, number."""
    stem = f"{datetime.now():%Y-%m-%d}-{method}"
    number = 1
    while (parent / f"{stem}-{number}").exists():
        number += 1
    return parent / f"{stem}-{number}"


def runs_in(parent: Path) -> list[RunDirectory]:
    """All runs in a folder, the oldest first; everything else is skipped."""
    found = []
    for path in sorted(parent.glob("*/run.json")):
        try:
            found.append(RunDirectory(path.parent))
        except RunError:
            continue
    return sorted(found, key=lambda run: str(run.about["created"]))


@contextmanager
def locked(folder: Path, patience: float = 5.0) -> Iterator[None]:
    """Keep a second process out of a run; workers of a killed process get a moment to end."""
    if folder.exists() and not folder.is_dir():
        raise RunError(
            f"{folder}: is a file; wants a folder for the run, a new one or that of an earlier run"
        )
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a+")
    with file:
        deadline = time.monotonic() + patience
        while not _lock(file):
            if time.monotonic() > deadline:
                file.seek(0)
                raise RunError(f"{folder}: process {file.read().strip() or '?'} is working on this run")
            time.sleep(0.05)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process is at work on a run; looking changes nothing."""
    path = folder / ".lock"
    if not path.exists():
        return False
    with path.open("a+") as file:
        free = _lock(file)
        if free:
            fcntl.flock(file, fcntl.LOCK_UN)
        return not free


def _is_left(folder: Path) -> bool:
    """Whether a process was at work on a run, and is no more."""
    try:
        return (folder / ".lock").exists() and not is_locked(folder)
    except OSError:  # somebody else's folder
        return False


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
