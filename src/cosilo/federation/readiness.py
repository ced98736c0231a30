"""Whether a federation is ready to run: what would keep it from starting, found before it does."""

import json
from collections.abc import Iterable, Sequence

from cosilo.coordination.institution import Institution
from cosilo.coordination.meeting import other_pool
from cosilo.data.instances import Instances
from cosilo.errors import ConfigError, CosiloError
from cosilo.learners.description import describe
from cosilo.methods.base import Method
from cosilo.progress import bar
from cosilo.protocol.task import Task, vocabulary
from cosilo.report.formatting import plural
from cosilo.silo.silo import Silo
from cosilo.silo.smoke_test import smoke_test
from cosilo.silo.target_labels import aims
from cosilo.simulated_time.clock import Clock
from cosilo.text import listing


def problems(
    method: Method, silos: Sequence[Silo | Institution], pool: Instances | None, pool_fingerprint: str | None
) -> list[str]:
    """What does not fit together, one line each."""
    found: list[str] = []
    plain = [silo for silo in silos if isinstance(silo, Silo)]
    tasks: dict[str, Task] = {silo.name: silo.task for silo in silos}
    for silo in silos:
        found += method.problems(silo)
    for silo in plain:
        if method.needs_pool and silo.pool_fingerprint != pool_fingerprint:
            found.append(other_pool(silo.name, silo.pool_fingerprint, pool_fingerprint))
    classes = len(vocabulary(tasks.values()))
    if method.needs_pool and pool is not None and len(pool) < classes:
        found.append(
            f"the pool has {plural(len(pool), 'instance')} for {classes} classes, and from fewer "
            "than one a class nothing can be learnt; wants hundreds"
        )
    try:
        method.check(tasks)
        each = {silo.name: aims(silo) for silo in plain}
        training = {name: list(task.classes) for name, task in tasks.items()}
        training |= {name: trained for name, (trained, _) in each.items()}
        wanted = {name: each[name][1] if name in each else [] for name in tasks}
        method.check_targets(training, wanted)
    except CosiloError as error:
        found.append(str(error))
    return list(dict.fromkeys(found))  # silos may all say the same


def try_learners(silos: Iterable[Silo]) -> list[str]:
    """Try out every learner; of those that are the same, on data of the same form, one."""
    different: dict[str, Silo] = {}
    for silo in silos:
        about = describe(silo.learner).value, silo.form, len(silo.task)
        different.setdefault(json.dumps(about), silo)
    with bar("trying out learners", len(different)) as advance:
        found = []
        for silo in different.values():
            found.append(smoke_test(silo))
            advance()
    return [line for line in found if line is not None]


def notes_on_learners(silos: Iterable[Silo]) -> list[str]:
    """What owners should know of their learners before a run; what several have in common is one line."""
    found: dict[str, list[str]] = {}
    for silo in silos:
        for line in silo.learner.notes():
            found.setdefault(line, []).append(silo.name)
    return [f"{_named(names)}: {line}" for line, names in found.items()]


def _named(silos: Sequence[str]) -> str:
    return f"silo {silos[0]!r}" if len(silos) == 1 else f"{len(silos)} silos, {silos[0]!r} first"


def check_clock(clock: Clock, method: Method) -> None:
    """A report must not find out after the run that its clock cannot tell the time."""
    if clock.cycles is not None:
        asked = [
            step.name for step in method.steps().values() if step.declared.timed and method.uses(step.name)
        ]
        missing = [name for name in asked if name not in clock.cycles]
        if missing:
            raise ConfigError(
                f"clock.cycles: has no {listing(missing)}; wants one number for every step of "
                f"{method.name} that takes time: {listing(asked)}"
            )
