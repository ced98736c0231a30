"""Do refusals of a silo with `privacy` answer questions about the model that must not vote?

Such a silo votes by a private voter; its own model is trained without noise, and nothing of it may leave.
`[allow] agreement` compares labels that were sent with the silo's votes: a refusal is an answer.

Reading: a hostile coordinator begins many runs (`runs_per_day` is raised; votes of the same voter cost
nothing after the first run) and sends in each the one update that counts. It looks for labels of 60 instances
that are only just refused, so that one right label more is not, and then offers one class of one other
instance at a time. A class that is taken is what the silo compares with. It begins with the class that the
silo voted for, and goes on in the order of the classes' frequencies; runs that are left ask at random.
Counted is of how many pool instances it then knows the own model's class, against how many the votes
themselves tell. Every fifth request also has a stage that is none. All requests are repeated at a twin with
the same votes and another own model: answers that differ would tell something of the own model.

Canary: a record with a wrong label and a feature that no other record has, which lies in the pool. The own
model (a nearest neighbour) says its wrong label exactly if it was trained on it. The attacker knows all other
records. Runs with and without it, a voter of its own each, ε = 1, `shares = ["labels"]`: from the vote on the
canary, from the outcome of an update made so that the canary decides it by the own model, of another one by
the votes, from the number of bytes and texts of all answers, and from all of these together (a logistic
regression learned on half of the runs), a lower bound on ε at 95 % confidence, to hold against the claim.

Both also with the rule that compared labels with the own model, as up to 2026: there the attacks work.

    python benchmarks/oracle.py            200 runs, and 100 with and without the canary
    python benchmarks/oracle.py 500 400    other numbers
    python benchmarks/oracle.py 0 400      one of the two only
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Privacy, Silo
from cosilo.aggregation.voting import contradicts
from cosilo.engines.local.in_process import open_boundary
from cosilo.errors import Refused
from cosilo.privacy.attack import empirical_epsilon
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Ask, Failure
from cosilo.protocol.contract import Contract
from cosilo.protocol.message import Message
from cosilo.protocol.wire import decode, encode
from cosilo.silo import predicting
from cosilo.silo.lessons import Lessons

RUNS, CANARIES, CLASSES = 200, 100, 10
#: So many records that votes with ε = 1 are compared at all.
RECORDS, POOL, BASE = 600, 200, 60
#: Records beside the canary.
OTHERS = 500
DELTA = 1e-5
LIMITS = Allow(runs_per_day=10**9)
METHOD = CoFED(class_weights="none")
#: By instance of the pool, the class that an update says.
Told = dict[int, int]


def hold_against_model(self: Silo, lessons: Lessons) -> None:
    """Compare labels with the silo's own model, as an earlier version did."""
    assert lessons.places is not None
    own = predicting.predict(self, self.need_pool(), self.task)[lessons.places]
    chance = 1 / len(self.task)
    if (np.mean(own == lessons.likeliest) - chance) / (1 - chance) < LIMITS.agreement:
        raise Refused("labels it was sent do not go with its own model")


@contextmanager
def rule(old: bool) -> Iterator[None]:
    """Let silos hold labels against their own model for a while, if `old`."""
    before = Silo.hold_against_votes
    if old:
        Silo.hold_against_votes = hold_against_model  # type: ignore[method-assign]
    try:
        yield
    finally:
        Silo.hold_against_votes = before  # type: ignore[method-assign]


def message(told: Told, pool: int, stage: str = "federated") -> Message:
    """Return an update by which ten silos agree on these classes, and on no other instance on any."""
    counts = np.zeros((pool, CLASSES), np.uint16)
    counts[list(told), list(told.values())] = 10
    return {
        "counts": {"000000000": counts},
        "other": np.zeros(pool, np.float32),
        "total": np.full(CLASSES, 10, np.uint16),
        "counted": np.ones(CLASSES, np.uint8),
        "own": 1,
        "unit": 1.0,
        "stage": stage,
    }


@dataclass
class Transcript:
    """All that left a silo in a run."""

    votes: NDArray[np.int64]
    #: By answer, its bytes or the text of its failure, without the signature's random part.
    answers: list[bytes]
    #: Whether the update was done.
    taken: bool


def play(silo: Silo, folder: Path, number: int, told: Told, stage: str = "federated") -> Transcript:
    """Begin a run of one update, and ask what the method can ask."""
    silo = silo.fresh()
    silo.allow = LIMITS
    contract = Contract.of(METHOD, number)
    boundary = open_boundary(silo, METHOD, contract, folder / f"run-{number}")
    update = message(told, len(silo.need_pool()), stage)
    done: Message = {"stage": "federated"}
    asks = [("hello", {}), ("train", {}), ("label", {}), ("update", update), ("decision", {})]
    answers: list[bytes] = []
    for place, (step, content) in enumerate([*asks, ("evaluate", done)], start=1):
        answer = boundary.answer(Ask(place, step, encode(content), contract.hash)).content
        answers.append(answer.text.encode() if isinstance(answer, Failure) else answer)
        if step == "update":
            taken = not isinstance(answer, Failure)
    votes = np.asarray(dict(decode(answers[2]))["votes"], np.int64)
    return Transcript(votes, answers, taken)


