"""Silos on the nodes of a Ray cluster that one owner has.

`host` is what runs on the nodes: an actor that owns some silos for the whole run. `hosts` says where they
are, and finds places; `carrier` takes asks there; `cluster` connects.
"""

import importlib.util

from cosilo.errors import ConfigError, with_extra


def need_ray() -> None:
    """Raise unless Ray is installed, which is an extra."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"this needs Ray: {with_extra('ray')}")
