"""How often does a silo that limits its coordinator refuse an honest update? (needs COSILO_DATA)

Five to eight silos with mixed learners train alone on a few records each, vote on a pool of 300 and get the
tallies of an honest election, as CoFED with its defaults sends them. In every second federation of a dataset
with more than two classes each silo has six tenths of the classes. The silos read the tallies and hold the
labels against the votes that left them (`[allow] agreement`, with the default of 0.1); update training itself
is left out. A cell is a dataset, the records of a silo, and ε (none: no `privacy`). "mixed" are silos of 20,
40 and 150 records in turn, of which every second has `privacy`.

Beside the share of honest updates that are refused stands how many of the same silos refuse labels that are
contrary to their votes (each voted class shifted by one), contrary to the truth, or half of them wrong; and
how many honest updates a comparison without statistics would refuse (κ with even classes below 0.1, as until
2026). "compared" is the share of silos that compare at all: others have votes that are mostly noise.

    python benchmarks/honest_refusals.py                  60 honest updates a cell at least
    python benchmarks/honest_refusals.py 300              so many
    python benchmarks/honest_refusals.py 300 adult        of one dataset: digits, adult or dbpedia
    python benchmarks/honest_refusals.py 300 adult 450    with so many records a silo
"""

import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Privacy, Silo, data
from cosilo.data.instances import take
from cosilo.errors import Refused
from cosilo.methods.cofed.elections import Ballots, ByShares
from cosilo.methods.cofed.messages import UpdateMessages
from cosilo.protocol.allow import Allow
from cosilo.protocol.message import Fields
from cosilo.protocol.stage import LOCAL
from cosilo.protocol.task import Task

#: Seeds 0 to 49 chose the rule.
FIRST_SEED, UPDATES, POOL = 100, 60, 300
NAMES, SIZES, EPSILONS = ("digits", "adult", "dbpedia"), ("20", "40", "150", "mixed"), (None, 1, 3, 8)
MIXED = (20, 40, 150)
METHOD = CoFED()


class OnlyAsked(Silo):
    """A silo that holds the labels of an update against its votes, and then does not train."""

    told: tuple[NDArray[Any], NDArray[Any]] | None = None

    def hold_against_votes(self, lessons: Any) -> None:
        """Note what came."""
        self.told = lessons.places, lessons.likeliest
        super().hold_against_votes(lessons)

    def fit(self, stage: Any, **options: Any) -> None:
        """Train alone only."""
        if stage == LOCAL:
            super().fit(stage, **options)

    def refuses(self, index: NDArray[Any], label: NDArray[Any]) -> bool:
        """Return whether it refuses these labels."""
        try:
            super().hold_against_votes(self.pool_lessons(index, label))
        except Refused:
            return True
        return False


@dataclass
class Dataset:
    """Instances, class codes, and the learners that silos have in turn."""

    X: Any
    y: NDArray[Any]
    classes: int
    learners: list[Any]


def dataset(name: str) -> Dataset:
    """Load one, and its learners."""
    last: list[Any] = [
        DecisionTreeClassifier(random_state=0),
        GaussianNB(),
        KNeighborsClassifier(3),
        LogisticRegression(max_iter=200),
        RandomForestClassifier(20, random_state=0),
        SVC(),
    ]
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return Dataset(X, y, 10, last)
    loaded = data.load(name, "train")
    first: Any = TfidfVectorizer(sublinear_tf=True, max_features=5000)
    if name == "adult":
        numbers = (StandardScaler(), make_column_selector(dtype_include="number"))
        words = OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")
        first = make_column_transformer(numbers, words, sparse_threshold=0)
    else:
        last = [MultinomialNB(), LinearSVC(), LogisticRegression(max_iter=200)]
    learners = [make_pipeline(clone(first), one) for one in last]
    return Dataset(loaded.X, np.asarray(loaded.y), len(loaded.classes), learners)


@dataclass
class Federated:
    """Silos that have voted and were sent an update, with the true classes of the pool in their codes."""

    silos: list[OnlyAsked]
    truth: list[NDArray[np.int64]]
    #: Whether each refused the honest update.
    refused: list[bool]


def federations(
    one: Dataset, size: str, epsilon: float | None, updates: int, folder: Path
) -> Iterator[Federated]:
    """Yield federations until there are so many updates."""
    seed, count = FIRST_SEED, 0
    while count < updates:
        found = federation(one, size, epsilon, seed, folder / str(seed))
        count, seed = count + len(found.silos), seed + 1
        yield found


