"""Between organisations: a coordinator and silos in processes of their own, on NVIDIA FLARE.

FLARE brings connections and processes; what travels are cosilo's messages. `certificates` has keys and who
signs them, `admission` is how a silo gets in and out, `kits` makes what is started, `processes` starts it
(`coordinator_process`, `silo_process`), `reach` says who can be reached, `job` is what a run looks like to
FLARE, `site` is the silo's end of it, `server` the coordinator's, `session` and `runs` are who asks for a run
and follows it.
"""

import importlib.util

from cosilo.errors import ConfigError, with_extra


def need_flare() -> None:
    """Raise unless FLARE is installed, which is an extra."""
    if importlib.util.find_spec("nvflare") is None:
        raise ConfigError(f"this needs NVIDIA FLARE: {with_extra('flare')}")
