"""Several pieces of work at a time, as tasks of a Ray cluster on the node of this process."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

Job = TypeVar("Job")


def tasks_here(
    work: Callable[..., str | None], jobs: Mapping[Job, tuple[object, ...]], at_once: int
) -> Iterator[tuple[Job, str | None]]:
    """Each job when it is done, with what `work(*arguments)` returned; a few at a time."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    data = os.environ.get("COSILO_DATA")
    place = str(Path(data).resolve()) if data else None
    task = ray.remote(_work).options(num_cpus=0, max_retries=0, scheduling_strategy=here)
    waiting = list(jobs.items())
    running: dict[Any, Job] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            job, arguments = waiting.pop(0)
            running[task.remote(work, place, arguments)] = job
        done, _ = ray.wait(list(running))
        for ref in done:
            try:
                text = ray.get(ref)
            except RayError as error:  # the process died, or something there is no line for
                text = [line.strip() for line in str(error).splitlines() if line.strip()][-1]
            yield running.pop(ref), text


def _work(work: Callable[..., str | None], data: str | None, arguments: tuple[Any, ...]) -> str | None:
    if data is not None:
        os.environ["COSILO_DATA"] = data
    return work(*arguments)
