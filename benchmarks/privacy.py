"""Whether privacy holds, and what it costs; wants MNIST, Adult and DBpedia.

    python benchmarks/privacy.py                     the attack
    python benchmarks/privacy.py digits 1000         the cost: digits, adult or dbpedia, 200 or 1000
    python benchmarks/privacy.py dbpedia 1000 0      with some of the seeds 0 to 4 only

A seed of DBpedia takes almost three minutes of processor time, so that is run seed by seed.

Cost: CoFED among five silos with three kinds of learners, once as it is and once with ε = 8, δ = 1e-5 at
every silo. Accuracies are means over silos and seeds that nothing was chosen on. Votes are elected by the
paper's rule, and every silo takes what it is offered: a silo that may refuse would hide what is lost.

Attack: voters are trained with and without a canary, many times, and somebody tells them apart: by the vote
on the canary, which lies in the pool, with a wrong label, or by all that a voter has learnt about a feature
that only the canary has. What was found, a lower bound on ε at 95 % confidence, is held against the claim.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Privacy, Silo, data
from cosilo.data.instances import take
from cosilo.engines.local.engine import LocalEngine
from cosilo.privacy import dp_sgd
from cosilo.privacy.accounting import noise_multiplier
from cosilo.privacy.attack import empirical_epsilon
from cosilo.privacy.features import features
from cosilo.privacy.voter import schedule_for

SILOS, POOL, TEST = 5, 1500, 1000
SEEDS = range(5)
DATASETS = {"digits": "mnist", "adult": "adult", "dbpedia": "dbpedia"}
METHOD = CoFED(rule="paper", weights="equal", accept="always")
PRIVACY = Privacy(epsilon=8, delta=1e-5)
#: Claims to attack, and how many voters are trained with the canary, and without it.
CLAIMS, VOTERS = (1.0, 2.0, 8.0), 400


def flat(X: NDArray[Any]) -> NDArray[np.float64]:
    return X.reshape(len(X), -1) / 255


def columns() -> Any:
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )


def words() -> Any:
    return TfidfVectorizer(sublinear_tf=True, max_features=20_000)


def learners(name: str) -> list[Any]:
    """Three kinds, dealt to silos in turn."""
    logistic, forest = LogisticRegression(max_iter=200, C=10), RandomForestClassifier(30, random_state=0)
    if name == "digits":
        found = [(PCA(40, random_state=0), logistic), (forest,), (KNeighborsClassifier(3),)]
        return [make_pipeline(FunctionTransformer(flat), *steps) for steps in found]
    if name == "adult":
        tree = DecisionTreeClassifier(max_depth=6, random_state=0)
        return [make_pipeline(columns(), last) for last in (logistic, forest, tree)]
    return [make_pipeline(words(), last) for last in (logistic, MultinomialNB(alpha=0.1), LinearSVC())]


def accuracies(name: str, size: int, seed: int, privacy: Privacy | None) -> tuple[float, float]:
    """After local training and after CoFED, the mean over silos."""
    train, test = (data.load(DATASETS[name], split) for split in ("train", "test"))
    rng = np.random.default_rng(seed)
    places = rng.permutation(len(train))[: SILOS * size + POOL]
    judged = test.take(rng.permutation(len(test))[:TEST])
    kinds = learners(name)
    silos = [
        Silo(
            f"silo-{number}",
            take(train.X, part),
            train.y[part],
            kinds[number % len(kinds)],
            test=(judged.X, judged.y),
            task=[str(code) for code in range(len(train.classes))],
            privacy=privacy,
        )
        for number, part in enumerate(np.split(places[: SILOS * size], SILOS))
    ]
    with tempfile.TemporaryDirectory() as place:
        pool = take(train.X, places[SILOS * size :])
        run = Federation(silos, pool, METHOD, seed=seed, engine=LocalEngine(2)).run(Path(place) / "run")
        local, federated = (statistics.mean(run.scores(stage).values()) for stage in ("local", "federated"))
    return local, federated


def cost(name: str, size: int, seeds: Sequence[int]) -> dict[str, float]:
    plain = [accuracies(name, size, seed, None) for seed in seeds]
    private = [accuracies(name, size, seed, PRIVACY) for seed in seeds]
    alone, without, with_it = (
        statistics.mean(one[place] for one in found)
        for found, place in ((plain, 0), (plain, 1), (private, 1))
    )
    lost = [100 * (one[1] - other[1]) for one, other in zip(plain, private, strict=True)]
    print(
        f"{name}, silos of {size}: alone {alone:.3f}, CoFED {without:.3f}, with ε = 8 {with_it:.3f}; "
        f"points lost by seed: {', '.join(f'{points:.1f}' for points in lost)}",
        flush=True,
    )
    case = f"{name}_{size}"
    return {
        f"{case}_alone": alone,
        f"{case}_cofed": without,
        f"{case}_private": with_it,
        f"{case}_relative": with_it / without,
        f"{case}_points_lost": statistics.mean(lost),
    }


def told_apart(trained: Callable[[bool], tuple[float, float]], voters: int) -> list[float]:
    """What is found by each of two scores, from voters that were trained with the canary and without it."""
    scores = {canary: np.array([trained(canary) for _ in range(voters)]) for canary in (True, False)}
    return [
        empirical_epsilon(scores[True][:, place], scores[False][:, place], PRIVACY.delta) for place in (0, 1)
    ]


def canaries(epsilon: float) -> Callable[[bool], tuple[float, float]]:
    """A hundred digits, and one whose label is wrong and whose last feature is its own."""
    X, y = load_digits(return_X_y=True)
    rows = np.hstack([features(X[500:], 10)(X[:101]), np.zeros((101, 1))])
    codes = y[:101].copy()
    rows[100], codes[100] = 0.1 * rows[100], (y[100] + 5) % 10
    rows[100, -1] = 10.0
    schedule = schedule_for(epsilon)
    noise = noise_multiplier(epsilon, PRIVACY.delta, schedule) if np.isfinite(epsilon) else 0.0

    def trained(canary: bool) -> tuple[float, float]:
        n = 101 if canary else 100
        count = dp_sgd.noisy_count(n, schedule.count_noise)
        layers = dp_sgd.train(rows[:n], codes[:n], 10, noise, schedule, count)
        vote = dp_sgd.chances(layers, rows[100:]).argmax()
        own = layers[0][0][-1]
        wrong = np.delete(own, codes[100]).mean()
        return float(vote == codes[100]), count * float(own[codes[100]] - wrong)

    return trained


def attack() -> dict[str, float]:
    figures: dict[str, float] = {}
    for claim in CLAIMS:
        by_vote, by_all = told_apart(canaries(claim), VOTERS)
        print(
            f"claimed ε = {claim:g}: found {by_vote:.2f} by votes, {by_all:.2f} by all",
            flush=True,
        )
        figures |= {f"found_by_votes_{claim:g}": by_vote, f"found_by_all_{claim:g}": by_all}
    by_vote, by_all = told_apart(canaries(np.inf), VOTERS)
    print(f"without noise: found {by_vote:.2f} by votes, {by_all:.2f} by all; {VOTERS} voters show no more")
    return figures | {"found_by_votes_without_noise": by_vote, "found_by_all_without_noise": by_all}


def main(words: Sequence[str]) -> None:
    match words:
        case []:
            figures = attack()
        case [("digits" | "adult" | "dbpedia") as name, ("200" | "1000") as size, *seeds]:
            figures = cost(name, int(size), [int(seed) for seed in seeds] or SEEDS)
        case _:
            raise SystemExit(__doc__)
    for figure, value in figures.items():
        print(f"figure {figure} {value:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
