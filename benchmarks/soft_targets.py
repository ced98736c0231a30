"""What networks learn best by from the same votes: `python benchmarks/soft_targets.py [SEED] [whole]`.

Development seeds (below 3) of `recipes/cofed_cifar.toml`, non-IID at night size; needs
COSILO_DATA. Silos train and vote once, and some then learn in each of these ways for 24,000 images:

- `paper`: labels of more than 0.3 of those who have the class;
- `all_shares`: the shares of a silo's own classes as soft targets on the whole pool;
- `won`: only instances that one of its classes wins over all classes, with shares to a power as soft targets:
  1 is the shares as they are, and the higher the power the nearer to labels; `labels` are these;
- `…_constant`: with a learning rate that stays, instead of one that falls to 0.

With 20 voters, four silos that learn, and three minutes; `whole` has 50 voters, six silos and ten minutes.
"""

import copy
import os
import statistics
import sys
from functools import partial
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from cosilo import Silo
from cosilo.config import build
from cosilo.config.settings import validate
from cosilo.data.instances import take
from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread
from cosilo.learners import Network
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold
from cosilo.protocol.task import vocabulary
from cosilo.recipes import RECIPES
from cosilo.reproduce.library import find
from cosilo.silo.lessons import Lessons
from tools.elections import interval

PASSES, ALPHA = 24_000, 0.3
WAYS = ["paper", "all_shares", "paper_constant", "all_shares_constant", "won_1", "won_2", "won_4", "labels"]


def members(seed: int, voters: int) -> tuple[list[Silo], NDArray[np.uint8]]:
    """The silos of a development seed, and the pool."""
    values = find("cofed_cifar").case("non_iid", "night") | {"seed": seed}
    values["simulation"]["split"]["silos"] = voters
    made, pool = build.make_members(validate(values, "cofed_cifar"), build.Source("cofed_cifar", RECIPES))
    assert pool is not None
    return [silo for silo in made if isinstance(silo, Silo)], np.asarray(pool.X)


def alone(silo: Silo, pool: NDArray[np.uint8]) -> tuple[Network, NDArray[np.int64]]:
    """A silo's network after local training, and its votes."""
    OneThread()
    keep_freed_memory()
    assert isinstance(silo.learner, Network)
    silo.learner.fit(*silo.data.train, n_classes=len(silo.task), seed=1)
    return silo.learner, silo.learner.predict(pool)


def lessons(way: str, ballots: Ballots, place: int, pool: NDArray[np.uint8]) -> Lessons:
    """What a silo is taught in one of the ways."""
    task, weights = ballots.tasks[place], [1.0] * len(ballots.names)
    if way.startswith("paper"):
        index, label = ByThreshold(ballots, ALPHA, weights).labels(task)
        return Lessons(take(pool, index), label)
    index, label = ByShares(ballots, weights, ALPHA).labels(task)
    if way == "labels":
        return Lessons(take(pool, index), label)
    votes, holders = np.stack(ballots.votes), ballots.holders()[task]
    share = np.stack([(votes == code).sum(axis=0) for code in task], axis=1) / holders
    if way.startswith("all_shares"):
        index = np.flatnonzero(share.sum(axis=1))
    found = share[index] ** (int(way[-1]) if way.startswith("won") else 1)
    return Lessons(take(pool, index), found / found.sum(axis=1, keepdims=True))


def learnt(
    job: tuple[str, int],
    silos: list[Silo],
    networks: list[Network],
    ballots: Ballots,
    pool: NDArray[np.uint8],
) -> float:
    """The accuracy of a silo after an update, ÷ the one before."""
    OneThread()
    keep_freed_memory()
    way, place = job
    silo, network = silos[place], copy.deepcopy(networks[place])
    assert silo.data.test is not None
    X, y = silo.data.test
    before = np.mean(network.predict(X) == y)
    taught = lessons(way, ballots, place, pool).after(silo.data.train)
    schedule = "constant" if way.endswith("constant") else "cosine"
    training = network.update.but(passes=PASSES, schedule=schedule).on(len(taught))
    network.fit(taught.X, taught.y, n_classes=len(silo.task), seed=2, warm=True, training=training)
    return float(np.mean(network.predict(X) == y) / before)


def main() -> None:
    words = sys.argv[1:]
    whole = "whole" in words
    seed = next((int(word) for word in words if word.isdigit()), 1)
    silos, pool = members(seed, 50 if whole else 20)
    with get_context("fork").Pool(os.cpu_count()) as workers:
        networks, votes = zip(*workers.map(partial(alone, pool=pool), silos, chunksize=1), strict=True)
    words_of = vocabulary(silo.task for silo in silos)
    tasks = [silo.task.codes_in(words_of) for silo in silos]
    said = [np.array(task)[vote] for task, vote in zip(tasks, votes, strict=True)]
    ballots = Ballots([silo.name for silo in silos], said, tasks, len(words_of))
    drawn = np.random.default_rng(seed).choice(len(silos), 6 if whole else 4, replace=False).tolist()
    work = partial(learnt, silos=silos, networks=list(networks), ballots=ballots, pool=pool)
    with get_context("fork").Pool(os.cpu_count()) as workers:
        jobs = [(way, place) for way in WAYS for place in drawn]
        found = dict(zip(jobs, workers.map(work, jobs, chunksize=1), strict=True))
    for way in WAYS:
        values = [found[way, place] for place in drawn]
        gain, half = interval([found[way, place] - found["paper", place] for place in drawn])
        print(f"{way}: relative accuracy {statistics.fmean(values):.3f}, over paper {gain:+.3f} ± {half:.3f}")
        print(f"figure {way} {statistics.fmean(values):.3f}", flush=True)


if __name__ == "__main__":
    main()
