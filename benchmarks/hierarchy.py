"""What many clients cost: `python benchmarks/hierarchy.py`, under five minutes; needs COSILO_DATA.

FashionMNIST, LeNet-5, batch 32, SGD 0.1, FedAvg in three layers, two workers. The same 24,000 images are
dealt to 50, 200 and 1,000 clients of 5 institutions, which start and do one round of one epoch in which each
institution averages its clients once. Then 20 institutions with 500 clients of 6 images each do the same.

Seconds are from the first silo that is made to the new global model, with everything on disk; those of steps
are told too. Memory is the largest sum of the proportional set sizes (PSS) of the process tree, a new one for
each case.
"""

import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cosilo import FedAvg, Federation, Institution, Silo, data
from cosilo.engines.local.engine import LocalEngine
from cosilo.protocol.message import State
from tools.process_tree import measured

if TYPE_CHECKING:
    from cosilo.coordination.coordinator import Silos

#: Institutions, clients of each, images of each client.
CASES = {"50": (5, 10, 480), "200": (5, 40, 120), "1000": (5, 200, 24), "20x500": (20, 500, 6)}


class OneRound(FedAvg):
    """FedAvg that stops at its first global model, and does not hand it to all clients to judge."""

    name: ClassVar[str] = "one_round"
    local: bool = False

    def coordinate(self, silos: "Silos") -> None:
        """Start, and one round."""
        state = State({**self.start(silos), "round": 1})
        replies = self.train_all(silos, state)
        silos.mark(round=1, weights=self.merged(silos, replies, state))


def one_round(institutions: int, clients: int, size: int, out: Connection) -> None:
    """Make the silos and run them."""
    from cosilo.learners import Network, Training, zoo

    train = data.load("fashion_mnist", "train")
    names, images = np.array(train.classes), np.asarray(train.X)
    training = Training(optimiser="sgd", momentum=0, lr=0.1, batch=32, schedule="constant", epochs=1)
    started, shares = time.perf_counter(), ["weights", "size", "metrics"]
    chosen = np.random.default_rng(0).permutation(len(train))[: institutions * clients * size]
    parts = np.split(chosen, institutions * clients)

    def client(number: int) -> Silo:
        X, y = images[parts[number]], names[train.y[parts[number]]]
        learner = Network(zoo.lenet5, training)
        return Silo(f"client-{number:05d}", X, y, learner, test=None, task=train.classes, shares=shares)

    silos = [
        Institution(
            f"institution-{place + 1:02d}",
            [client(number) for number in range(place * clients, (place + 1) * clients)],
            shares=shares,
        )
        for place in range(institutions)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = Federation(silos, method=OneRound(), engine=LocalEngine(2)).run(Path(folder) / "run")
        found = {"seconds": time.perf_counter() - started}
        asks = {ask["step"]: ask for ask in run.asks()}
        found |= {step: asks[step]["seconds"] for step in ("hello", "begin", "train")}
        if run.result["failures"] or len(asks["train"]["arrivals"]) != institutions:
            sys.exit(f"not everyone took part: {run.result['failures']}")
        out.send(found)


def main() -> None:
    for case in sys.argv[1:] or CASES:
        found = measured(one_round, *CASES[case])
        told = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
        print(f"{case} clients ({' × '.join(map(str, CASES[case]))} images): {told}", flush=True)
        for name in ("seconds", "megabytes"):
            print(f"figure hierarchy_{case}_{name} {found[name]:.0f}", flush=True)


if __name__ == "__main__":
    main()
