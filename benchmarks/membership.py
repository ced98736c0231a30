"""Does a coordinator that sends labels of its own choice learn who is in a silo's training data?

The attack: half of some candidates are training instances of a silo (digits, 200 of them), and all candidates
are in the pool. The coordinator sends each candidate with a wrong label, another one in each of two updates,
and asks for votes after each: a model that still says the true class has it from its training data. What
honest votes alone tell (the model is right more often about what it was trained on) is the line to stay near.

"chosen" is a silo that allows rounds (as every silo did before [allow]), and a coordinator that asks for a
run in which silos take every offer (`accept = "always"`); "guarded" the same where silos hold offers against
their own data; "default" a silo with the defaults of [allow], in one round and guarded: no vote follows an
update.

Two more cases have a second job, and a silo with the defaults of [allow]. In "two_jobs" the first run of one
round is finished; then a job comes under the same run name, with three rounds, `accept = "always"` and
another seed, and skips `hello` and `train`. In "two_runs" the second job has a name and a record of its own,
another seed, and is within the limits: all that two such runs tell together. "two_runs_held_out" is the same
where the silo tests on a quarter of its data, which the seed of a run draws; "one_run_held_out" is the first
of these two runs alone.

Figures are balanced accuracies of the best threshold on what left, over three seeds.

    python benchmarks/membership.py        three seeds
    python benchmarks/membership.py 10     so many seeds
    python benchmarks/membership.py 3 20   also "repeated": so many runs, by learners whose seed is the run's
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Silo
from cosilo.engines.local.in_process import open_boundary
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Ask, Failure
from cosilo.protocol.contract import Contract
from cosilo.protocol.message import Message
from cosilo.protocol.wire import decode, encode

SEEDS, MEMBERS, CANDIDATES = (0, 1, 2), 200, 200
LEARNERS: dict[str, Any] = {
    "nearest": KNeighborsClassifier(1),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(50, random_state=0),
    "logistic": LogisticRegression(max_iter=300),
    "bayes": GaussianNB(),
}


@dataclass
class Victim:
    """A silo half of whose training data is among the candidates, and what the attacker knows of these."""

    silo: Silo
    truth: NDArray[np.int64]
    member: NDArray[np.bool_]


def victim(learner: Any, seed: int, test: float | None = None) -> Victim:
    """The silo and the candidates of a seed; `test` is the share of its data that the silo holds out."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    some = slice(MEMBERS // 2, MEMBERS // 2 + CANDIDATES)
    member = np.arange(CANDIDATES) < MEMBERS // 2
    silo = Silo("silo", X[:MEMBERS], y[:MEMBERS], learner, test=test, pool=X[some], task=map(str, range(10)))
    return Victim(silo, y[some], member)


class Coordinator:
    """Asks one job of a silo whatever it likes, and keeps the votes that left."""

    def __init__(self, one: Victim, folder: Path, method: CoFED, seed: int, allow: Allow) -> None:
        silo = one.silo.fresh()
        silo.allow = allow
        self._truth, self._number = one.truth, len(list(folder.glob("audit.jsonl"))) * 100
        self._boundary = open_boundary(silo, method, Contract.of(method, seed), folder)
        #: By vote that left, whether it is right about each candidate.
        self.seen: list[NDArray[np.bool_]] = []

    def ask(self, step: str, message: Message) -> dict[str, Any] | None:
        """Return the reply; None: it was refused."""
        self._number += 1
        contract = self._boundary.agreement.contract.hash
        content = self._boundary.answer(Ask(self._number, step, encode(message), contract)).content
        return None if isinstance(content, Failure) else dict(decode(content))

    def begin(self) -> None:
        """Let the silo join and train."""
        self.ask("hello", {})
        self.ask("train", {})

    def vote_and_update(self, place: int) -> None:
        """Ask for votes, then send tallies that elect a wrong label, another one in each round."""
        if reply := self.ask("label", {}):
            self.seen.append(reply["votes"] == self._truth)
        wrong = (self._truth + 1 + place) % 10
        message: Message = {
            # Ten silos of which all have the same opinion, and this one agrees.
            "counts": {"000000000": 10 * np.eye(10, dtype=np.uint16)[wrong]},
            "other": np.zeros(CANDIDATES, np.float32),
            "total": np.full(10, 10, np.uint16),
            "counted": np.ones(10, np.uint8),
            "own": 1,
            "unit": 1.0,
            "stage": f"round {place + 1}",
        }
        self.ask("update", message)


