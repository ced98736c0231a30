"""FedAvg with poisoned silos: what one bad silo in five does to each way of averaging.

Digits, 10 silos of 100 instances, of which two send their networks' updates turned round and enlarged
("reversed"), numbers drawn at random ("noise"), or train on wrong labels ("flipped"). The figures are the
accuracy of the global network on all test data, over three seeds.

    python benchmarks/poisoned.py
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from cosilo import FedAvg, Federation, Silo
from cosilo.engines.local.in_process import InProcess
from cosilo.learners import Network, Training
from cosilo.learners.zoo import mlp
from cosilo.protocol.carrier import Answer
from cosilo.protocol.wire import decode, encode

SILOS, BAD, SIZE, SEEDS, ROUNDS = 10, 2, 100, (0, 1, 2), 10
ATTACKS = ("none", "reversed", "noise", "flipped")
RULES = ("mean", "median", "trimmed", "clipped")


def federation(rule: Any, attack: str, seed: int) -> Federation:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order] / 16, y[order]
    silos = []
    for place in range(SILOS):
        part = slice(place * SIZE, (place + 1) * SIZE)
        labels = (y[part] + 1) % 10 if attack == "flipped" and place < BAD else y[part]
        network = Network(partial(mlp, hidden=[32]), Training(epochs=1, batch=20, lr=0.1, optimiser="sgd"))
        test = None if place < BAD else (X[1000:], y[1000:])
        silos.append(
            Silo(
                f"s{place}",
                X[part],
                labels,
                network,
                test=test,
                task=map(str, range(10)),
                shares=["weights", "size", "metrics"],
            )
        )
    method = FedAvg(rounds=ROUNDS, epochs=2, local=False, evaluate_every=ROUNDS, average=rule)
    return Federation(silos, method=method, seed=seed)


def poison(attack: str, content: bytes, sent: bytes, rng: np.random.Generator) -> bytes:
    """What a bad silo sends in place of its reply."""
    reply, start = decode(content), decode(sent)
    weights: Any = reply["weights"]
    before: Any = start["weights"]
    if attack == "reversed":
        bad = {name: before[name] - 5 * (array - before[name]) for name, array in weights.items()}
    else:
        bad = {name: rng.normal(0, 3, array.shape).astype(array.dtype) for name, array in weights.items()}
    return encode({**reply, "weights": bad})


def accuracy(rule: str, attack: str, seed: int) -> float:
    call, rng = InProcess.call, np.random.default_rng(seed)

    def changed(self: Any, silos: Any, asks: Any, timeout: float | None) -> Iterator[Answer]:
        for answer in call(self, silos, asks, timeout):
            ask = asks(answer.silo)
            bad = attack in ("reversed", "noise") and ask.step == "train" and int(answer.silo[1:]) < BAD
            if bad and isinstance(answer.content, bytes):
                yield Answer(answer.silo, poison(attack, answer.content, ask.body, rng))
            else:
                yield answer

    InProcess.call = changed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = federation(rule, attack, seed).run(Path(folder) / "run")
            return float(run.result["joint"]["federated"]["accuracy"])
    finally:
        InProcess.call = call  # type: ignore[method-assign]


def main() -> None:
    for attack in ATTACKS:
        for rule in RULES:
            found = fmean(accuracy(rule, attack, seed) for seed in SEEDS)
            print(f"figure {attack}_{rule} {found:.3f}", flush=True)


if __name__ == "__main__":
    main()
