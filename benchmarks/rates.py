"""Which learning rate a network of a recipe learns best with: `python benchmarks/rates.py [RECIPE …]`.

Training alone, for as many epochs as a silo has in the recipe, on development seeds 0 and 1. Judged by data
held out of the silos' training sets; test data is not looked at. The rate belongs to the network: all methods
of a recipe train with it.
"""

import copy
import sys
from statistics import fmean

import numpy as np

from cosilo.config.build import Source, make_members
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
EPOCHS = 12
SILOS = 4


def main() -> None:
    threads = OneThread()
    for name in sys.argv[1:] or RATES:
        values = find(name).case(next(iter(find(name).about.case)), "laptop")
        found: dict[float, list[float]] = {rate: [] for rate in RATES[name]}
        for seed in (0, 1):
            settings = validate({**values, "seed": seed}, name)
            silos, _ = make_members(settings, Source(f"{name}.toml", RECIPES))
            for silo in plain_silos(silos)[:SILOS]:
                held, kept = silo.data.validation()
                for rate in found:
                    network = copy.deepcopy(silo.learner)
                    assert isinstance(network, Network)
                    training = network.training.but(lr=rate, epochs=EPOCHS)
                    network.fit(*kept, n_classes=len(silo.task), seed=seed, training=training)
                    found[rate].append(float(np.mean(network.predict(held[0]) == held[1])))
        for rate, accuracies in found.items():
            print(f"{name}: rate {rate:g}: {fmean(accuracies):.3f} on validation data")
        best = max(found, key=lambda rate: fmean(found[rate]))
        print(f"figure {name}_rate {best:g}")
    threads.release()


if __name__ == "__main__":
    main()