def told_apart(one: Victim, seen: list[NDArray[np.bool_]]) -> float:
    """How well members are told from others: the balanced accuracy of the best threshold."""
    right = np.sum(seen, axis=0)
    cuts = range(int(right.max()) + 2)
    found = [np.mean([(right >= cut)[one.member].mean(), (right < cut)[~one.member].mean()]) for cut in cuts]
    return float(max(found))


def attack(learner: Any, seed: int, allow: Allow, method: CoFED) -> float:
    """Chosen labels in three rounds of one run; the votes after them tell."""
    one = victim(learner, seed)
    with tempfile.TemporaryDirectory() as folder:
        job = Coordinator(one, Path(folder) / "r", method, seed, allow)
        job.begin()
        for place in range(3):
            job.vote_and_update(place)
    return told_apart(one, job.seen[1:] or job.seen)


def second_job_under_the_same_name(learner: Any, seed: int) -> tuple[float, int]:
    """Finish a run of one round, then ask under its name for more; also return how many votes left."""
    one, allow = victim(learner, seed), Allow()
    once = CoFED(class_weights="none")
    often = CoFED(class_weights="none", rounds=3, accept="always")
    with tempfile.TemporaryDirectory() as folder:
        first = Coordinator(one, Path(folder) / "r", once, seed, allow)
        first.begin()
        first.vote_and_update(0)
        second = Coordinator(one, Path(folder) / "r", often, seed + 1000, allow)
        for place in range(3):
            second.vote_and_update(place)
    later = second.seen[1:] or second.seen
    return max(told_apart(one, first.seen + second.seen), told_apart(one, later or first.seen)), len(
        first.seen + second.seen
    )


def several_runs(learner: Any, seed: int, test: float | None, runs: int = 2) -> float:
    """Runs under names of their own, each within the limits, with chosen labels in each."""
    one, seen = victim(learner, seed, test), []
    for number in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            job = Coordinator(
                one, Path(folder) / "r", CoFED(class_weights="none"), seed + 1000 * number, Allow()
            )
            job.begin()
            job.vote_and_update(number)
            seen += job.seen
    return told_apart(one, seen)


def main(seeds: Sequence[int], repeated: int = 0) -> None:
    always: dict[str, Any] = {"accept": ["better", "always"]}
    free = Allow(parameters={"rounds": 10, **always}, agreement=0.0)
    once = CoFED(accept="always", class_weights="none")
    often, guarded = once.model_copy(update={"rounds": 3}), CoFED(rounds=3, class_weights="none")
    cases = {
        "honest": (Allow(parameters=always, agreement=0.0), once),
        "chosen": (free, often),
        "guarded": (free, guarded),
        "default": (Allow(), CoFED(class_weights="none")),
    }
    for name, learner in LEARNERS.items():
        for case, (allow, method) in cases.items():
            found = fmean(attack(learner, seed, allow, method) for seed in seeds)
            print(f"figure {case}_{name} {found:.3f}", flush=True)
        jobs = [second_job_under_the_same_name(learner, seed) for seed in seeds]
        print(f"figure two_jobs_{name} {fmean(found for found, _ in jobs):.3f}")
        print(f"figure two_jobs_votes_that_left_{name} {fmean(votes for _, votes in jobs):.3f}")
        print(f"figure two_runs_{name} {fmean(several_runs(learner, seed, None) for seed in seeds):.3f}")
        for case, runs in (("one_run", 1), ("two_runs", 2)):
            found = fmean(several_runs(learner, seed, 0.25, runs) for seed in seeds)
            print(f"figure {case}_held_out_{name} {found:.3f}", flush=True)
        if repeated:
            drawn = clone(learner)
            if "random_state" in drawn.get_params():
                drawn.set_params(random_state=None)
            for case, test in (("repeated", None), ("repeated_held_out", 0.25)):
                found = fmean(several_runs(drawn, seed, test, repeated) for seed in seeds)
                print(f"figure {case}_{repeated}_{name} {found:.3f}", flush=True)


if __name__ == "__main__":
    main(range(int(sys.argv[1])) if len(sys.argv) > 1 else SEEDS, *map(int, sys.argv[2:]))
