"""How fast FedAvg trains: `python benchmarks/fedavg.py`, under five minutes; needs COSILO_DATA.

FashionMNIST, batch 32, SGD 0.1, one local epoch, five rounds: LeNet-5 with 40 silos × 600 images, and the MLP
with 100 × 240. The yardstick is a bare torch loop with the same arithmetic in two single-threaded processes
that own half of the silos each, and keep nothing on disk. Both run in turns, three times, each time in a new
process tree; a steady round is the median of rounds 2 to 5, the ratio is the median of three. `ratio` is that
of the wall clock, `processor_ratio` that of the processor seconds of both trees: others on the machine change
the first and hardly the second.

Start-up is the time from the start of the process until silos are asked to train, less that of a process that
only imports torch, by both clocks. `journalling_share` is the share of all processor seconds, from the first
training to the last ask, that is spent to keep the run on disk; `steady_journalling_share` is that of rounds
2 to 5, without the models that are kept before the first and after the last. Memory is the largest sum of the
tree's proportional set sizes (PSS).

`training_floor` is the `processor_ratio` of the bare loop with cosilo's training in place of torch's: what
would be left if asks, checks, hashes, records and the journal took no time.
"""

import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tools.process_tree import measured, processor_seconds

if TYPE_CHECKING:
    from torch import nn

    from cosilo.learners import Training

    #: Images and codes of each silo of a process.
    Owned: TypeAlias = list[tuple[NDArray[Any], NDArray[Any]]]
    #: One round of a silo from the global weights.
    TrainFrom: TypeAlias = Callable[[dict[str, Any]], nn.Module]
    MakeTraining: TypeAlias = Callable[[str, Owned], list[TrainFrom]]

REPEATS, ROUNDS, RATE, BATCH = 3, 5, 0.1, 32
CASES = {"lenet": ("lenet5", 40, 600), "mlp": ("mlp", 100, 240)}


def parts(silos: int, size: int) -> list[NDArray[np.int64]]:
    """Which images each silo has."""
    chosen = np.random.default_rng(0).permutation(60_000)[: silos * size]
    return np.split(chosen, silos)


def training() -> "Training":
    """That of the yardstick, as cosilo's settings."""
    from cosilo.learners import Training

    return Training(optimiser="sgd", momentum=0, lr=RATE, batch=BATCH, schedule="constant", epochs=1)


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


def ours(
    network: str,
    silos: int,
    size: int,
    started: float,
    out: Connection,
    timed: bool = False,
    local: bool = True,
    seed: int = 0,
) -> None:
    """One run with two workers, `local` training first; what it took is read from the run's own events."""
    from cosilo import FedAvg, Federation, Silo, data
    from cosilo.data.labels import in_order
    from cosilo.engines.local.engine import LocalEngine
    from cosilo.learners import Network, zoo
    from cosilo.protocol.events import Event, Happening

    journalling = _clocked() if timed else None
    train = data.load("fashion_mnist", "train")
    names = np.array(train.classes)
    members = [
        Silo(
            f"silo-{place:03d}",
            train.X[part],
            names[train.y[part]],
            Network(zoo.find(network), training()),
            test=None,
            task=train.classes,
            shares=["weights", "size"],
        )
        for place, part in enumerate(parts(silos, size))
    ]
    method = FedAvg(rounds=ROUNDS, evaluate_every=ROUNDS, local=local)
    asks: list[tuple[str, float, float, float]] = []

    def watch(event: Event) -> None:
        if event.what is Happening.ASK:
            kept = 0.0 if journalling is None else journalling()
            asks.append((str(event.facts["step"]), time.time(), processor_seconds(os.getpid()), kept))

    with tempfile.TemporaryDirectory() as folder:
        federation = Federation(members, method=method, seed=seed, engine=LocalEngine(2))
        run = federation.run(Path(folder) / "run", observers=[watch])
        weights = run.global_weights()
    trains = np.array([moment[1:] for moment in asks if moment[0] in ("train", "judge")])
    _, ready, spent, _ = next(moment for moment in asks if moment[0] in ("alone", "begin"))
    found = {
        "marks": list(trains[:, 0]),
        "processor": list(np.diff(trains[:, 1])),
        "start": ready - started,
        "start_processor": spent,
    }
    if journalling is not None:
        found["journalling"] = journalling() / (asks[-1][2] - spent)
        found["steady_journalling"] = (trains[-1, 2] - trains[1, 2]) / (trains[-1, 1] - trains[1, 1])
    found["accuracy"] = accuracy(network, weights, in_order(train.classes))
    out.send(found)


