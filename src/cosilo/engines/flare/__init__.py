"""Between organisations: a coordinator and silos in processes of their own, on NVIDIA FLARE.

FLARE brings certificates, connections and processes; what travels are cosilo's messages. `kits` makes the
start-up kits, `processes` starts what is in them (`coordinator_process`, `silo_process`), `reach` says who
can be reached, `job` is what a run looks like to FLARE, `site` is the silo's end of it, `server` the
coordinator's, `session` and `runs` are who asks for a run and follows it.
"""

import importlib.util

from cosilo.errors import ConfigError


def need_flare() -> None:
    """Raise unless FLARE is installed, which is an extra."""
    if importlib.util.find_spec("nvflare") is None:
        raise ConfigError("this needs NVIDIA FLARE: pip install 'cosilo[flare]'")
