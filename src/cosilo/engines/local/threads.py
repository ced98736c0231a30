"""One thread per silo step: results do not depend on the number of cores, and workers do not compete."""

import os
import sys
from typing import Any

from threadpoolctl import threadpool_limits

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class OneThread:
    """Caps BLAS, OpenMP and torch at one thread from `__init__` until `release`.

    The same sums in another order give other last bits: with one thread a run is the same in process and
    with any number of workers. More speed comes from more workers.
    """

    def __init__(self) -> None:
        self._limits: Any = threadpool_limits(limits=1)
        torch = sys.modules.get("torch")
        self._torch_threads: int | None = torch.get_num_threads() if torch else None
        if torch:
            torch.set_num_threads(1)
        # For libraries that are loaded later, and processes that a learner starts.
        self._before = {name: os.environ.get(name) for name in _VARIABLES}
        os.environ.update(dict.fromkeys(_VARIABLES, "1"))

    def release(self) -> None:
        """Allow the former number of threads again."""
        self._limits.restore_original_limits()
        if self._torch_threads is not None:
            sys.modules["torch"].set_num_threads(self._torch_threads)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