def _clocked() -> Callable[[], float]:
    """Put a clock around all that keeps a run on disk; it counts in every process of the tree."""
    from cosilo.runs.audit import AuditLog
    from cosilo.runs.journal import Entry, Journal
    from cosilo.runs.silo_record import SiloRecord

    total = multiprocessing.get_context("fork").Value("d", 0.0)

    def clock(kind: type, name: str) -> None:
        function = getattr(kind, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                with total.get_lock():
                    total.value += time.thread_time() - start

        setattr(kind, name, timed)

    for kind, functions in (
        (Entry, ["keep"]),
        (Journal, ["entry", "close", "mark"]),
        (SiloRecord, ["reply", "complete", "check_newest"]),
        (AuditLog, ["came", "left"]),
    ):
        for name in functions:
            clock(kind, name)
    return lambda: float(total.value)


# ---------------------------------------------------------------------- the yardstick


def yardstick(
    network: str,
    silos: int,
    size: int,
    started: float,
    out: Connection,
    seed: int = 0,
    by: "MakeTraining | None" = None,
) -> None:
    """The bare loop; `by`: what silos train by, if not by torch alone."""
    import torch

    from cosilo import data
    from cosilo.learners import zoo

    train = data.load("fashion_mnist", "train")
    context = multiprocessing.get_context("fork")
    pipes = []
    for half in (0, 1):
        mine, theirs = context.Pipe()
        owned = [(np.array(train.X[part]), train.y[part]) for part in parts(silos, size)[half::2]]
        arguments = (theirs, network, owned, by or _by_torch)
        context.Process(target=_bare_worker, args=arguments, daemon=True).start()
        pipes.append(mine)
    torch.manual_seed(seed)
    weights = {k: v.numpy() for k, v in zoo.find(network)((1, 28, 28), 10).state_dict().items()}
    begin = time.time()
    found: dict[str, Any] = {"marks": [begin], "processor": [], "start": begin - started}
    for _ in range(ROUNDS):
        spent = processor_seconds(os.getpid())
        for pipe in pipes:
            pipe.send(weights)
        sums = [pipe.recv() for pipe in pipes]
        weights = {name: (sums[0][name] + sums[1][name]) / silos for name in weights}
        found["marks"].append(time.time())
        found["processor"].append(processor_seconds(os.getpid()) - spent)
    for pipe in pipes:
        pipe.send(None)
    found["accuracy"] = accuracy(network, weights, train.classes)
    out.send(found)


def floor(network: str, silos: int, size: int, started: float, out: Connection) -> None:
    """The bare loop with cosilo's training."""
    yardstick(network, silos, size, started, out, by=_by_cosilo)


def _bare_worker(pipe: Connection, network: str, owned: "Owned", make: "MakeTraining") -> None:
    import torch

    torch.set_num_threads(1)
    trainings = make(network, owned)
    while (weights := pipe.recv()) is not None:
        total = {name: np.zeros_like(array) for name, array in weights.items()}
        for train in trainings:
            for name, tensor in train(weights).state_dict().items():
                total[name] += tensor.numpy()
        pipe.send(total)


def _by_torch(network: str, owned: "Owned") -> "list[TrainFrom]":
    import torch
    from torch.nn.functional import cross_entropy

    from cosilo.learners import zoo

    module = zoo.find(network)((1, 28, 28), 10)

    def train(x: torch.Tensor, y: torch.Tensor, weights: dict[str, Any]) -> torch.nn.Module:
        module.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
        for index in torch.split(torch.randperm(len(x)), BATCH):
            loss = cross_entropy(module(x[index]), y[index])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return module

    return [
        partial(train, torch.from_numpy(x).float().div(127.5).sub(1).unsqueeze(1), torch.from_numpy(y))
        for x, y in owned
    ]


def _by_cosilo(network: str, owned: "Owned") -> "list[TrainFrom]":
    import torch

    from cosilo.engines.local.memory import keep_freed_memory
    from cosilo.learners import Network, zoo

    keep_freed_memory()  # as the workers of a run do

    def train(
        x: NDArray[Any], y: NDArray[Any], mine: Network, seeds: Iterator[int], weights: dict[str, Any]
    ) -> torch.nn.Module:
        mine.set_weights(weights)
        mine.train(x, y, seed=next(seeds), training=mine.training)
        return mine.fitted()

    trainings: list[TrainFrom] = []
    for x, y in owned:
        mine = Network(zoo.find(network), training())
        mine.begin(x[:2], n_classes=10, seed=0)
        trainings.append(partial(train, x, y, mine, count()))
    return trainings


# ---------------------------------------------------------------------- measuring


def importing_torch() -> tuple[float, float]:
    """Seconds for a process that imports torch and ends: by the wall clock, and by the processor."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, spent


def timed_round(kind: Callable[..., None], case: str, **options: Any) -> dict[str, Any]:
    """Run in a new process tree; adds its peak memory, and the median round by both clocks."""
    found = measured(kind, *CASES[case], time.time(), **options)
    spent = statistics.median(found["processor"][1:])
    return {**found, "round": steady_round(found["marks"]), "spent": spent}


def steady_round(marks: Sequence[float]) -> float:
    """The median round but the first, by the moments when training began and when each round ended."""
    return float(np.median(np.diff(marks)[1:]))


def main() -> None:
    for case in sys.argv[1:] or CASES:
        pairs, imports, floors = [], [], []
        for _ in range(REPEATS):
            imports.append(importing_torch())
            pairs.append((timed_round(yardstick, case), timed_round(ours, case)))
            base, mine = pairs[-1]
            floors.append(timed_round(floor, case)["spent"] / base["spent"])
            print(
                f"{case}: yardstick {base['round']:.2f} s a round ({base['spent']:.2f} of the processor), "
                f"accuracy {base['accuracy']:.3f}; cosilo {mine['round']:.2f} s ({mine['spent']:.2f}), "
                f"accuracy {mine['accuracy']:.3f}, start {mine['start'] - imports[-1][0]:.1f} s beyond "
                f"torch, {mine['megabytes']:.0f} MB",
                flush=True,
            )
        clocked = timed_round(ours, case, timed=True)

        def typical(found: Callable[[dict[str, Any], dict[str, Any]], float], pairs: Any = pairs) -> float:
            return statistics.median(found(mine, base) for base, mine in pairs)

        torch_wall, torch_processor = (statistics.median(each) for each in zip(*imports, strict=True))
        figures = {
            "ratio": typical(lambda mine, base: mine["round"] / base["round"]),
            "processor_ratio": typical(lambda mine, base: mine["spent"] / base["spent"]),
            "training_floor": statistics.median(floors),
            "round_seconds": typical(lambda mine, base: mine["round"]),
            "startup_seconds": typical(lambda mine, base: mine["start"]) - torch_wall,
            "startup_processor_seconds": typical(lambda mine, base: mine["start_processor"])
            - torch_processor,
            "peak_megabytes": max(mine["megabytes"] for _, mine in pairs),
            "accuracy": statistics.mean(mine["accuracy"] for _, mine in pairs),
            "yardstick_accuracy": statistics.mean(base["accuracy"] for base, _ in pairs),
            "journalling_share": clocked["journalling"],
            "steady_journalling_share": clocked["steady_journalling"],
        }
        for name, value in figures.items():
            print(f"figure {case}_{name} {value:.3g}", flush=True)


if __name__ == "__main__":
    main()
