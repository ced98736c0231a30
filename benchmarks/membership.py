"""Does a coordinator that sends labels of its own choice learn who is in a silo's training data?

The attack: half of some candidates are training instances of a silo (digits, 200 of them), and all candidates
are in the pool. The coordinator sends each candidate with a wrong label, another one in each of two updates,
and asks for votes after each: a model that still says the true class has it from its training data. What
honest votes alone tell (the model is right more often about what it was trained on) is the line to stay near.

"chosen" is a silo that allows rounds (as every silo did before [allow]), and a coordinator that asks for a
run in which silos take every offer (`accept = "always"`); "guarded" the same where silos hold offers against
their own data; "default" a silo with the defaults of [allow], in one round and guarded: no vote follows an
update. Figures are balanced accuracies, over three seeds.

    python benchmarks/membership.py
"""

import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
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


def attack(learner: Any, seed: int, allow: Allow, method: CoFED) -> float:
    """How well members are told from others: the balanced accuracy of the best threshold."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    pool, truth = X[MEMBERS // 2 : MEMBERS // 2 + CANDIDATES], y[MEMBERS // 2 : MEMBERS // 2 + CANDIDATES]
    member = np.arange(CANDIDATES) < MEMBERS // 2
    silo = Silo("silo", X[:MEMBERS], y[:MEMBERS], learner, test=None, pool=pool, task=map(str, range(10)))
    silo.allow = allow
    with tempfile.TemporaryDirectory() as folder:
        boundary = open_boundary(silo, method, Contract.of(method, seed), Path(folder) / "r")
        number = 0

        def ask(step: str, message: Message) -> dict[str, Any] | None:
            nonlocal number
            number += 1
            answer = boundary.answer(Ask(number, step, encode(message), boundary.agreement.contract.hash))
            return None if isinstance(answer.content, Failure) else dict(decode(answer.content))

        ask("hello", {})
        ask("train", {})
        seen: list[NDArray[Any]] = []
        for place in range(3):
            if votes := ask("label", {}):
                seen.append(votes["votes"] == truth)
            wrong = (truth + 1 + place) % 10
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
            ask("update", message)
        told = np.sum(seen[1:] if len(seen) > 1 else seen, axis=0)
    cuts = range(int(told.max()) + 2)
    return max(float(np.mean([(told >= cut)[member].mean(), (told < cut)[~member].mean()])) for cut in cuts)


def main() -> None:
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
            found = fmean(attack(learner, seed, allow, method) for seed in SEEDS)
            print(f"figure {case}_{name} {found:.3f}", flush=True)


if __name__ == "__main__":
    main()
