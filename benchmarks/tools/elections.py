"""Federations that have come to their election: silos that have trained alone and voted."""

import atexit
import math
import os
import statistics
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import CoFED, Silo
from cosilo.aggregation.voting import labels_from, winners
from cosilo.config import build, settings
from cosilo.methods.cofed.elections import Ballots, ByShares, ByThreshold, Outcome
from cosilo.protocol.message import Fields
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure
from cosilo.protocol.task import vocabulary

#: Eight kinds of models, as in the demo; and those of them that are quick to train.
SLOW = """
    { use = "sklearn.ensemble.HistGradientBoostingClassifier", max_iter = 30, min_samples_leaf = 3 },
    { use = "sklearn.neural_network.MLPClassifier", max_iter = 300 },
"""
MIXED = """[
    { use = "sklearn.tree.DecisionTreeClassifier" },
    { use = "sklearn.ensemble.RandomForestClassifier", n_estimators = 50 },
    { use = "sklearn.svm.SVC" },
    { use = "sklearn.neighbors.KNeighborsClassifier", n_neighbors = 3 },
    { use = "sklearn.naive_bayes.GaussianNB" },
    { use = "sklearn.linear_model.LogisticRegression", max_iter = 2000 },
%s]"""
TEXT = """[
    { use = "sklearn.naive_bayes.MultinomialNB" },
    { use = "sklearn.svm.LinearSVC" },
    { use = "sklearn.linear_model.LogisticRegression", max_iter = 500 },
]"""
CENSUS = """[
    { use = "sklearn.tree.DecisionTreeClassifier" },
    { use = "sklearn.svm.SVC" },
    { use = "cosilo.learners.gam.GAM" },
    { use = "sklearn.neural_network.MLPClassifier", hidden_layer_sizes = [10], max_iter = 300 },
]"""

#: Tables that come with scikit-learn and are no named datasets.
FILES = {"wine": "load_wine", "breast cancer": "load_breast_cancer"}

RECIPES = {
    "digits": (
        "digits",
        'use = "superclasses", silos = 8, classes = [4, 6], per_class = 10',
        MIXED % SLOW,
        None,
    ),
    "quick digits": (
        "digits",
        'use = "superclasses", silos = 8, classes = [4, 6], per_class = 10',
        MIXED % "",
        None,
    ),
    "few images": (
        "fashion_mnist",
        'use = "superclasses", silos = 8, classes = [6, 9], per_class = 5',
        MIXED % "",
        1000,
    ),
    "shifted images": (
        "kannada_mnist",
        'use = "superclasses", silos = 8, classes = [6, 9], per_class = 5',
        MIXED % "",
        1000,
    ),
    "dbpedia": ("dbpedia", 'use = "superclasses", silos = 10, classes = [5, 7], per_class = 10', TEXT, 1000),
    "adult": ("adult", 'use = "iid", silos = 12, size = 200', CENSUS, 2000),
    "wine": ("wine", 'use = "iid", silos = 5, size = 10', MIXED % "", None),
    "breast cancer": ("breast cancer", 'use = "iid", silos = 8, size = 20', MIXED % "", None),
    "three with digits": ("digits", 'use = "iid", silos = 3, size = 100', MIXED % "", None),
    "three with wine": ("wine", 'use = "iid", silos = 3, size = 12', MIXED % "", None),
    "three with cancer": ("breast cancer", 'use = "iid", silos = 3, size = 30', MIXED % "", None),
    "five with digits": ("digits", 'use = "iid", silos = 5, size = 60', MIXED % "", None),
    "four with some digits": (
        "digits",
        'use = "superclasses", silos = 4, classes = [5, 7], per_class = 10',
        MIXED % "",
        None,
    ),
}


#: What a label counts for: by the share of the class that won, that of the next, and how many have the class.
Counts = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]


