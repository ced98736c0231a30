"""What distance costs: `python benchmarks/engines.py`, under five minutes; needs the extras flare and ray.

The same silos on the local engine (two workers), on a Ray cluster of two nodes with one CPU each that is
there already, and between real FLARE processes with certificates, all on loopback. FedAvg with a network of
10 MB that trains on one batch, for 3 and 10 silos: what an ask takes that carries next to nothing
(`evaluate`), and one with 10 MB to each silo and 10 MB back (`train`, of which a part is the training itself,
the same on all). Medians over the rounds. Then CoFED with a tree, an SVM and a network, from the first
answers to the result. Start-up is from nothing to the answers of all silos to the first ask.
"""

import contextlib
import os
import socket
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from cosilo import data
from cosilo.data.instances import fingerprint
from cosilo.engines.flare import processes
from cosilo.engines.flare.admission import make_all
from cosilo.engines.flare.names import ADMIN, COORDINATOR, SERVER
from cosilo.engines.flare.party_files import FederationSettings, as_federation, read_silo
from cosilo.engines.flare.runs import submit
from cosilo.engines.flare.session import until_reachable
from cosilo.engines.local.engine import LocalEngine
from cosilo.runs.run import RunDirectory

ROUNDS = 8
#: 64 pixels, 1,540 hidden units twice, ten classes: 10 MB.
WIDE = '{ use = "mlp", hidden = [1540, 1540], training = { optimiser = "sgd", lr = 0.01, batch = 32 } }'
MIXED = [
    '{ use = "sklearn.tree.DecisionTreeClassifier" }',
    '{ use = "sklearn.svm.SVC" }',
    '{ use = "mlp", training = { epochs = 5, lr = 0.01 } }',
]


def write_silos(folder: Path, learners: list[str], shares: str) -> list[str]:
    """Files of silos that hold some digits each, and a pool."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    table = pd.DataFrame(digits.data[order]).add_prefix("pixel")
    table["digit"] = [f"d{digit}" for digit in digits.target[order]]
    table[:500].drop(columns="digit").to_csv(folder / "pool.csv", index=False)
    names = [f"silo-{place:02d}" for place in range(len(learners))]
    for place, name in enumerate(names):
        table[500 + 100 * place : 600 + 100 * place].to_csv(folder / f"{name}.csv", index=False)
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\npath = "{name}.csv"\nlabel = "digit"\nshares = {shares}\n'
            f'learner = {learners[place]}\npool = {{ path = "pool.csv" }}\n'
        )
    return names


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def deployed(settings: FederationSettings, folder: Path) -> Iterator[Path]:
    """A coordinator and silos in processes of their own."""
    kits = make_all(settings, folder / "kits")
    try:
        with contextlib.ExitStack() as logs:
            log = logs.enter_context((folder / "coordinator.txt").open("w"))
            processes.start_server(kits[SERVER], folder / "runs", log)
            for name in settings.members:
                log = logs.enter_context((folder / f"{name}.txt").open("w"))
                processes.start_site(kits[name], folder / f"{name}.toml", folder / "silos" / name, log)
            until_reachable(kits[ADMIN])
            yield folder / "kits" / COORDINATOR
    finally:
        for name in (SERVER, *settings.members):
            processes.stop(kits[name])


def local(settings: FederationSettings, folder: Path) -> tuple[RunDirectory, float]:
    """The same on the local engine, and when its first ask was answered."""
    started = time.time()
    from cosilo import Federation
    from cosilo.config.resolve import known_method

    silos = [read_silo(folder / f"{name}.toml") for name in settings.members]
    method = known_method(settings.method, "benchmark")
    run = Federation(silos, method=method, seed=settings.seed, engine=LocalEngine(2)).run(folder / "local")
    return run, greeted(run) - started


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """The address of a Ray cluster on this machine, as the tests have it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as the workers of the local engine)
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    made = Cluster(initialize_head=True, head_node_args=node)
    made.add_node(**node)
    yield made.address
    made.shutdown()


def on_ray(settings: FederationSettings, folder: Path, address: str) -> tuple[RunDirectory, float]:
    """The same on a cluster, from a recipe with the silos' files, and when its first ask was answered."""
    started = time.time()
    from cosilo.config import build
    from cosilo.engines.ray.engine import RayEngine

    silos = [tomllib.loads((folder / f"{name}.toml").read_text()) for name in settings.members]
    method = {"use": settings.method.use, **settings.method.parameters()}
    values = {"seed": settings.seed, "method": method, "silo": silos}
    federation = build.federation(values, build.Source("recipe", folder), engine=RayEngine(address))
    run = federation.run(folder / "ray")
    return run, greeted(run) - started


def greeted(run: RunDirectory) -> float:
    """When all silos had answered the first ask."""
    return float(next(event["at"] for event in run.events() if event["event"] == "answered"))


def seconds(run: RunDirectory, step: str) -> float:
    return float(statistics.median(ask["seconds"] for ask in run.asks() if ask["step"] == step))


def span(run: RunDirectory) -> float:
    """From the answers to the first ask to the end."""
    return float(run.events()[-1]["at"] - greeted(run))


def compared(
    method: dict[str, Any], learners: list[str], shares: str, address: str
) -> dict[str, tuple[RunDirectory, float]]:
    """A run on every engine, with what each took to start."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        names = write_silos(folder, learners, shares)
        pool = fingerprint(data.read(folder / "pool.csv").X)
        values = {"name": "engines", "members": names, "method": method}
        values |= {"pool": {"fingerprint": pool, "size": 500}, "coordinator": {"port": free_port()}}
        settings = as_federation(values, "benchmark")
        found = {"local": local(settings, folder), "ray": on_ray(settings, folder, address)}
        started = time.time()
        with deployed(settings, folder) as kit:
            run = submit(settings, kit, lambda line: None, patience=120.0)
            found["flare"] = (run, greeted(run) - started)
        for run, _ in found.values():
            if run.result["failures"]:
                sys.exit(f"not everyone took part: {run.result['failures']}")
            run.about["spans"] = span(run)
            run.about["asked"] = {step: seconds(run, step) for step in {ask["step"] for ask in run.asks()}}
        return found


def main() -> None:
    with cluster() as address:
        compare_all(address)


def compare_all(address: str) -> None:
    fedavg = {"use": "fedavg", "rounds": ROUNDS, "epochs": 1, "local": False}
    for count in (3, 10):
        found = compared(fedavg, [WIDE] * count, '["weights", "size", "metrics"]', address)
        for engine, (run, start) in found.items():
            empty, heavy = (run.about["asked"][step] for step in ("evaluate", "train"))
            print(f"{count} silos, {engine}: answered after {start:.1f} s, {empty=:.3f} s, {heavy=:.3f} s")
            print(f"figure {engine}_{count}_startup_seconds {start:.1f}")
            print(f"figure {engine}_{count}_empty_seconds {empty:.4f}")
            print(f"figure {engine}_{count}_10MB_seconds {heavy:.3f}", flush=True)
    mixed = compared({"use": "cofed"}, MIXED, '["labels", "metrics"]', address)
    for engine, (run, start) in mixed.items():
        print(f"CoFED, {engine}: answered after {start:.1f} s, then {run.about['spans']:.2f} s")
        print(f"figure {engine}_cofed_seconds {run.about['spans']:.2f}")
        print(f"figure {engine}_cofed_with_startup_seconds {start + run.about['spans']:.1f}", flush=True)


if __name__ == "__main__":
    main()
