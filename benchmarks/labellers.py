"""What DoFed-SPP can come to: `python benchmarks/labellers.py cifar10`, `cifar100`, `dbpedia` or `normal`.

As in `recipes/dofed_cifar10_subset.toml`, `dofed_cifar100_subset.toml`, `dofed_dbpedia_subset.toml` and
`dofed_cifar10_normal.toml` at night size, silos have the same classes and 500 instances of each. Each trains
a network, as long as the recipe's do. Whoever wants labels for these classes can ask one of them, or the mean
of several: in SUBSET five silos have a pair of classes, and there are two for everyone if ten of 25 models
travel. Beside these is a target model that learns 200 instances of a class as long as that of a silo does,
with labels that are all right; in SUBSET also one network that learns what all five have as often (averaging
weights can come to that, and labelling cannot). Five pairs of classes in SUBSET; two, six and ten classes in
NORMAL, with five silos that have all of them. In CIFAR-100, where targets overlap, a silo has all 500 images
of a class, so one is enough: of five classes, twice, and of ten, to tell which of these the paper has. Judged
among these, on their test data; development seed 1. Under five minutes each; needs COSILO_DATA.
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

SILOS, IMAGES, TARGET = 5, 500, 200
RECIPES = {
    "cifar10": "dofed_cifar10_subset",
    "cifar100": "dofed_cifar100_subset",
    "dbpedia": "dofed_dbpedia_subset",
    "normal": "dofed_cifar10_normal",
}


def trained(recipe_name: str, job: tuple[tuple[int, ...], str]) -> NDArray[np.floating]:
    """What a network says of the test data of some classes, with the truth in the last column."""
    classes, who = job
    threads = OneThread()
    found = find(recipe_name)
    recipe = found.case(next(iter(found.about.case)), "night")
    spp, learner = recipe["compare"]["dofed_spp"], dict(recipe["simulation"]["learners"][0])
    epochs = spp["rounds"] * (spp["target_epochs"] if who == "target" else spp.get("epochs", 1))
    epochs += 0 if who == "target" else spp["warm_up"]
    learner["training"] = {**learner["training"], "epochs": epochs}
    dataset = recipe["simulation"]["dataset"]
    train, test = data.load(dataset, "train"), data.load(dataset, "test")
    X, rows, rng = np.asarray(train.X), [], np.random.default_rng(1)
    for name in classes:
        target, rest = np.split(rng.permutation(np.flatnonzero(train.y == name)), [TARGET])
        # Silos share what there is, where it is too little for each to have its own.
        rest = rest if len(rest) >= IMAGES else np.concatenate([target, rest])
        taken = np.resize(rest, SILOS * IMAGES).reshape(SILOS, IMAGES)
        has = {str(silo): mine for silo, mine in enumerate(taken)}
        rows.append({**has, "all": np.unique(taken), "target": target}[who])
    chosen = np.concatenate(rows)
    codes = np.zeros(len(train.classes), dtype=np.int64)
    codes[list(classes)] = np.arange(len(classes))
    network = as_learner(make_learner(LearnerSettings(**learner), train.X, "benchmark"))
    network.fit(X[chosen], codes[train.y[chosen]], n_classes=len(classes), seed=1)
    asked = np.isin(test.y, classes)
    chances = network.predict_proba(np.asarray(test.X)[asked])
    threads.release()
    return np.column_stack([chances, codes[test.y[asked]]])


def right(*together: NDArray[np.floating]) -> float:
    """How often the mean of what some networks say is right."""
    mean = np.mean([one[:, :-1] for one in together], axis=0)
    return float((mean.argmax(1) == together[0][:, -1]).mean())


def main() -> None:
    word = sys.argv[1] if sys.argv[1:] else "cifar10"
    names = data.load("cifar10" if word == "normal" else word, "train").classes
    order = np.random.default_rng(1).permutation(len(names)).tolist()
    wanted = {
        "normal": {"normal": [order[:2], order[:6], order[:10]]},
        "cifar100": {"cifar100_five": [order[:5], order[5:10]], "cifar100_ten": [order[:10]]},
    }.get(word, {word: [order[at : at + 2] for at in range(0, 10, 2)]})
    sizes = {"one": 1} if word == "cifar100" else {"one": 1, "two": 2, "five": 5}
    silos = [str(silo) for silo in range(max(sizes.values()))]
    others = ["all", "target"] if word in ("cifar10", "dbpedia") else ["target"]
    every = [tuple(classes) for some in wanted.values() for classes in some]
    jobs = [(classes, who) for classes in every for who in (*silos, *others)]
    with ProcessPoolExecutor(2) as pool:
        said = dict(zip(jobs, pool.map(partial(trained, RECIPES[word]), jobs), strict=True))
    for group, some in wanted.items():
        found: dict[str, list[float]] = {name: [] for name in (*sizes, *others)}
        for classes in map(tuple, some):
            each = [said[classes, silo] for silo in silos]
            for name, size in sizes.items():
                found[name].append(
                    statistics.fmean(itertools.starmap(right, itertools.combinations(each, size)))
                )
            for name in others:
                found[name].append(right(said[classes, name]))
            told = ", ".join(f"{name} {values[-1]:.3f}" for name, values in found.items())
            print(f"{', '.join(names[place] for place in classes)}: {told}", flush=True)
        for name, values in found.items():
            print(f"figure {group}_{name} {statistics.fmean(values):.3f}")


if __name__ == "__main__":
    main()
