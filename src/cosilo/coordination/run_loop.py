"""The coordinator's part of a run, over any engine: meet the silos, follow the method, write the result."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Protocol, runtime_checkable

from cosilo.coordination.asking import SilosDoNotFit
from cosilo.coordination.coordinator import Silos
from cosilo.errors import CosiloError, RunError
from cosilo.protocol.carrier import Carrier, Failure
from cosilo.protocol.contract import Contract
from cosilo.protocol.events import Event, Happening, Observer
from cosilo.protocol.participant import Participant, Procedure
from cosilo.runs.durable_files import write_json
from cosilo.runs.events import EventLog
from cosilo.runs.journal import Journal
from cosilo.runs.run import RunDirectory
from cosilo.simulated_time.time_limit import TimeLimit


@dataclass(frozen=True)
class Terms:
    """The terms of a run: what the coordinator knows before it has contacted any silo."""

    silos: list[str]
    seed: int = 0
    quorum: float = 0.5
    timeout: float | None = None
    pool: str | None = None
    pool_size: int = 0
    pool_classes: tuple[str, ...] = ()
    #: The classes that tasks may be made of; None: any.
    vocabulary: tuple[str, ...] | None = None

    def contract(self, method: Procedure, salt: str) -> Contract:
        """Return the contract of a run on these terms."""
        settings = {
            "method": method.parameters(),
            "seed": self.seed,
            "silos": sorted(self.silos),
            "quorum": self.quorum,
            "timeout": self.timeout,
            "pool": [self.pool, self.pool_size, list(self.pool_classes)],
            "vocabulary": None if self.vocabulary is None else list(self.vocabulary),
        }
        return Contract.of(
            method,
            self.seed,
            silos=self.silos,
            pool=self.pool,
            vocabulary=self.vocabulary,
            settings=settings,
            salt=salt,
        )


class Stopped(CosiloError):
    """A run stopped before it finished; `failed` are the silos that did not do the last step."""

    def __init__(self, error: CosiloError, failed: dict[str, Failure]) -> None:
        super().__init__(str(error))
        self.error, self.failed = error, failed


class Coordinated(Procedure, Protocol):
    """A method, as seen by the loop of a run."""

    def coordinate(self, silos: Silos) -> None:
        """What the coordinator does: ask silos for steps, compute on the replies, ask again."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that has a directory, and what remains to be done in it.

    Parameters
    ----------
    run
        Its directory.
    method
        What is followed.
    terms
        What the coordinator knows before it has contacted any silo.
    silos
        The silos that are on this machine; none where they are elsewhere.
    observers
        Called with every event, besides the run's own event log.
    """

    run: RunDirectory
    method: Coordinated
    terms: Terms
    silos: Sequence[Participant] = ()
    observers: Sequence[Observer] = ()


class Engine(Protocol):
    """What executes runs: it knows where the silos are and what carries asks to them."""

    def ready(self, silos: Sequence[str], from_recipe: bool) -> None:
        """Raise if it cannot carry out runs of silos with these names here.

        `from_recipe` says whether the silos come from a recipe.
        """

    def about(self) -> dict[str, str | int]:
        """What a run's directory says about it."""

    def execute(self, planned: PlannedRun) -> None:
        """Do the rest of a run; its directory then has the result, or says how far it got."""


@runtime_checkable
class SideBySide(Protocol):
    """What an engine may also be able to do: several runs of a comparison at a time."""

    def runs_at_once(self, workers: int) -> int:
        """How many runs there is room for, if each has so many workers."""

    def side_by_side(
        self,
        work: Callable[..., str | None],
        jobs: Mapping[tuple[str, int], tuple[object, ...]],
        at_once: int,
    ) -> Iterator[tuple[tuple[str, int], str | None]]:
        """Have `work(engine, *arguments)` done for each job in a process of its own.

        Yields each job when it is done, with what the work returned: the text of an error, or None.
        """


def contract_of(run: RunDirectory, method: Procedure, terms: Terms) -> Contract:
    """Return the contract of a run, which is kept in its directory from the first start on.

    Settings that silos are not told, such as the quorum, may change when a run is resumed on one machine: the
    contract is then still that of the first start.
    """
    if "salt" not in run.about:  # of an earlier version
        run.set_status(run.status, salt=token_hex(16))
    contract = terms.contract(method, str(run.about["salt"]))
    known = run.contract
    if known is None:
        run.set_status(run.status, contract=contract.values())
        return contract
    changes = known.changes(replace(contract, settings=known.settings))
    if changes:
        raise RunError(
            f"{run.folder}: was begun under another contract ({'; '.join(changes)}); start a new run"
        )
    return known


