"""What keeps DoFed-SPP behind FedAvg on SUBSET: `python benchmarks/labellers.py cifar10` or `dbpedia`.

As in `recipes/dofed_cifar10_subset.toml` and `dofed_dbpedia_subset.toml` at night size, five silos have the
same classes and 500 instances of each. Each trains a network, as long as the recipe's do. Whoever wants
labels for these classes can ask one of the five, or the mean of two, which is what there is for everyone if
ten of 25 models travel, or of all five. Beside these are one network that learns what all five have as often
(averaging weights can come to that, and labelling cannot), and a target model that learns 200 instances of a
class as long as that of a silo does, with labels that are all right. Five pairs of classes, judged among
each, on their test data; development seed 1. Under five minutes each; needs COSILO_DATA.
"""

import itertools
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cosilo import data
from cosilo.config.resolve import make_learner
from cosilo.config.settings import LearnerSettings
from cosilo.engines.local.threads import OneThread
from cosilo.learners.adapt import as_learner
from cosilo.reproduce.library import find

SILOS, IMAGES, TARGET, EPOCHS = 5, 500, 200, 24


def trained(dataset: str, job: tuple[int, int, str]) -> NDArray[np.floating]:
    """What a network says of the test data of two classes, with the truth in the last column."""
    first, second, who = job
    threads = OneThread()
    recipe = find(f"dofed_{dataset}_subset").case("all", "night")
    spp, learner = recipe["compare"]["dofed_spp"], dict(recipe["simulation"]["learners"][0])
    epochs = spp["rounds"] * spp["target_epochs"] if who == "target" else EPOCHS
    learner["training"] = {**learner["training"], "epochs": epochs}
    train, test = data.load(dataset, "train"), data.load(dataset, "test")
    X, rows, rng = np.asarray(train.X), [], np.random.default_rng(1)
    for name in (first, second):
        target, rest = np.split(rng.permutation(np.flatnonzero(train.y == name)), [TARGET])
        # Silos share what there is, where it is too little for each to have its own.
        taken = np.resize(rest, SILOS * IMAGES).reshape(SILOS, IMAGES)
        has = {str(silo): mine for silo, mine in enumerate(taken)}
        rows.append({**has, "all": np.unique(taken), "target": target}[who])
    chosen = np.concatenate(rows)
    network = as_learner(make_learner(LearnerSettings(**learner), train.X, "benchmark"))
    network.fit(X[chosen], (train.y[chosen] == second).astype(int), n_classes=2, seed=1)
    asked = np.isin(test.y, (first, second))
    chances = network.predict_proba(np.asarray(test.X)[asked])
    threads.release()
    return np.column_stack([chances, test.y[asked] == second])


def right(*together: NDArray[np.floating]) -> float:
    """How often the mean of what some networks say is right."""
    mean = np.mean([one[:, :2] for one in together], axis=0)
    return float((mean.argmax(1) == together[0][:, 2]).mean())


def main() -> None:
    dataset = sys.argv[1] if sys.argv[1:] else "cifar10"
    names = data.load(dataset, "train").classes
    pairs = np.random.default_rng(1).permutation(len(names))[:10].reshape(5, 2).tolist()
    silos = [str(silo) for silo in range(SILOS)]
    jobs = [(*pair, who) for pair in pairs for who in (*silos, "all", "target")]
    with ProcessPoolExecutor(2) as pool:
        said = dict(zip(jobs, pool.map(partial(trained, dataset), jobs), strict=True))
    found: dict[str, list[float]] = {"one": [], "two": [], "five": [], "all": [], "target": []}
    for pair in pairs:
        each = [said[*pair, silo] for silo in silos]
        for name, size in {"one": 1, "two": 2, "five": 5}.items():
            found[name].append(statistics.fmean(itertools.starmap(right, itertools.combinations(each, size))))
        for name in ("all", "target"):
            found[name].append(right(said[*pair, name]))
        told = ", ".join(f"{name} {values[-1]:.3f}" for name, values in found.items())
        print(f"{names[pair[0]]} and {names[pair[1]]}: {told}", flush=True)
    for name, values in found.items():
        print(f"figure {dataset}_{name} {statistics.fmean(values):.3f}")


if __name__ == "__main__":
    main()
