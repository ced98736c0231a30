"""The local engine: all silos on this machine."""

from collections.abc import Sequence

from cosilo.coordination.run_loop import PlannedRun, coordinate_run
from cosilo.engines.local.in_process import InProcess
from cosilo.engines.local.workers import Workers
from cosilo.errors import ConfigError


class LocalEngine:
    """Runs all silos on this machine.

    Parameters
    ----------
    workers : int, default 0
        The number of processes that share the silos; 0: this process does everything. Results are
        the same for any number.

    Examples
    --------
    >>> LocalEngine(workers=2)
    LocalEngine(workers=2)
    """

    def __init__(self, workers: int = 0) -> None:
        if workers < 0:
            raise ConfigError(f"workers = {workers}; wants 0 or more")
        self.workers = workers

    def __repr__(self) -> str:
        return f"LocalEngine(workers={self.workers})"

    def ready(self, silos: Sequence[str], from_recipe: bool) -> None:
        """Nothing to check: it can always run."""

    def about(self) -> dict[str, str | int]:
        """How many workers there are."""
        return {"workers": self.workers}

    def execute(self, planned: PlannedRun) -> None:
        """Do the rest of a run on this machine."""
        carrier = Workers(planned.silos, self.workers) if self.workers else InProcess(planned.silos)
        coordinate_run(planned, carrier)