# ---------------------------------------------------------------------- reading classes


@dataclass
class Reader:
    """Reads what a silo compares labels with, in a given number of runs."""

    silo: Silo
    folder: Path
    left: int
    #: What was asked, and all that came.
    asked: list[tuple[Told, str]] = field(default_factory=list)
    heard: list[Transcript] = field(default_factory=list)

    def is_taken(self, told: Told) -> bool:
        """Return what the answer to an update says; now and then ask the same with a stage that is none."""
        heard = self._spend(told, "federated")
        if len(self.asked) % 5 == 0 and self.left > 0:
            self._spend(told, "round")
        return heard.taken

    def _spend(self, told: Told, stage: str) -> Transcript:
        """Spend a run on one update."""
        self.left -= 1
        self.asked.append((dict(told), stage))
        self.heard.append(play(self.silo, self.folder, len(self.asked), told, stage))
        return self.heard[-1]

    def read(self) -> dict[int, int]:
        """Return the class of each instance that was found out."""
        votes = play(self.silo, self.folder, 0, {}).votes
        some = np.random.default_rng(0).permutation(len(votes))
        base, rest = some[:BASE], some[BASE:]

        def half_wrong(wrong: int) -> Told:
            shift = np.arange(BASE) < wrong
            return dict(zip(base.tolist(), ((votes[base] + shift) % CLASSES).tolist(), strict=True))

        low, high = 0, BASE
        if not self.is_taken(half_wrong(low)) or self.is_taken(half_wrong(high)):
            self._ask_at_random(half_wrong(high), rest)  # nothing is compared: there is nothing to read
            return {}
        while high - low > 1 and self.left > 0:
            middle = (low + high) // 2
            low, high = (middle, high) if self.is_taken(half_wrong(middle)) else (low, middle)
        tight = half_wrong(high)
        del tight[int(base[high - 1])]
        frequent = np.argsort(-np.bincount(votes, minlength=CLASSES), kind="stable").tolist()
        found: dict[int, int] = {}
        for place in rest.tolist():
            first = int(votes[place])
            for code in [first, *(code for code in frequent if code != first)]:
                if self.left <= 0:
                    return found
                if self.is_taken({**tight, place: code}):
                    found[place] = code
                    break
        self._ask_at_random(tight, rest)
        return found

    def _ask_at_random(self, told: Told, rest: NDArray[np.int64]) -> None:
        """Spend what is left on any classes of any instances."""
        rng = np.random.default_rng(1)
        while self.left > 0:
            self.is_taken({**told, int(rng.choice(rest)): int(rng.integers(CLASSES))})


