"""How fast FedAvg trains: `python benchmarks/fedavg.py`, under five minutes; needs COSILO_DATA.

FashionMNIST, batch 32, SGD 0.1, one local epoch, five rounds: LeNet-5 with 40 silos × 600 images, and the MLP
with 100 × 240. The yardstick is a bare torch loop with the same arithmetic in two single-threaded processes
that own half of the silos each, and keep nothing on disk. Both run in turns, three times, each time in a new
process tree; a steady round is the median of rounds 2 to 5, the ratio is the median of three.

Start-up is the time from the start of the process until silos are asked to train, less that of a process that
only imports torch. Memory is the largest sum of the tree's proportional set sizes (PSS).
"""

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.process_tree import measured

REPEATS, ROUNDS, RATE, BATCH = 3, 5, 0.1, 32
CASES = {"lenet": ("lenet5", 40, 600), "mlp": ("mlp", 100, 240)}


def parts(silos: int, size: int) -> list[NDArray[np.int64]]:
    """Which images each silo has."""
    chosen = np.random.default_rng(0).permutation(60_000)[: silos * size]
    return np.split(chosen, silos)


def accuracy(network: str, weights: dict[str, Any], classes: Sequence[str]) -> float:
    """Of the global model, whose outputs are these classes, on the 10,000 test images."""
    import torch

    from cosilo import data
    from cosilo.learners import zoo

    test = data.load("fashion_mnist", "test")
    module = zoo.find(network)((1, 28, 28), 10).eval()
    module.load_state_dict({name: torch.tensor(np.asarray(array)) for name, array in weights.items()})
    x = torch.from_numpy(np.array(test.X)).float().div(127.5).sub(1).unsqueeze(1)
    with torch.inference_mode():
        codes = torch.cat([module(part).argmax(1) for part in torch.split(x, 1000)]).numpy()
    return float((np.array(classes)[codes] == np.array(test.classes)[test.y]).mean())


# ---------------------------------------------------------------------- ours


