"""Why FedAvg is ahead of DoFed-SPP on CIFAR-10 SUBSET: `python benchmarks/labellers.py`; needs COSILO_DATA.

As in `recipes/dofed_cifar10_subset.toml` at night size, five silos have the same two classes and 1,000 images
each that nobody else has. Each trains a network, as long as the recipe's do. Whoever wants labels for these
classes can ask one of the five, or the mean of two, which is what there is for everyone if ten of 25 models
travel, or of all five. Beside these is one network that learns the images of all five as often: averaging
weights can come to that, and labelling cannot. Judged among the two classes, on their test images;
development seed 1.
"""

import itertools
import statistics
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray

from cosilo import data
from cosilo.engines.local.threads import OneThread
from cosilo.learners import Network, Training, zoo
from cosilo.reproduce.library import find

SILOS, IMAGES, EPOCHS = 5, 500, 24


def trained(job: tuple[int, int, int | None]) -> NDArray[np.floating]:
    """What a network says of the test images of two classes; `silo` None: it has the images of all five."""
    first, second, silo = job
    threads = OneThread()
    recipe = find("dofed_cifar10_subset").case("all", "night")
    training = Training(**recipe["simulation"]["learners"][0]["training"]).but(epochs=EPOCHS)
    table, test = data.load("cifar10", "train"), data.load("cifar10", "test")
    rng = np.random.default_rng(1)
    rows = []
    for name in (first, second):
        mine = rng.permutation(np.flatnonzero(table.y == name))[: SILOS * IMAGES].reshape(SILOS, IMAGES)
        rows.append(mine.ravel() if silo is None else mine[silo])
    chosen = np.concatenate(rows)
    network = Network(zoo.cnn, training)
    network.fit(
        np.asarray(table.X)[chosen], (table.y[chosen] == second).astype(int), n_classes=2, seed=silo or 0
    )
    asked = np.isin(test.y, (first, second))
    chances = network.predict_proba(np.asarray(test.X)[asked])
    threads.release()
    return np.column_stack([chances, test.y[asked] == second])


def main() -> None:
    pairs = np.random.default_rng(1).permutation(10).reshape(5, 2).tolist()
    jobs = [(*pair, silo) for pair in pairs for silo in (*range(SILOS), None)]
    with ProcessPoolExecutor(2) as pool:
        said = dict(zip(jobs, pool.map(trained, jobs), strict=True))
    names = data.load("cifar10", "train").classes
    found: dict[str, list[float]] = {"one": [], "two": [], "five": [], "all_images": []}
    for pair in pairs:
        each = [said[*pair, silo] for silo in range(SILOS)]

        def right(together: tuple[NDArray[np.floating], ...]) -> float:
            mean = np.mean([one[:, :2] for one in together], axis=0)
            return float((mean.argmax(1) == together[0][:, 2]).mean())

        for name, size in {"one": 1, "two": 2, "five": 5}.items():
            found[name].append(statistics.fmean(map(right, itertools.combinations(each, size))))
        found["all_images"].append(right((said[*pair, None],)))
        told = ", ".join(f"{name} {values[-1]:.3f}" for name, values in found.items())
        print(f"{names[pair[0]]} and {names[pair[1]]}: {told}", flush=True)
    for name, values in found.items():
        print(f"figure {name} {statistics.fmean(values):.3f}")


if __name__ == "__main__":
    main()
