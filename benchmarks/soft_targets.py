"""What networks learn best by from the same votes: `python benchmarks/soft_targets.py [SEED] [whole]`.

Development seeds (below 3) of `recipes/cofed_cifar.toml`, non-IID at night size; needs
COSILO_DATA. Silos train and vote once, and some then learn in each of these ways for 24,000 images:

- `paper`: labels of more than 0.3 of those who have the class;
- `all_shares`: the shares of a silo's own classes as soft targets on the whole pool;
- `won`: only instances that one of its classes wins over all classes, with shares to a power as soft targets:
  1 is the shares as they are, and the higher the power the nearer to labels; `labels` are these;
- `…_constant`: with a learning rate that stays, instead of one that falls to 0.

With 20 voters and four silos that learn; `whole` has 50 voters and six silos, and takes five minutes.
"""

import statistics
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import Silo
from cosilo.config import build
from cosilo.config.settings import validate
from cosilo.data.instances import take
from cosilo.learners import Network
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold
from cosilo.protocol.task import vocabulary
from cosilo.recipes import RECIPES
from cosilo.reproduce.library import find
from cosilo.silo.lessons import Lessons
from tools.elections import interval
from tools.side_by_side import side_by_side

PASSES, ALPHA = 24_000, 0.3
WAYS = ["paper", "all_shares", "paper_constant", "all_shares_constant", "won_1", "won_2", "won_4", "labels"]


class Experiment:
    """Silos, what each is after local training, and what all of them voted."""

    def __init__(self, seed: int, voters: int) -> None:
        values = find("cofed_cifar").case("non_iid", "night") | {"seed": seed}
        values["simulation"]["split"]["silos"] = voters
        made, pool = build.make_members(validate(values, "cofed_cifar"), build.Source("cofed_cifar", RECIPES))
        assert pool is not None
        self.pool = np.asarray(pool.X)
        self.silos = [silo for silo in made if isinstance(silo, Silo)]
        self.weights, votes = zip(*side_by_side(self.alone, range(voters)), strict=True)
        words = vocabulary(silo.task for silo in self.silos)
        tasks = [silo.task.codes_in(words) for silo in self.silos]
        said = [np.array(task)[vote] for task, vote in zip(tasks, votes, strict=True)]
        self.ballots = Ballots([silo.name for silo in self.silos], said, tasks, len(words))

    def network(self, place: int) -> Network:
        """That of a silo, untrained."""
        learner = self.silos[place].learner
        assert isinstance(learner, Network)
        learner.begin(self.pool[:2], n_classes=len(self.silos[place].task), seed=1)
        return learner

    def alone(self, place: int) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
        """A silo's network after local training, and its votes."""
        network, silo = self.network(place), self.silos[place]
        network.fit(*silo.data.train, n_classes=len(silo.task), seed=1)
        return network.weights(), network.predict(self.pool)

    def lessons(self, way: str, place: int) -> Lessons:
        """What a silo is taught in one of the ways."""
        ballots, task = self.ballots, self.ballots.tasks[place]
        alike = [1.0] * len(ballots.names)
        if way.startswith("paper"):
            index, label = ByThreshold(ballots, ALPHA, alike).labels(task)
            return Lessons(take(self.pool, index), label)
        index, label = ByShares(ballots, alike, ALPHA).labels(task)
        if way == "labels":
            return Lessons(take(self.pool, index), label)
        votes, holders = np.stack(ballots.votes), ballots.holders()[task]
        share = np.stack([(votes == code).sum(axis=0) for code in task], axis=1) / holders
        if way.startswith("all_shares"):
            index = np.flatnonzero(share.sum(axis=1))
        found = share[index] ** (int(way[-1]) if way.startswith("won") else 1)
        return Lessons(take(self.pool, index), found / found.sum(axis=1, keepdims=True))

    def learnt(self, job: tuple[str, int]) -> float:
        """The accuracy of a silo after an update, ÷ the one before."""
        way, place = job
        silo, network = self.silos[place], self.network(place)
        assert silo.data.test is not None
        X, y = silo.data.test
        network.set_weights(self.weights[place])
        before = np.mean(network.predict(X) == y)
        taught = self.lessons(way, place).after(silo.data.train)
        schedule = "constant" if way.endswith("constant") else "cosine"
        training = network.update.but(passes=PASSES, schedule=schedule).on(len(taught))
        network.fit(taught.X, taught.y, n_classes=len(silo.task), seed=2, warm=True, training=training)
        return float(np.mean(network.predict(X) == y) / before)


def main() -> None:
    words = sys.argv[1:]
    whole = "whole" in words
    seed = next((int(word) for word in words if word.isdigit()), 1)
    one = Experiment(seed, voters=50 if whole else 20)
    drawn = np.random.default_rng(seed).choice(len(one.silos), 6 if whole else 4, replace=False).tolist()
    jobs = [(way, place) for way in WAYS for place in drawn]
    found = dict(zip(jobs, side_by_side(one.learnt, jobs), strict=True))
    for way in WAYS:
        values = [found[way, place] for place in drawn]
        gain, half = interval([found[way, place] - found["paper", place] for place in drawn])
        print(f"{way}: relative accuracy {statistics.fmean(values):.3f}, over paper {gain:+.3f} ± {half:.3f}")
        print(f"figure {way} {statistics.fmean(values):.3f}", flush=True)


if __name__ == "__main__":
    main()
