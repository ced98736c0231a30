"""A run: one execution, with a directory that holds all of it.

```
run.json       settings, seed, status            events.jsonl   what happened when
recipe.json    where it came from, if a file     result.json    scores and findings, when finished
journal/       replies, to replay a crash with   silos/NAME/    each silo's own record and audit log
                                                 silos/NAME/members/NAME/    those of an institution's
asks.jsonl     every completed ask
```
"""

from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray
from pydantic import ValidationError

from cosilo.errors import BadMessage, ConfigError, RunError
from cosilo.protocol.contract import Contract
from cosilo.protocol.findings import Findings
from cosilo.protocol.message import Fields
from cosilo.protocol.metrics import NUMBERS, gain
from cosilo.protocol.seal import Seal
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure, Stage
from cosilo.protocol.wire import decode
from cosilo.runs.audit import outgoing
from cosilo.runs.durable_files import read_json, read_lines, write_json
from cosilo.runs.journal import Journal, replies_in
from cosilo.runs.kept_models import model_bytes
from cosilo.runs.locks import is_left
from cosilo.runs.silo_state import last_state
from cosilo.simulated_time.clock import Clock, Moment
from cosilo.simulated_time.institution_time import layered
from cosilo.text import guess, listing

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
        return "interrupted" if status == "running" and is_left(self.folder) else status

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
    def is_between_organisations(self) -> bool:
        """True if silos have other owners, and keep their records themselves."""
        return (self.folder / "federation.json").exists()

    @property
    def contract(self) -> Contract | None:
        """The run's contract; None: the run is of an earlier version."""
        if "contract" not in self.about:
            return None
        try:
            return Contract.read(self.about["contract"])
        except BadMessage as error:
            raise RunError(f"{self.folder / 'run.json'}: is damaged ({error}); restore it") from None

    @property
    def contract_line(self) -> str | None:
        """The contract by its hash, and whether audit logs are anchored by signatures."""
        contract = self.contract
        if contract is None:
            return None
        signed = "seals are signed by silos and coordinator"
        unsigned = "seals are not signed: all silos have one owner"
        return f"{contract.hash[:16]}; {signed if self.is_between_organisations else unsigned}"

    def last_seals(self) -> dict[str, Seal]:
        """Return what each silo last stated of its audit log, as the coordinator has it."""
        return Journal(self.folder / "journal").seals

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
