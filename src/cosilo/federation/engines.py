"""Engines by name."""

from importlib import import_module

from cosilo.coordination.run_loop import Engine
from cosilo.errors import ConfigError
from cosilo.text import guess, listing

#: Where each is; imported when it is asked for, because it stands above this room, or is slow.
ENGINES = {
    "local": ("cosilo.engines.local.engine", "LocalEngine"),
    "flare": ("cosilo.engines.flare.engine", "FlareSimulator"),
    "ray": ("cosilo.engines.ray.engine", "RayEngine"),
}


def engine_named(name: str) -> Engine:
    """An engine by its name.

    >>> engine_named("local")
    LocalEngine(workers=0)
    """
    if name not in ENGINES:
        hint = guess(name, list(ENGINES))
        raise ConfigError(f"engine {name!r}: there is no such engine{hint}; wants {listing(ENGINES)}")
    module, attribute = ENGINES[name]
    made: Engine = getattr(import_module(module), attribute)()
    return made
