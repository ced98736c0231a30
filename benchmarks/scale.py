"""What more of everything costs: `python benchmarks/scale.py silos|pool|classes|parameters|votes`.

Each part grows one thing by factors of ten, in a process of its own each time, and stops before a step that
would take it beyond five minutes: what was cut is said. Seconds are those of all processors together (a
machine with two takes half of them, if it has nothing else to do), megabytes the peak of all processes. The
exponent is k of a + b · sizeᵏ, where a is what starting takes: 1 is in proportion, 2 is the square.
`silos 10000 alone` is one size, however long it takes.

silos: whole CoFED runs from start to report, GaussianNB, 60 instances each, a pool of 1,000. pool: four such
silos, the pool in a mapped file. classes: the election of 20 silos with half of the classes each. parameters:
two rounds of FedAvg between two silos. votes: an election of 1,000 silos on up to a million instances, and
the coordinator's own memory over time.

`python benchmarks/scale.py draw docs/scale.txt docs/scale.svg` draws the curves of what was printed.
"""

import math
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from tools.process_tree import measured

BUDGET = 280.0
SIZES: dict[str, list[int]] = {
    "silos": [10, 100, 1_000, 10_000],
    "pool": [10**3, 10**4, 10**5, 10**6, 10**7],
    "classes": [10, 100, 1_000, 10_000],
    "parameters": [10**4, 10**5, 10**6, 10**7, 10**8],
    "votes": [10**4, 10**5, 10**6],
}
FEATURES, INSTANCES, CLASSES = 16, 60, 10


def blobs(count: int, rows: int, seed: int = 0) -> tuple[list[Any], Any]:
    """Silos with four of ten classes each, and a pool of all ten."""
    from sklearn.naive_bayes import GaussianNB

    from cosilo import Silo

    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLASSES, FEATURES))
    silos = []
    for place in range(count):
        own = rng.choice(CLASSES, 4, replace=False)
        y = own[np.arange(INSTANCES) % 4]
        X = (centres[y] + rng.normal(size=(INSTANCES, FEATURES))).astype(np.float32)
        silos.append(Silo(f"silo-{place:06d}", X, [f"class {code}" for code in y], GaussianNB()))
    pool = (centres[rng.integers(0, CLASSES, rows)] + rng.normal(size=(rows, FEATURES))).astype(np.float32)
    return silos, pool


def silos(size: int, pipe: Connection) -> None:
    from cosilo import Federation, LocalEngine

    with tempfile.TemporaryDirectory() as folder:
        made, pool = blobs(size, 1_000)
        run = Federation(made, pool, engine=LocalEngine(workers=2)).run(Path(folder) / "run", observers=[])
        page = Path(run.report())
        tell(pipe, report_megabytes=page.stat().st_size / 1e6)


def pool(size: int, pipe: Connection) -> None:
    from cosilo import Federation
    from cosilo.data.own_files import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.npy"
        rng = np.random.default_rng(1)
        array = np.lib.format.open_memmap(path, "w+", np.float32, (size, FEATURES))
        for start in range(0, size, 10**5):
            array[start : start + 10**5] = rng.normal(size=(min(10**5, size - start), FEATURES))
        del array
        made, _ = blobs(4, 1)
        Federation(made, read(path).X).run(Path(folder) / "run", observers=[])
        tell(pipe)


