"""The update message of CoFED: tallies against the labels that were sent before.

Bytes of a message, the coordinator's time for the election and all messages (encoded), and a silo's time to
turn one into labels. `before` is the code that made labels. Both are measured in turn; ratios are medians.

    python benchmarks/tallies.py
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import CoFED, Silo
from cosilo.aggregation.voting import FEWEST, Rule, labels_from, vote_shares, winners
from cosilo.methods.cofed.elections import Ballots, ByShares
from cosilo.methods.cofed.messages import UpdateMessages, read_tallies
from cosilo.protocol.incoming import check_incoming
from cosilo.protocol.message import Message
from cosilo.protocol.wire import decode, encode

REPEATS = 3
#: By name: silos, instances of the pool, classes of the vocabulary, and of a task.
CASES = {
    "100_silos_50000x20": (100, 50_000, 20, 20),
    "10000_silos_2000x10": (10_000, 2_000, 10, 10),
    "10000_silos_252_tasks": (10_000, 2_000, 10, 5),
}


def make_ballots(silos: int, pool: int, classes: int, own: int) -> Ballots:
    """Silos that are right in eight of ten cases, and guess where they cannot be."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, pool)
    tasks = [sorted(rng.choice(classes, own, replace=False).tolist()) for _ in range(silos)]
    votes = []
    for task in tasks:
        knows = np.isin(truth, task) & (rng.random(pool) < 0.8)
        votes.append(np.where(knows, truth, rng.choice(task, pool)).astype(np.int8))
    return Ballots([f"s{i}" for i in range(silos)], votes, tasks, classes)


class LabelMessages:
    """The messages of before: labels, what each counts for, whether it stands, and shares."""

    def __init__(self, ballots: Ballots) -> None:
        self._ballots, n_classes = ballots, ballots.n_classes
        weights = [1.0] * len(ballots.names)
        self._won = winners(ballots.votes, ballots.tasks, n_classes, weights)
        self._holders = ballots.holders()
        self._shares = np.empty((len(ballots.votes[0]), n_classes), np.uint8)
        for start, found in vote_shares(ballots.votes, ballots.tasks, n_classes, weights):
            rows = slice(start, start + len(found))
            self._shares[rows] = np.rint(255 * found * (self._holders >= FEWEST))

    def for_silo(self, task: list[int], voter: int) -> Message:
        """Return the message for the silo at this place."""
        won, total = self._won, self._holders.astype(float)
        own = np.zeros(len(total), np.int32)
        own[task] = np.arange(len(task))
        index = np.flatnonzero(np.isin(won.label, task))
        label, code = own[won.label[index]], won.label[index]
        part = 1 / total[task]
        rest = np.maximum(1 - part, 1e-9)
        mine = self._ballots.votes[voter][index] == code
        left = (won.share[index] - np.where(mine, part[label], 0)) / rest[label]
        ahead = (won.share[index] - won.second[index]) * total[code]
        counts = np.where(self._holders[code] < FEWEST, 0.5, np.minimum(ahead / 2, 1))
        return {
            "index": index,
            "label": label,
            "stands": (left > won.second[index] / rest.min() + 1e-6).astype(np.uint8),
            "weight": np.maximum(np.rint(255 * counts), 1).astype(np.uint8),
            "shares": self._shares[index[:, None], task],
            "part": part.astype(np.float32),
            "stage": "federated",
        }


def make_all(messages: Any, ballots: Ballots) -> bytes:
    """Make and encode every silo's message; return one of them."""
    first = b""
    for place, task in enumerate(ballots.tasks):
        content = encode(messages.for_silo(task, place))
        first = first or content
    return first


def tallies_made(ballots: Ballots) -> bytes:
    outcome = ByShares(ballots, [1.0] * len(ballots.names), soft=True)
    return make_all(UpdateMessages(outcome, {"stage": "federated"}), ballots)


def labels_made(ballots: Ballots) -> bytes:
    return make_all(LabelMessages(ballots), ballots)


def seconds(function: Callable[[], object]) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began


def silo_for(ballots: Ballots) -> Silo:
    """A silo with the task of the first one, and a pool of the right size."""
    classes = len(ballots.tasks[0])
    X = np.zeros((2 * classes, 1))
    silo = Silo("s0", X, [f"c{i % classes:02d}" for i in range(2 * classes)], _Nothing(), test=None)
    silo.use_pool(np.zeros((len(ballots.votes[0]), 1)))
    return silo


class _Nothing:
    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> None: ...

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.zeros(len(X), int)


def read_new(content: bytes, silo: Silo, method: CoFED, votes: NDArray[Any]) -> None:
    fields: dict[str, Any] = decode(content)
    check_incoming(method.update, fields)
    fields.pop("stage")
    labels_from(read_tallies(silo, "shares", **fields), Rule("shares", 0.0), votes)


def read_old(content: bytes, silo: Silo) -> None:
    fields: dict[str, Any] = decode(content)
    silo.check_labels(fields["index"], fields["label"])
    silo.check_labels(fields["index"], fields["shares"])


def measure(name: str, sizes: tuple[int, int, int, int]) -> None:
    """Print the figures of one case."""
    ballots, method = make_ballots(*sizes), CoFED()
    silo, votes = silo_for(ballots), np.searchsorted(ballots.tasks[0], ballots.votes[0])
    old, new = labels_made(ballots), tallies_made(ballots)
    times: dict[str, list[float]] = {"before": [], "after": [], "silo_before": [], "silo_after": []}
    for _ in range(REPEATS):
        times["before"].append(seconds(lambda: labels_made(ballots)))
        times["after"].append(seconds(lambda: tallies_made(ballots)))
        times["silo_before"].append(seconds(lambda: read_old(old, silo)))
        times["silo_after"].append(seconds(lambda: read_new(new, silo, method, votes)))
    ratio = median(b / a for a, b in zip(times["before"], times["after"], strict=True))
    print(f"figure {name}_bytes_before {len(old)}")
    print(f"figure {name}_bytes_after {len(new)}")
    for key, found in times.items():
        print(f"figure {name}_{key}_seconds {median(found):.4f}")
    print(f"figure {name}_coordinator_ratio {ratio:.2f}", flush=True)


def main() -> None:
    for name, sizes in CASES.items():
        measure(name, sizes)


if __name__ == "__main__":
    main()