def late_contract(run: RunDirectory, method: Procedure, name: str) -> Contract:
    """Return the contract of a silo that comes when the run is over: it has one of its own."""
    known = run.contract
    if "salt" not in run.about or known is None:
        raise RunError(f"{run.folder}: is of an earlier version, which made no contracts; start a new run")
    silos, salt = [*run.about["silos"], name], str(run.about["salt"])
    settings = {"before": known.settings, "late": name}
    return Contract.of(
        method,
        known.seed,
        silos=silos,
        pool=known.pool,
        vocabulary=known.vocabulary,
        settings=settings,
        salt=salt,
    )


def coordinate_run(planned: PlannedRun, carrier: Carrier) -> None:
    """Do the coordinator's part of the rest of a run."""
    with EventLog(planned.run.folder / "events.jsonl") as events:
        _coordinate(planned, carrier, events)


def _coordinate(planned: PlannedRun, carrier: Carrier, events: EventLog) -> None:
    run, method, terms = planned.run, planned.method, planned.terms
    curve = _Curve(run.folder / "so_far.json")
    observers: list[Observer] = [events, curve, *planned.observers]

    def tell(what: Happening, **facts: object) -> None:
        for observer in observers:
            observer(Event(what, facts))

    def elapsed(number: int) -> float:
        return max((moment.at for moment in run.moments() if moment.number <= number), default=0.0)

    clock = run.clock
    limit = None if clock is None or clock.budget is None else TimeLimit(clock.budget, elapsed)
    tell(Happening.RESUME if (run.folder / "journal").exists() else Happening.START)
    contract = contract_of(run, method, terms)
    silos = Silos(
        terms.silos,
        method,
        carrier,
        Journal(run.folder / "journal"),
        observers,
        seed=terms.seed,
        quorum=terms.quorum,
        timeout=terms.timeout,
        limit=limit,
        contract=contract,
    )
    curve.silos = silos
    try:
        carrier.open(method, contract, run.folder / "silos")
        silos.meet(terms.pool, terms.pool_size, terms.pool_classes)
        _within(silos, terms.vocabulary)
        method.coordinate(silos)
    except CosiloError as error:
        tell(Happening.STOP, text=str(error))
        run.set_status("refused" if isinstance(error, SilosDoNotFit) else "stopped")
        raise Stopped(error, silos.failed) from error
    finally:
        carrier.close()
    tasks = {name: list(task.classes) for name, task in silos.tasks.items()}
    wanted = {name: classes for name, classes in silos.wanted.items() if classes}
    found = {"tasks": tasks, **({"wanted": wanted} if wanted else {}), **silos.result()}
    write_json(run.folder / "result.json", found)
    (run.folder / "so_far.json").unlink(missing_ok=True)
    run.set_status("finished")
    tell(Happening.FINISH)  # whoever waits for it finds everything in its place


class _Curve:
    """Keeps the mean accuracy after each stage so far, for whoever watches; once a second at most."""

    def __init__(self, path: Path) -> None:
        self._path, self._known, self._at = path, 0, 0.0
        self.silos: Silos | None = None

    def __call__(self, event: Event) -> None:
        scores = {} if self.silos is None else self.silos.findings["scores"]
        if event.what is not Happening.ASK or len(scores) == self._known or time.monotonic() < self._at + 1:
            return
        self._known, self._at = len(scores), time.monotonic()
        means = [
            [stage, statistics.fmean(one["accuracy"] for one in each.values()), len(each)]
            for stage, each in scores.items()
            if each
        ]
        write_json(self._path, {"stages": means})


def _within(silos: Silos, vocabulary: Iterable[str] | None) -> None:
    """Raise if a silo's task has a class that the partners did not agree on."""
    if vocabulary is None:
        return
    known = set(vocabulary)
    problems = [
        f"silo {name!r}: its class {unknown[0]!r} is not in the vocabulary agreed on; "
        "rename it at the silo or add it to the federation's vocabulary"
        for name, task in silos.tasks.items()
        if (unknown := [label for label in task.classes if label not in known])
    ]
    if problems:
        raise SilosDoNotFit("\n".join(problems))
