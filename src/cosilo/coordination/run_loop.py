"""The coordinator's part of a run, over any engine: meet the silos, follow the method, write the result."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosilo.coordination.coordinator import NotMet, Silos
from cosilo.errors import CosiloError
from cosilo.runs.durable_files import write_json
from cosilo.runs.journal import Failure, Journal

if TYPE_CHECKING:
    from cosilo.methods.base import Method
    from cosilo.protocol.engine import Engine
    from cosilo.runs.events import Events
    from cosilo.runs.run import Run


@dataclass(frozen=True)
class Agreed:
    """What the coordinator knows before it has met anyone."""

    silos: list[str]
    seed: int = 0
    quorum: float = 0.5
    timeout: float | None = None
    pool: str | None = None
    pool_size: int = 0
    pool_classes: tuple[str, ...] = ()
    #: The classes that tasks may be made of; None: any.
    vocabulary: tuple[str, ...] | None = None


class Stopped(CosiloError):
    """A run stopped on the way; `failed` are the silos that did not do the last step."""

    def __init__(self, error: CosiloError, failed: dict[str, Failure]) -> None:
        super().__init__(str(error))
        self.error, self.failed = error, failed


def conduct(run: "Run", method: "Method", engine: "Engine", agreed: Agreed, events: "Events") -> None:
    """Carry out what is left of a run; its directory then has the result, or says how far it came."""
    silos = Silos(
        agreed.silos,
        method,
        engine,
        Journal(run.folder / "journal"),
        events,
        seed=agreed.seed,
        quorum=agreed.quorum,
        timeout=agreed.timeout,
    )
    try:
        engine.open(method, agreed.seed, run.folder / "silos")
        silos.meet(method, agreed.pool, agreed.pool_size, agreed.pool_classes)
        _within(silos, agreed.vocabulary)
        method.coordinate(silos)
    except CosiloError as error:
        events.add("stop", text=str(error))
        run.mark("refused" if isinstance(error, NotMet) else "stopped")
        raise Stopped(error, silos.failed) from error
    finally:
        engine.close()
    tasks = {name: list(task.classes) for name, task in silos.tasks.items()}
    wanted = {name: classes for name, classes in silos.wanted.items() if classes}
    found = {"tasks": tasks, **({"wanted": wanted} if wanted else {}), **silos.findings}
    write_json(run.folder / "result.json", found)
    events.add("finish")
    for folder in (run.folder, *run.folder.glob("silos/*")):  # those of institutions have journals too
        if (folder / "journal").exists():
            Journal(folder / "journal").tidy()
    run.mark("finished")


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
        raise NotMet("\n".join(problems))