def classes(size: int, pipe: Connection) -> None:
    from cosilo.methods.cofed.elections import Ballots, ByShares

    rng = np.random.default_rng(2)
    truth = rng.integers(0, size, 2_000)
    tasks = [np.sort(rng.choice(size, size // 2, replace=False)).tolist() for _ in range(20)]
    votes = [
        np.where(np.isin(truth, task), truth, rng.choice(task, 2_000)).astype(np.int16) for task in tasks
    ]
    ballots = Ballots([f"silo-{place}" for place in range(20)], votes, tasks, size)
    credible = ballots.credibility()
    outcome = ByShares(ballots.read(credible), credible.weight.tolist(), 0.3, soft=True)
    for task in tasks:
        outcome.tallies(task)
    tell(pipe)


def parameters(size: int, pipe: Connection) -> None:
    import torch

    from cosilo import FedAvg, Federation, Network, Silo, Training

    inputs = 64
    width = max(1, size // (inputs + 3))
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(64, inputs)).astype(np.float32), np.arange(64) % 2
    module = torch.nn.Sequential(torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
    learner = Network(module, Training(epochs=1, batch=64))
    made = [Silo(name, X, y, learner, shares=["weights", "size"], test=None) for name in ("one", "two")]
    with tempfile.TemporaryDirectory() as folder:
        Federation(made, method=FedAvg(rounds=2)).run(Path(folder) / "run", observers=[])
        tell(pipe)


class Told(Mapping[str, Any]):
    """Votes that are made when they are read, as replies are read from the journal one at a time."""

    def __init__(self, silos: int, length: int) -> None:
        self._names = {f"silo-{place:04d}": place for place in range(silos)}
        self._length = length
        self._truth = np.random.default_rng(silos).integers(0, CLASSES, length, dtype=np.int8)

    def __getitem__(self, name: str) -> Any:
        from cosilo.protocol.message import Fields

        rng = np.random.default_rng(self._names[name])
        wrong = rng.integers(0, CLASSES, self._length, dtype=np.int8)
        return Fields({"votes": np.where(rng.random(self._length, np.float32) < 0.7, self._truth, wrong)})

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def votes(size: int, pipe: Connection) -> None:
    from cosilo.methods.cofed.elections import Ballots, ByShares
    from cosilo.methods.cofed.messages import UpdateMessages
    from cosilo.protocol.task import Task

    told, task = Told(1_000, size), Task(tuple(f"class {code}" for code in range(CLASSES)))
    before, series, over, began = own_memory(), [], threading.Event(), time.monotonic()

    def watch() -> None:
        while not over.wait(0.2):
            series.append((time.monotonic() - began, own_memory() - before))

    watcher = threading.Thread(target=watch)
    watcher.start()
    ballots = Ballots.of(told, dict.fromkeys(told, task), task, told)
    counted = time.monotonic() - began
    credible = ballots.credibility()
    weighed = time.monotonic() - began
    outcome = ByShares(ballots.read(credible), credible.weight.tolist(), 0.3, soft=True)
    elected = time.monotonic() - began
    messages = UpdateMessages(outcome, {})
    for place in range(10):
        messages.for_silo(list(range(CLASSES)), place)
    over.set()
    watcher.join()
    phases = {"read": (0.0, counted), "credibility": (counted, weighed), "election": (weighed, elected)}
    found = {
        name: max((mb for at, mb in series if start <= at <= end), default=0.0)
        for name, (start, end) in {**phases, "messages": (elected, math.inf)}.items()
    }
    tell(pipe, over_time=found)


def own_memory() -> float:
    """Megabytes that are this process's own, without files that it has mapped."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def tell(pipe: Connection, **more: Any) -> None:
    """Say how long all processes took, which have ended by now, and when: files are removed after that."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    pipe.send({"seconds": seconds, "done": time.monotonic(), **more})


def exponent(points: list[tuple[int, float]]) -> float:
    """k of a + b · sizeᵏ, fitted to the logarithms of all seconds.

    >>> round(exponent([(size, 3 + 2e-5 * size**1.2) for size in (10**3, 10**4, 10**5, 10**6)]), 3)
    1.2
    """
    from scipy.optimize import least_squares

    sizes, seconds = (np.log(column) for column in zip(*points, strict=True))

    def missed(fit: Any) -> Any:
        return np.logaddexp(fit[0], fit[1] + fit[2] * sizes) - seconds

    return float(least_squares(missed, [seconds[0], seconds[-1] - sizes[-1], 1.0]).x[2])


def grow(part: str, most: int | None) -> None:
    work, began = globals()[part], time.monotonic()
    points: list[tuple[int, float]] = []
    start_up = 0.0
    for size in SIZES[part]:
        if most is not None and size > most:
            print(f"{part} {size:,}: left out")
            continue
        started = time.monotonic()
        found = measured(work, size)
        wall = found["done"] - started
        points.append((size, found["seconds"]))
        seconds, megabytes = found["seconds"], found["megabytes"]
        print(f"{part} {size:,}: {seconds:.1f} s of processors, {wall:.1f} s, {megabytes:.0f} MB", flush=True)
        print(f"figure scale_{part}_{size}_seconds {seconds:.2f}")
        print(f"figure scale_{part}_{size}_megabytes {megabytes:.0f}", flush=True)
        if "report_megabytes" in found:
            print(f"figure scale_{part}_{size}_report_megabytes {found['report_megabytes']:.2f}")
        for phase, more in found.get("over_time", {}).items():
            print(f"figure scale_{part}_{size}_{phase}_own_megabytes {more:.0f}")
        start_up = start_up or wall
        ahead = start_up + 12 * max(wall - start_up, 0.0)  # ten times as much, and a little
        if size != SIZES[part][-1] and time.monotonic() - began + ahead > BUDGET:
            print(f"{part}: what is larger is cut, it would take more than five minutes here")
            break
    if len(points) > 2:
        print(f"figure scale_{part}_exponent {exponent(points):.2f}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.argv[1:2] == ["draw"]:
        from tools.scale_picture import draw  # matplotlib would count as memory of what is measured

        printed, picture = map(Path, sys.argv[2:])
        draw(printed.read_text("utf-8"), picture)
        sys.exit()
    if len(sys.argv) < 2 or sys.argv[1] not in SIZES:
        sys.exit(f"wants one of {', '.join(SIZES)}, and perhaps the largest size")
    most = int(float(sys.argv[2])) if len(sys.argv) > 2 else None
    if most is not None and sys.argv[3:] == ["alone"]:
        SIZES[sys.argv[1]] = [most]
    grow(sys.argv[1], most)
