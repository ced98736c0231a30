"""FedAvg beside others, in one run: `python benchmarks/peers.py [TURNS]`; needs COSILO_DATA.

The two workloads of `fedavg.py` (FashionMNIST; LeNet-5 with 40 silos × 600 images, the MLP with 100 × 240;
all silos in each of five rounds, one epoch, batches of 32, SGD 0.1) with cosilo, the bare loop in two
processes, pfl-research 0.6.0 and Flower 1.41.0. Each peer has an environment of its own with the torch that
cosilo has, and is used as its documentation says is fast: see `peer_scripts/`. The environments lie in the
folder COSILO_PEERS (else a temporary one) and are made there if they are missing, which is not measured.

All run in turns (three, unless told otherwise), each time in new processes with one thread each. Measured
from outside, for the whole tree of processes:

- a round: the median of rounds 2 to 5, by the clock; and the processor time of a round in rounds 2 to 5,
  which says more on a machine that has other work;
- start-up: from the start of the process to the end of round 1, less such a round; again both;
- memory: the largest sum of proportional set sizes (PSS).

Ratios are to the bare loop of the same turn, and the median of the turns. cosilo keeps its run on disk, the
others keep nothing. Each turn has another seed, from which initial weights are drawn: those of cosilo in its
own way, those of the others alike. A row says so if its accuracy differs from the bare loop's by more than
two standard errors over the turns.

HtFLlib, whose FML is for silos with different networks, has no row: it is no package that could be installed,
and at its commit e959261 (environment: torch 2.0.1) it does not run with torch 2.13.0. It saves whole modules
and reads them with `torch.load`, which takes only weights since torch 2.6 ("Weights only load failed"); and
it imports torchvision, whose 0.29.2 fails here ("operator torchvision::nms does not exist").
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from fedavg import BATCH, CASES, RATE, ROUNDS, ours, parts, steady_round, yardstick
from tools.process_tree import watched, watched_command

TURNS = 3
#: What to install, by the script that uses it.
PEERS = {"pfl_research": "pfl==0.6.0", "flower": "flwr[simulation]==1.41.0"}
QUANTITIES = ["round", "round_processor", "startup", "startup_processor", "megabytes"]


def environment(peer: str) -> Path:
    """The Python of a peer's environment, which is made if it is missing."""
    folder = Path(os.environ.get("COSILO_PEERS") or Path(tempfile.gettempdir()) / "cosilo-peers") / peer
    python, done = folder / "bin" / "python", folder / "installed.txt"
    torch = f"torch=={version('torch').partition('+')[0]}"
    wanted = f"{torch}\n{PEERS[peer]}\n"
    if not done.exists() or done.read_text() != wanted:
        start = time.perf_counter()
        print(f"{peer}: installing {torch} and {PEERS[peer]} in {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        for requirement in (torch, PEERS[peer]):
            subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
        done.write_text(wanted)
        print(f"{peer}: installed in {time.perf_counter() - start:.0f} s", flush=True)
    return python


def write_workload(case: str, path: Path, seed: int) -> None:
    """What `peer_scripts/workload.py` reads: the bare loop's data, settings and initial weights."""
    import torch

    from cosilo import data
    from cosilo.learners import zoo

    network, silos, size = CASES[case]
    train, test = data.load("fashion_mnist", "train"), data.load("fashion_mnist", "test")
    index = np.stack(parts(silos, size))
    torch.manual_seed(seed)
    weights = [value.detach().numpy() for value in zoo.find(network)((1, 28, 28), 10).parameters()]
    settings = {"network": network, "rounds": ROUNDS, "rate": RATE, "batch": BATCH}
    np.savez(
        path,
        *weights,
        settings=json.dumps(settings),
        x=np.array(train.X)[index],
        y=np.array(train.y)[index],
        test_x=np.array(test.X),
        test_y=np.array(test.y),
    )


def turn(name: str, case: str, path: Path, seed: int) -> dict[str, float]:
    """One run, and what it took."""
    started = time.time()
    if name in PEERS:
        here = Path(__file__).parent
        settings = {"PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"}
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        # Else Ray makes its workers give way to whatever else the machine does.
        quiet["RAY_worker_niceness"] = "0"
        command = [str(environment(name)), "-m", f"peer_scripts.{name}", str(path)]
        found, watch = watched_command(command, {**os.environ, **settings, **quiet})
    else:
        work = partial(ours, local=False) if name == "cosilo" else yardstick
        found, watch = watched(work, *CASES[case], started, seed=seed)
    marks = found["marks"]
    round_processor = watch.processor_seconds(marks[1], marks[-1]) / (len(marks) - 2)
    return {
        "round": steady_round(marks),
        "round_processor": round_processor,
        "startup": marks[1] - started - steady_round(marks),
        "startup_processor": watch.processor_seconds(started, marks[1]) - round_processor,
        "megabytes": watch.megabytes,
        "accuracy": found["accuracy"],
    }


def table(case: str, turns: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Print medians with ratios to the bare loop; returns the figures."""
    figures: dict[str, float] = {}
    print(f"\n{case}: medians of {len(turns)} turns (ratio to the bare loop)")
    heads = ["round s", "round CPU s", "start-up s", "start-up CPU s", "peak MB"]
    print(f"{'':14}" + "".join(f"{head:>20}" for head in heads) + f"{'accuracy':>12}")
    bare = [each["bare"]["accuracy"] for each in turns]
    for name in turns[0]:
        cells = ""
        for quantity in QUANTITIES:
            value = statistics.median(each[name][quantity] for each in turns)
            ratio = statistics.median(each[name][quantity] / each["bare"][quantity] for each in turns)
            cells += f"{value:>13.3g} ({ratio:.2f})".rjust(20)
            figures[f"{case}_{name}_{quantity}"] = value
            figures[f"{case}_{name}_{quantity}_ratio"] = ratio
        accuracies = [each[name]["accuracy"] for each in turns]
        figures[f"{case}_{name}_accuracy"] = statistics.mean(accuracies)
        print(f"{name:14}{cells}{statistics.mean(accuracies):>12.3f}{apart(accuracies, bare)}", flush=True)
    return figures


def apart(accuracies: Sequence[float], bare: Sequence[float]) -> str:
    """What the row says if accuracies differ by more than noise: two standard errors of the difference."""
    if len(bare) < 2:
        return "  (one turn: its noise is not known)"
    error = math.sqrt((statistics.variance(accuracies) + statistics.variance(bare)) / len(bare))
    difference = statistics.mean(accuracies) - statistics.mean(bare)
    return f"  differs by {difference:+.3f}, noise {error:.3f}" if abs(difference) > 2 * error else ""


def main() -> None:
    for peer in PEERS:
        environment(peer)
    turns: dict[str, list[dict[str, dict[str, float]]]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as folder:
        paths = {case: Path(folder) / f"{case}.npz" for case in CASES}
        for seed in range(int(sys.argv[1]) if sys.argv[1:] else TURNS):
            for case, path in paths.items():
                write_workload(case, path, seed)
                turns[case].append({})
                for name in ("bare", "cosilo", *PEERS):
                    turns[case][-1][name] = found = turn(name, case, path, seed)
                    told = ", ".join(f"{quantity} {value:.3g}" for quantity, value in found.items())
                    print(f"{case} {name}: {told}", flush=True)
    figures: dict[str, float] = {}
    for case in CASES:
        figures |= table(case, turns[case])
    for name, value in figures.items():
        print(f"figure {name} {value:.3g}")


if __name__ == "__main__":
    main()