@dataclass
class Polled:
    """Silos with their local models, and what they voted."""

    silos: list[Silo]
    ballots: Ballots

    def read(self, method: CoFED) -> tuple[Ballots, list[float], float]:
        """The votes as the method reads them, what each weighs, and how well silos agree on the pool."""
        credible, agree = self.ballots.credibility(), method.weights == "agreement"
        weights = credible.weight.tolist() if agree else [1.0] * len(self.silos)
        ballots = self.ballots.read(credible) if agree else self.ballots
        return ballots, weights, float(np.median(credible.kappa))

    def elect(self, method: CoFED) -> tuple[Outcome, float]:
        """What the method makes of the votes, and how well silos agree on the pool."""
        ballots, weights, agreement = self.read(method)
        outcome: Outcome = (
            ByThreshold(ballots, method.alpha, weights)
            if method.rule == "paper"
            else ByShares(ballots, weights, method.alpha)
        )
        return outcome, agreement

    def learn(
        self, method: CoFED, who: Iterable[int] | None = None, counts: Counts | None = None
    ) -> list[Silo]:
        """Silos after the update, as the method does it, or with labels that count as `counts` says."""
        outcome, agreement = self.elect(method)
        ballots, weights, _ = self.read(method)
        won = winners(ballots.votes, ballots.tasks, ballots.n_classes, weights, method.alpha)
        taught = []
        for place in range(len(self.silos)) if who is None else who:
            before = self.silos[place]
            silo = before.fresh()
            silo.learner, silo.trained, silo.seed = deepcopy(before.learner), True, before.seed
            silo.scores.take(LOCAL, Measure.OWN, before.scores[LOCAL][Measure.OWN])
            task = self.ballots.tasks[place]
            tallies = replace(outcome.tallies(task), own=outcome.own_weight(place))
            labels = labels_from(tallies, outcome.rule, silo.label_pool(method.margin))
            if counts is not None:
                index, code = labels.index, np.array(task)[labels.label]
                holders = ballots.holders()[code]
                weight = 255 * counts(won.share[index], won.second[index], holders)
                labels = replace(labels, weight=weight)
            method.learn(silo, labels, tallies.part.astype(np.float32), FEDERATED, agreement)
            taught.append(silo)
        return taught


def polled(name: str, seed: int, nonsense: bool = False) -> Polled:
    """A federation whose silos have trained and voted; on a pool of shuffled pixels or words if so wanted."""
    dataset, split, learners, size = RECIPES[name]
    where = f'path = "{_file(dataset)}"\nlabel = "class"' if dataset in FILES else f'dataset = "{dataset}"'
    text = f'[method]\nuse = "cofed"\n[simulation]\n{where}\nsplit = {{ {split} }}\n'
    text += f"learners = {learners}\n" + ("test = 1000\n" if dataset not in ("digits", *FILES) else "")
    text += "[pool]\n" + (
        'dataset = "adult"\nindependent = true\n' if dataset == "adult" else "rest = true\n"
    )
    text += f"size = {size}\n" if size else ""
    values = {**tomllib.loads(text), "seed": seed}
    source = build.Source(name, Path())
    members, table = build.make_members(settings.validate(values, name), source)
    assert table is not None
    pool = _nonsense(table.X, seed) if nonsense else table.X
    silos = [silo for silo in members if isinstance(silo, Silo)]
    for place, silo in enumerate(silos):
        silo.use_pool(pool)
        silo.seed = 1000 * seed + place
        silo.hold_out_test_data()
        silo.fit(LOCAL)
    return Polled(silos, poll(silos))


def poll(silos: Sequence[Silo]) -> Ballots:
    """What silos vote."""
    tasks = {silo.name: silo.task for silo in silos}
    replies = {silo.name: Fields({"votes": silo.label_pool()}) for silo in silos}
    return Ballots.of(replies, tasks, vocabulary(tasks.values()), tasks)


def relative(silo: Silo, measure: Measure = Measure.OWN) -> float:
    """Accuracy after the update ÷ alone; without an update nothing changed."""
    scores = silo.scores.get(FEDERATED, {})
    score = scores.get(measure) or scores.get(Measure.OWN) or silo.scores[LOCAL][Measure.OWN]
    return score.accuracy / silo.scores[LOCAL][Measure.OWN].accuracy


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval, by Student's t."""
    from scipy.stats import t

    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), float(t.ppf(0.975, len(values) - 1)) * error


def _file(name: str) -> str:
    """A table of scikit-learn's as a file, its columns scaled."""
    from sklearn import datasets

    path = Path(tempfile.gettempdir()) / f"cosilo-benchmark-{os.getpid()}-{name.replace(' ', '-')}.csv"
    if not path.exists():
        found = getattr(datasets, FILES[name])(as_frame=True)
        table = (found.data - found.data.mean()) / found.data.std()
        table.assign(**{"class": found.target_names[found.target]}).to_csv(path, index=False)
        atexit.register(path.unlink)
    return str(path)


def _nonsense(X: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if isinstance(X, np.ndarray) and X.dtype.kind in "uif":
        return np.stack([rng.permutation(row) for row in X.reshape(len(X), -1)]).reshape(X.shape)
    words = np.array([word for text in X for word in str(text).split()])
    return [" ".join(rng.choice(words, max(3, len(str(text).split())))) for text in X]
