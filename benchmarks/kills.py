"""Worker processes that are killed: `python benchmarks/kills.py`, some minutes.

CoFED with two workers and four silos, until in twenty-five runs one worker was killed by SIGKILL, each time
at another moment, spread over the time that a run takes. A run counts as identical if its result and all
that left its silos are those of a run that nothing disturbed. A run that ends before its kill does not count.
"""

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Run, Silo
from cosilo.engines.local.engine import LocalEngine

KILLS = 25
LEARNERS = [
    RandomForestClassifier(20, random_state=0),
    DecisionTreeClassifier(random_state=0),
    GaussianNB(),
    KNeighborsClassifier(),
]


def run(folder: Path) -> tuple[Run, float]:
    X, y = load_digits(return_X_y=True)
    parts = np.random.default_rng(0).permutation(len(X)).reshape(-1, 599)[:, :500]
    silos = [
        Silo(f"silo-{place}", X[part], y[part], learner)
        for place, (part, learner) in enumerate(
            zip(np.array_split(parts.ravel(), 5)[1:], LEARNERS, strict=True)
        )
    ]
    pool = X[np.array_split(parts.ravel(), 5)[0]]
    federation = Federation(silos, pool, CoFED(rounds=4), seed=1, engine=LocalEngine(workers=2))
    began = time.monotonic()
    return federation.run(folder), time.monotonic() - began


def outcome(done: Run) -> dict[str, Any]:
    left = {
        name: [
            (line["ask"], line["step"], line["digest"]) for line in done.audit(name) if not line.get("again")
        ]
        for name in done.about["silos"]
    }
    return {"result": done.result, "left": left}


def kill_a_worker(after: float, killed: list[int]) -> None:
    """Kill a worker once, when the workers are there and some seconds have passed."""
    while not (workers := multiprocessing.active_children()):
        time.sleep(0.001)
    time.sleep(after)
    for worker in workers[:1]:
        if worker.is_alive() and worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)


def main() -> None:
    identical = runs = 0
    killed: list[int] = []
    with tempfile.TemporaryDirectory() as place:
        run(Path(place) / "first")  # which imports what learners need
        done, seconds = run(Path(place) / "undisturbed")
        expected = outcome(done)
        while len(killed) < KILLS and runs < 3 * KILLS:
            before = len(killed)
            moment = 0.8 * seconds * before / KILLS
            thread = threading.Thread(target=kill_a_worker, args=(moment, killed))
            thread.start()
            again, _ = run(Path(place) / f"run-{runs}")
            thread.join()
            runs += 1
            identical += len(killed) > before and outcome(again) == expected
    print(f"figure worker_kills {len(killed)}")
    print(f"figure identical {identical}")


if __name__ == "__main__":
    main()
