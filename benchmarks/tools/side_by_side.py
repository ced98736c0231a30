"""Work on all cores, with networks that cannot be pickled: what it needs is there when processes fork."""

import os
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from typing import Any

from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread


def side_by_side(work: Callable[[Any], Any], jobs: Iterable[Any]) -> list[Any]:
    """What comes of each job, in their order; one process a core, one thread a process."""
    global _work
    _work = work
    with get_context("fork").Pool(os.cpu_count()) as workers:
        return workers.map(_at_work, jobs, chunksize=1)


def _at_work(job: Any) -> Any:
    OneThread()
    keep_freed_memory()
    return _work(job)


_work: Callable[[Any], Any]
