"""From settings to a federation: reads the data, imports the learners, makes the silos.

What that takes is imported when the settings are right: a misspelt key is reported at once.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from cosilo.config.resolve import find_kind, find_method, make_learner
from cosilo.config.settings import Settings, validate
from cosilo.config.source import Source, allow_imports_beside, read_recipe

if TYPE_CHECKING:
    from cosilo.coordination.institution import Institution
    from cosilo.coordination.run_loop import Engine
    from cosilo.data import Table
    from cosilo.federation.federation import Federation
    from cosilo.silo.silo import Silo

__all__ = [
    "Members",
    "Source",
    "allow_imports_beside",
    "federation",
    "find_kind",
    "find_method",
    "make_learner",
    "make_members",
    "read_recipe",
]

#: The silos of a recipe, and the federation's pool, with its labels if it is labelled.
Members: TypeAlias = "tuple[Sequence[Silo | Institution], Table | None]"


def federation(
    values: Mapping[str, Any],
    source: Source,
    members: "Members | None" = None,
    engine: "Engine | str" = "local",
) -> "Federation":
    """The federation that the values of a recipe describe; `members` if they were made before."""
    settings = validate(values, source.name)
    allow_imports_beside(source)
    method = find_method(settings.method, source.name)
    from cosilo.engines.local.engine import LocalEngine
    from cosilo.federation.federation import Federation

    silos, pool = members or make_members(settings, source)
    return Federation(
        silos,
        None if pool is None else pool.X,
        method,
        pool_labels=None if pool is None else pool.y,
        seed=settings.seed,
        quorum=settings.quorum,
        timeout=settings.timeout,
        engine=LocalEngine(settings.workers) if engine == "local" else engine,
        clock=settings.clock,
        recipe={"source": source.name, "folder": str(source.folder.resolve()), "values": values},
    )


def make_members(settings: Settings, source: Source) -> Members:
    """Read the data: the silos, and the pool if the recipe has one. They do not depend on the method."""
    from cosilo.config.silos import make_pool, make_silos
    from cosilo.config.simulation import simulate

    allow_imports_beside(source)
    rest: Table | None = None
    silos: Sequence[Silo | Institution]
    if settings.simulation is not None:
        silos, rest = simulate(settings.simulation, settings.seed, source)
    else:
        silos = make_silos(settings, source)
    pool = None if settings.pool is None else make_pool(settings.pool, settings.seed, rest, source, "pool")
    return silos, pool
