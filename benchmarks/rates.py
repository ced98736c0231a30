"""Which learning rate a network of a recipe learns best with: `python benchmarks/rates.py [RECIPE …]`.

Training alone, for as many epochs as a silo has in the recipe, on development seeds 0 and 1. Judged by data
held out of the silos' training sets; test data is not looked at. The rate belongs to the network: all methods
of a recipe train with it.

`python benchmarks/rates.py distil [RECIPE …]`: the rate that FedBE's global network learns its teachers' word
on the pool with. FedBE runs as in the recipe, on the same seeds, with the held-out data as test data. FedAvg
is what it would be if it learnt nothing from them.
"""

import copy
import sys
import tempfile
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from cosilo import FedAvg, FedBE, Federation, LocalEngine, Silo
from cosilo.config.build import Members, Source, make_members
from cosilo.config.settings import validate
from cosilo.engines.local.threads import OneThread
from cosilo.learners import Network
from cosilo.methods.effort import plain_silos
from cosilo.recipes import RECIPES
from cosilo.reproduce.library import find

#: The rates that were tried; the recipes have the best.
RATES = {
    "dofed_cifar10_subset": [0.002, 0.005, 0.01, 0.02, 0.05],
    "dofed_dbpedia_subset": [0.003, 0.01, 0.03, 0.06, 0.1],
    "dofed_cifar10_normal": [0.005, 0.01, 0.02, 0.05, 0.1],
}
DISTIL_RATES = {
    "dofed_cifar10_subset": [0.001, 0.01, 0.03, 0.1],
    "dofed_dbpedia_subset": [0.001, 0.01, 0.03, 0.1, 0.3, 1.0],
}
EPOCHS = 12
SILOS = 4
SEEDS = (0, 1)


def recipe(name: str) -> dict[str, Any]:
    """The first case of a reproduction."""
    return find(name).case(next(iter(find(name).about.case)), "laptop")


def members(name: str, seed: int) -> Members:
    """Its silos and its pool."""
    return make_members(validate({**recipe(name), "seed": seed}, name), Source(f"{name}.toml", RECIPES))


def alone(name: str) -> dict[float, float]:
    """What networks that train alone come to on held-out data, by rate."""
    found: dict[float, list[float]] = {rate: [] for rate in RATES[name]}
    for seed in SEEDS:
        for silo in plain_silos(members(name, seed)[0])[:SILOS]:
            held, kept = silo.data.validation()
            for rate in found:
                network = copy.deepcopy(silo.learner)
                assert isinstance(network, Network)
                training = network.training.but(lr=rate, epochs=EPOCHS)
                network.fit(*kept, n_classes=len(silo.task), seed=seed, training=training)
                found[rate].append(float(np.mean(network.predict(held[0]) == held[1])))
    return {rate: fmean(accuracies) for rate, accuracies in found.items()}


def distilled(name: str) -> dict[float, float]:
    """What FedBE's network comes to on held-out data, by the rate that it learns from its teachers with."""
    found: dict[float, list[float]] = {rate: [] for rate in [0.0, *DISTIL_RATES[name]]}
    given = recipe(name)["compare"]
    for seed in SEEDS:
        silos, pool = members(name, seed)
        assert pool is not None
        for rate in found:
            fedbe = {**given["fedbe"], "distil_lr": rate, "local": False}
            method = FedBE(**fedbe) if rate else FedAvg(**given["fedavg"], local=False)
            judged = [judged_by_held_out(silo) for silo in plain_silos(silos)]
            with tempfile.TemporaryDirectory() as folder:
                federation = Federation(judged, pool.X, method, seed=seed, engine=LocalEngine(workers=2))
                run = federation.run(f"{folder}/run", observers=[])
                found[rate].append(fmean(run.scores("federated").values()))
    print(f"{name}: FedAvg: {fmean(found.pop(0.0)):.4f} on validation data")
    return {rate: fmean(accuracies) for rate, accuracies in found.items()}


def judged_by_held_out(silo: Silo) -> Silo:
    """A silo that trains on what is kept of its training data, and is tested by what is held out."""
    names = np.array(silo.task.classes)
    (X, y), (own, codes) = silo.data.validation()
    learner, shares = copy.deepcopy(silo.learner), ["weights", "size", "logits", "metrics"]
    task = silo.task.classes
    return Silo(silo.name, own, names[codes], learner, test=(X, names[y]), task=task, shares=shares)


def main(names: Sequence[str], distil: bool) -> None:
    measure, ending = (distilled, "distil_rate") if distil else (alone, "rate")
    for name in names or (DISTIL_RATES if distil else RATES):
        threads = OneThread()
        found = measure(name)
        threads.release()
        for rate, accuracy in found.items():
            print(f"{name}: rate {rate:g}: {accuracy:.4f} on validation data")
        print(f"figure {name}_{ending} {max(found, key=lambda rate: found[rate]):g}")


if __name__ == "__main__":
    words = sys.argv[1:]
    main([word for word in words if word != "distil"], "distil" in words)