def reading(epsilon: float, runs: int, old: bool) -> dict[str, float]:
    """Return of how many classes of the own model the attacker is right, and the votes alone."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    own, pool = slice(RECORDS), X[RECORDS : RECORDS + POOL]
    model = DecisionTreeClassifier(random_state=0)
    with tempfile.TemporaryDirectory() as place, rule(old):
        folder = Path(place)
        promise = Privacy(epsilon=epsilon, delta=DELTA, ledger=folder / "ledger")

        def silo(learner: Any) -> Silo:
            task = map(str, range(CLASSES))
            return Silo(
                "silo",
                X[own],
                y[own],
                learner,
                test=None,
                pool=pool,
                task=task,
                shares=["labels"],
                privacy=promise,
            )

        reader = Reader(silo(model), folder / "runs", runs - 1)
        found = reader.read()
        twin = silo(GaussianNB())
        different = 0
        for number, ((told, stage), heard) in enumerate(zip(reader.asked, reader.heard, strict=True), 1):
            other = play(twin, folder / "twin", number, told, stage)
            different += other.answers != heard.answers
    truth = model.fit(X[own], y[own]).predict(pool)
    votes = reader.heard[0].votes
    guess = votes.copy()
    guess[list(found)] = list(found.values())
    texts = {answer for heard in reader.heard for answer in heard.answers if answer.startswith(b"silo")}
    name = f"epsilon_{epsilon:g}{'_old_rule' if old else ''}"
    return {
        f"runs_{name}": len(reader.asked) + 1,
        f"classes_read_{name}": len(found),
        f"right_by_votes_{name}": int(np.sum(votes == truth)),
        f"right_by_oracle_{name}": int(np.sum(guess == truth)),
        f"answers_that_differ_at_twin_{name}": different,
        f"kinds_of_failure_{name}": len({text.split(b":", 2)[1] for text in texts}),
    }


# ---------------------------------------------------------------------- the canary


def canary_runs(epsilon: float, runs: int, old: bool) -> dict[str, float]:
    """Return the lower bounds on ε from runs with the canary and runs without it."""
    X, y = load_digits(return_X_y=True)
    own, pool = X[: OTHERS + 1].copy(), np.vstack([X[1000:1100], X[OTHERS : OTHERS + 1]])
    own[-1] = pool[-1] = 0.1 * X[OTHERS]
    own[-1, 0] = pool[-1, 0] = 16.0  # a pixel that is black in all digits
    codes = y[: OTHERS + 1].copy()
    codes[-1] = wrong = (y[OTHERS] + 5) % CLASSES
    without = KNeighborsClassifier(1).fit(own[:-1], codes[:-1]).predict(pool)
    rng = np.random.default_rng(0)
    shift = rng.integers(1, CLASSES, len(pool))

    def decided_by_canary(reference: NDArray[np.int64], size: int, right: int) -> Told:
        """Labels of which `right` are those of a reference, and the canary's wrong one."""
        some = rng.permutation(100)[: size - 1]
        label = (reference[some] + shift[some]) % CLASSES
        label[:right] = reference[some[:right]]
        return {**dict(zip(some.tolist(), label.tolist(), strict=True)), 100: int(wrong)}

    def decided_by(votes: NDArray[np.int64]) -> Told:
        """As many right labels as are not enough if the silo does not vote for the canary's class."""
        other = votes.copy()
        other[100] = (wrong + 1) % CLASSES
        for right in range(79, -1, -1):
            told = decided_by_canary(votes, 80, right)
            if contradicts(other, np.array(list(told)), np.array(list(told.values())), CLASSES, 0.1):
                return told
        return told

    # Were it the own model that is asked: until 2026, 3 of 19 right labels were refused, and 4 of 20 not.
    by_model = decided_by_canary(without, 20, 3) if old else decided_by(without)

    def one(canary: bool) -> list[float]:
        n = OTHERS + canary
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            silo = Silo(
                "silo",
                own[:n],
                codes[:n],
                KNeighborsClassifier(1),
                test=None,
                pool=pool,
                task=map(str, range(CLASSES)),
                shares=["labels"],
                privacy=Privacy(epsilon=epsilon, delta=DELTA, ledger=folder / "ledger"),
            )
            first = play(silo, folder, 0, by_model)
            second = play(silo, folder, 1, decided_by(first.votes))
        sizes = [len(answer) for heard in (first, second) for answer in heard.answers]
        said = np.eye(CLASSES)[first.votes].ravel().tolist()
        outcomes = [float(first.votes[100] == wrong), float(first.taken), float(second.taken)]
        return [*outcomes, *sizes, *said]

    with rule(old):
        with_it = np.array([one(True) for _ in range(runs)])
        without_it = np.array([one(False) for _ in range(runs)])
    half = runs // 2
    seen = np.vstack([with_it[:half], without_it[:half]])
    learned = LogisticRegression(C=0.1, max_iter=1000).fit(seen, np.repeat([1, 0], half))
    both = [learned.decision_function(some[half:]) for some in (with_it, without_it)]
    lengths = [some[:, 3:15].sum(axis=1) for some in (with_it, without_it)]
    name = f"epsilon_{epsilon:g}{'_old_rule' if old else ''}"

    def bound(present: NDArray[Any], absent: NDArray[Any]) -> float:
        return empirical_epsilon(present, absent, DELTA)

    return {
        f"canary_present_said_with_{name}": float(with_it[:, 1].mean()),
        f"canary_present_said_without_{name}": float(without_it[:, 1].mean()),
        f"proven_by_vote_{name}": bound(with_it[:, 0], without_it[:, 0]),
        f"proven_by_outcome_by_model_{name}": bound(with_it[:, 1], without_it[:, 1]),
        f"proven_by_outcome_by_votes_{name}": bound(with_it[:, 2], without_it[:, 2]),
        f"proven_by_bytes_of_answers_{name}": bound(*lengths),
        f"proven_by_all_{name}": bound(*both),
    }


def main(runs: int = RUNS, canaries: int = CANARIES) -> None:
    for old in (False, True):
        for epsilon in (1.0, 8.0):
            if runs:
                for figure, value in reading(epsilon, runs, old).items():
                    print(f"figure {figure} {value:g}", flush=True)
        if canaries:
            for figure, value in canary_runs(1.0, canaries, old).items():
                print(f"figure {figure} {value:.3f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