def ours(network: str, silos: int, size: int, started: float, out: Connection, timed: bool = False) -> None:
    """One run with two workers; what it took is read from the run's own events."""
    from cosilo import FedAvg, Federation, Silo, data
    from cosilo.data.labels import in_order
    from cosilo.engines.local.engine import LocalEngine
    from cosilo.learners import Network, Training, zoo

    journalling = _clocked() if timed else None
    train = data.load("fashion_mnist", "train")
    training = Training(optimiser="sgd", momentum=0, lr=RATE, batch=BATCH, schedule="constant", epochs=1)
    names = np.array(train.classes)
    members = [
        Silo(
            f"silo-{place:03d}",
            train.X[part],
            names[train.y[part]],
            Network(zoo.find(network), training),
            test=None,
            task=train.classes,
            shares=["weights", "size"],
        )
        for place, part in enumerate(parts(silos, size))
    ]
    method = FedAvg(rounds=ROUNDS, evaluate_every=ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        run = Federation(members, method=method, engine=LocalEngine(2)).run(Path(folder) / "run")
        asks = {e["ask"]: (e["step"], e["at"]) for e in run.events() if e["event"] == "ask"}
        weights = run.global_weights()
    trains = [moment for step, moment in asks.values() if step in ("train", "judge")]
    ready = next(moment for step, moment in asks.values() if step == "alone")
    found = {"rounds": list(np.diff(trains)), "start": ready - started}
    if journalling is not None:
        found["journalling"] = journalling() / (asks[max(asks)][1] - ready)
    found["accuracy"] = accuracy(network, weights, in_order(train.classes))
    out.send(found)


def _clocked() -> Callable[[], float]:
    """Put a clock around all that keeps a run on disk; it counts in every process of the tree."""
    from cosilo.runs.journal import Entry, Journal
    from cosilo.runs.silo_record import SiloRecord

    coordinator, workers = (multiprocessing.get_context("fork").Value("d", 0.0) for _ in range(2))
    here = os.getpid()

    def clock(kind: type, name: str) -> None:
        function = getattr(kind, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                total = coordinator if os.getpid() == here else workers
                with total.get_lock():
                    total.value += time.perf_counter() - start

        setattr(kind, name, timed)

    for kind, functions in (
        (Entry, ["keep"]),
        (Journal, ["entry", "close", "mark"]),
        (SiloRecord, ["reply", "complete", "audit"]),
    ):
        for name in functions:
            clock(kind, name)
    # The two workers keep their records at the same time.
    return lambda: float(coordinator.value + workers.value / 2)


# ---------------------------------------------------------------------- the yardstick


def yardstick(network: str, silos: int, size: int, started: float, out: Connection) -> None:
    """The bare loop."""
    import torch

    from cosilo import data
    from cosilo.learners import zoo

    train = data.load("fashion_mnist", "train")
    context = multiprocessing.get_context("fork")
    pipes = []
    for half in (0, 1):
        mine, theirs = context.Pipe()
        owned = [(np.array(train.X[part]), train.y[part]) for part in parts(silos, size)[half::2]]
        context.Process(target=_bare_worker, args=(theirs, network, owned), daemon=True).start()
        pipes.append(mine)
    torch.manual_seed(0)
    weights = {k: v.numpy() for k, v in zoo.find(network)((1, 28, 28), 10).state_dict().items()}
    found: dict[str, Any] = {"rounds": [], "start": time.time() - started}
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for pipe in pipes:
            pipe.send(weights)
        sums = [pipe.recv() for pipe in pipes]
        weights = {name: (sums[0][name] + sums[1][name]) / silos for name in weights}
        found["rounds"].append(time.perf_counter() - begin)
    for pipe in pipes:
        pipe.send(None)
    found["accuracy"] = accuracy(network, weights, train.classes)
    out.send(found)


def _bare_worker(pipe: Connection, network: str, owned: list[tuple[Any, Any]]) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    from cosilo.learners import zoo

    torch.set_num_threads(1)
    sets = [
        (torch.from_numpy(x).float().div(127.5).sub(1).unsqueeze(1), torch.from_numpy(y)) for x, y in owned
    ]
    module = zoo.find(network)((1, 28, 28), 10)
    while (weights := pipe.recv()) is not None:
        total = {name: np.zeros_like(array) for name, array in weights.items()}
        for x, y in sets:
            module.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
            optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
            for index in torch.split(torch.randperm(len(x)), BATCH):
                loss = cross_entropy(module(x[index]), y[index])
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            for name, tensor in module.state_dict().items():
                total[name] += tensor.numpy()
        pipe.send(total)


# ---------------------------------------------------------------------- measuring


def importing_torch() -> float:
    """Seconds for a process that imports torch and ends."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - start


def timed_round(kind: Callable[..., None], case: str, **options: Any) -> dict[str, Any]:
    """Run in a new process tree; adds its peak memory, and the median round."""
    found = measured(kind, *CASES[case], time.time(), **options)
    return {**found, "round": statistics.median(found["rounds"][1:])}


def main() -> None:
    for case in sys.argv[1:] or CASES:
        pairs, imports = [], []
        for _ in range(REPEATS):
            imports.append(importing_torch())
            pairs.append((timed_round(yardstick, case), timed_round(ours, case)))
            base, mine = pairs[-1]
            print(
                f"{case}: yardstick {base['round']:.2f} s a round, accuracy {base['accuracy']:.3f}; "
                f"cosilo {mine['round']:.2f} s, accuracy {mine['accuracy']:.3f}, "
                f"start {mine['start'] - imports[-1]:.1f} s beyond torch, {mine['megabytes']:.0f} MB",
                flush=True,
            )
        ratio = statistics.median(mine["round"] / base["round"] for base, mine in pairs)
        clocked = timed_round(ours, case, timed=True)
        starts = [mine["start"] - torch for (_, mine), torch in zip(pairs, imports, strict=True)]
        figures = {
            "ratio": ratio,
            "round_seconds": statistics.median(mine["round"] for _, mine in pairs),
            "startup_seconds": statistics.median(starts),
            "peak_megabytes": max(mine["megabytes"] for _, mine in pairs),
            "accuracy": statistics.mean(mine["accuracy"] for _, mine in pairs),
            "yardstick_accuracy": statistics.mean(base["accuracy"] for base, _ in pairs),
            "journalling_share": clocked["journalling"],
        }
        print(json.dumps({"journalling run": {"round": round(clocked["round"], 3)}}))
        for name, value in figures.items():
            print(f"figure {case}_{name} {value:.3g}", flush=True)


if __name__ == "__main__":
    main()
