"""Where CoFED's time goes: `python benchmarks/cofed.py`, under five minutes.

Six silos of `recipes/cofed_cifar.toml`, non-IID, with 1,500 pool images. Time by phase, with two workers as
users run it. Then in one process, where every second inside a learner (training, labelling, judging) can be
told from what the federation adds: reading data, votes, messages, records. And how fast the pool is labelled,
against one forward pass of the same networks over the whole pool at once; labels must be the same but for a
thousandth.
"""

import copy
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cosilo import data
from cosilo.config import build, recipe_file
from cosilo.learners import zoo
from cosilo.learners.network import Network
from cosilo.learners.tensors import as_module_input
from cosilo.learners.training import Training
from cosilo.recipes import RECIPES

RECIPE = RECIPES / "cofed_cifar.toml"
CHANGES = ["simulation.split.subclasses=[1, 2]", "simulation.split.silos=6", "pool.size=1500"]
PHASES = {"train": "local training", "label": "labelling", "update": "update training"}
#: What a learner does for a silo.
LEARNER = ("fit", "predict", "predict_proba")


class Stopwatch:
    """Adds up the time inside some methods of a class; calls inside calls count once."""

    def __init__(self, kind: type, names: tuple[str, ...]) -> None:
        self.seconds, self._depth = 0.0, 0
        for name in names:
            setattr(kind, name, self._timed(getattr(kind, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            self._depth += 1
            started = time.perf_counter()
            try:
                return method(*args, **options)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - started

        return timed


def run(folder: Path, workers: int) -> tuple[Any, float]:
    values = recipe_file.read(RECIPE, [*CHANGES, f"workers={workers}"])
    federation = build.federation(values, build.Source("cofed_cifar.toml", folder))
    started = time.perf_counter()
    return federation.run(folder / str(workers)), time.perf_counter() - started


def labelling(images: Any) -> tuple[float, float]:
    """How much longer one pass over everything takes than labelling, and the share of other labels."""
    ratios, other = [], []
    for seed in range(3):
        network = Network(zoo.cofed_cnn, Training(epochs=1))
        network.fit(images[:200], np.arange(200) % 7, n_classes=7, seed=seed)
        module = copy.deepcopy(network.fitted()).eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        everything = as_module_input(torch.from_numpy(np.ascontiguousarray(images))).contiguous()
        times: dict[str, list[float]] = {"ours": [], "whole": []}
        for _ in range(3):
            started = time.perf_counter()
            mine = network.predict(images)
            times["ours"].append(time.perf_counter() - started)
            started = time.perf_counter()
            with torch.inference_mode():
                whole = module(everything).argmax(1).numpy()
            times["whole"].append(time.perf_counter() - started)
        ratios.append(min(times["whole"]) / min(times["ours"]))
        other.append(float(np.mean(mine != whole)))
    return float(np.mean(ratios)), max(other)


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        finished, wall = run(folder, workers=2)
        asks = finished.asks()
        for step, phase in PHASES.items():
            seconds = sum(ask["seconds"] for ask in asks if ask["step"] == step)
            print(f"{phase}: {seconds:.1f} s with two workers")
            print(f"figure cofed_{step}_seconds {seconds:.1f}")
        print(f"figure cofed_seconds {wall:.1f}")
        watch = Stopwatch(Network, LEARNER)
        _, wall = run(folder, workers=0)
        print(f"in one process {wall:.1f} s, of which {watch.seconds:.1f} s in the learners")
        print(f"figure cofed_share_outside_learners {1 - watch.seconds / wall:.3f}")
    speed, other = labelling(data.load("cifar10").X[:3000])
    print(f"figure cofed_labelling_over_one_pass {speed:.2f}")
    print(f"figure cofed_labels_that_differ {other:.4f}")


if __name__ == "__main__":
    main()