def federation(one: Dataset, size: str, epsilon: float | None, seed: int, folder: Path) -> Federated:
    """Draw silos and a pool, let the silos vote, and send them what was elected."""
    rng = np.random.default_rng([seed, 0 if size == "mixed" else int(size)])
    order = rng.permutation(len(one.y))
    pool, left = order[:POOL], order[POOL:]
    most = 6 if one.classes * 150 > len(left) else 8
    silos, truth = [], []
    for place in range(5 + seed % (most - 4)):
        task = np.arange(one.classes)
        if seed % 2 and one.classes > 2:
            task = np.sort(rng.choice(one.classes, 6 * one.classes // 10, replace=False))
        fits = left[np.isin(one.y[left], task)]
        records = fits[: MIXED[place % 3] if size == "mixed" else int(size)]
        if len(set(one.y[records])) == 1:
            records[-1] = fits[one.y[fits] != one.y[records[0]]][0]
        left = left[~np.isin(left, records)]
        is_private = epsilon is not None and (size != "mixed" or place % 2 == 0)
        silo = OnlyAsked(
            f"silo-{place}",
            take(one.X, records),
            one.y[records].astype(str),
            one.learners[(place + seed) % len(one.learners)],
            test=None,
            task=task.astype(str).tolist(),
            pool=take(one.X, pool),
            privacy=Privacy(epsilon=epsilon or 1, ledger=folder / str(place)) if is_private else None,
        )
        silo.allow, silo.seed = Allow(), seed
        if silo.privacy is None:  # else the model does not vote
            silo.fit(LOCAL)
        silos.append(silo)
        codes = np.full(one.classes, -1)
        codes[task] = np.arange(len(task))
        truth.append(codes[one.y[pool]])
    return Federated(silos, truth, update(silos))


def update(silos: Sequence[OnlyAsked]) -> list[bool]:
    """Let the silos vote, send each its tallies, and return who refuses them."""
    votes = {silo.name: Fields({"votes": silo.label_pool()}) for silo in silos}
    tasks = {silo.name: silo.task for silo in silos}
    classes = {name for silo in silos for name in silo.task.classes}
    vocabulary = Task(tuple(sorted(classes, key=int)))
    ballots = Ballots.of(votes, tasks, vocabulary, list(votes))
    credible = ballots.credibility()
    outcome = ByShares(ballots.read(credible), credible.weight.tolist(), METHOD.alpha, soft=True)
    more: Any = {"stage": "federated", "agreement": float(np.median(credible.kappa))}
    messages = UpdateMessages(outcome, more)
    refused = []
    for place, silo in enumerate(silos):
        message: Any = messages.for_silo(silo.task.codes_in(vocabulary), place)
        try:
            METHOD.update(silo, **message)
        except Refused:
            refused.append(True)
        else:
            refused.append(False)
    return refused


def would_be_refused_until_2026(silo: OnlyAsked) -> bool:
    """Return what κ with even classes says of the labels that came."""
    if silo.told is None:
        return False
    index, label = silo.told
    own = silo.sent_votes[index]
    voted = own >= 0
    if voted.sum() < 20:
        return False
    chance = 1 / len(silo.task)
    return bool((np.mean(own[voted] == label[voted]) - chance) / (1 - chance) < 0.1)


def figures(found: Iterable[Federated]) -> dict[str, float]:
    """Return shares of the silos of a cell."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, float]] = []
    for federated in found:
        for silo, truth, refused in zip(federated.silos, federated.truth, federated.refused, strict=True):
            votes, classes, everywhere = silo.sent_votes.astype(np.int64), len(silo.task), np.arange(POOL)
            known = np.flatnonzero(truth >= 0)
            wrong = (truth[known] + rng.integers(1, classes, len(known))) % classes
            half = np.where(rng.random(len(known)) < 0.5, wrong, truth[known])
            rows.append(
                {
                    "refused": refused,
                    "refused_until_2026": would_be_refused_until_2026(silo),
                    "vote_is_right": float(np.mean(votes[known] == truth[known])),
                    "compared": silo.privacy is None or bool(silo.notes["votes_are_informed"]),
                    "contrary_to_votes_refused": silo.refuses(everywhere, (votes + 1) % classes),
                    "contrary_to_truth_refused": silo.refuses(known, (truth[known] + 1) % classes),
                    "half_wrong_refused": silo.refuses(known, half),
                }
            )
    return {"updates": len(rows)} | {
        name: float(np.mean([row[name] for row in rows])) for name in (rows[0] if rows else {})
    }


def main(updates: int, names: Sequence[str], sizes: Sequence[str]) -> None:
    warnings.simplefilter("ignore")  # few records
    for name in names:
        one = dataset(name)
        for size in sizes:
            for epsilon in EPSILONS:
                if size == "mixed" and epsilon is None:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    found = figures(federations(one, size, epsilon, updates, Path(folder)))
                cell = f"{name}_{size}_epsilon_{epsilon or 'none'}"
                for figure, value in found.items():
                    print(f"figure {cell}_{figure} {value:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else UPDATES, sys.argv[2:3] or NAMES, sys.argv[3:] or SIZES)
