"""What a network can be taught on its own images: `python benchmarks/mutual.py`.

At night size FML's own networks are ahead of training alone on MNIST, Non-IID (1), and behind FedAvg's
network on the same digits (docs/results.md). The teacher of an own network in FML is the meme, and all that
it is ever asked about are the silo's own images. Here that teacher is as good as it can get: one network that
has learnt the images of all silos, there from the first step on. In the silos of `recipes/fml_mnist.toml`
(case mlp_1, night size, development seed 1) a network learns in these ways, from as many images in all:

- `alone`: the silo's images and labels;
- `taught`: the same images, by labels and by the teacher's word, half and half, as in FML;
- `others`: images of the same digits of all silos too, by the teacher's word alone.

`teacher` is that network itself, among the silo's digits: what averaging weights can come to. Judged on test
images of the silo's digits. Under five minutes; needs COSILO_DATA.
"""

import statistics
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosilo import Silo
from cosilo.config import build
from cosilo.config.settings import validate
from cosilo.learners import Network
from cosilo.protocol.task import vocabulary
from cosilo.recipes import RECIPES
from cosilo.reproduce.library import find
from tools.elections import interval
from tools.side_by_side import side_by_side

PASSES = 650_000
WAYS = ["alone", "taught", "others"]


class Digits(NamedTuple):
    """What one silo has; labels are codes into all ten digits, of which some are its own."""

    network: Network
    own: NDArray[np.int64]
    X: NDArray[np.uint8]
    y: NDArray[np.int64]
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]

    def right(self, network: Network) -> float:
        """How often the likeliest of the silo's digits is the right one."""
        likeliest = self.own[network.logits(self.X_test)[:, self.own].argmax(1)]
        return float(np.mean(likeliest == self.y_test))


def silos() -> list[Digits]:
    """Those of the recipe."""
    values = find("fml_mnist").case("mlp_1", "night") | {"seed": 1}
    made, _ = build.make_members(validate(values, "fml_mnist"), build.Source("fml_mnist", RECIPES))
    members = [silo for silo in made if isinstance(silo, Silo)]
    words, found = vocabulary(silo.task for silo in members), []
    for silo in members:
        own, (X, y), test = np.array(silo.task.codes_in(words)), silo.data.train, silo.data.test
        assert isinstance(silo.learner, Network)
        assert test is not None
        found.append(Digits(silo.learner, own, np.asarray(X), own[y], np.asarray(test[0]), own[test[1]]))
    return found


def train(network: Network, X: NDArray[np.uint8], targets: NDArray[np.float64], passes: int) -> Network:
    """Train as the recipe does at night: the rate × 0.1 after each third."""
    training = network.training.but(passes=passes, schedule="step", decay=0.1)
    network.fit(X, targets.astype(np.float32), n_classes=10, seed=1, training=training)
    return network


def learnt(there: list[Digits], said: Sequence[NDArray[np.float64]], job: tuple[str, int]) -> float:
    """The accuracy of a silo's network; `said`: by silo, the teacher's word on its images."""
    way, place = job
    silo = there[place]
    X, targets = silo.X, np.eye(10)[silo.y]
    if way != "alone":
        targets = (targets + said[place]) / 2
    if way == "others":
        for other, word in zip(there, said, strict=True):
            alike = np.isin(other.y, silo.own) & (other is not silo)
            X, targets = np.concatenate([X, other.X[alike]]), np.concatenate([targets, word[alike]])
    return silo.right(train(silo.network, X, targets, PASSES))


def teacher(there: list[Digits], _: None) -> list[tuple[float, NDArray[np.float64]]]:
    """By silo: how good one network with everyone's images is for its digits, and its word on its images."""
    X, y = np.concatenate([one.X for one in there]), np.concatenate([one.y for one in there])
    network = train(there[0].network, X, np.eye(10)[y], PASSES * len(there))
    return [(silo.right(network), network.predict_proba(silo.X)) for silo in there]


def main() -> None:
    there = silos()
    best, said = zip(*side_by_side(partial(teacher, there), [None])[0], strict=True)
    found = {"teacher": list(best)}
    jobs = [(way, place) for way in WAYS for place in range(len(there))]
    accuracies = dict(zip(jobs, side_by_side(partial(learnt, there, said), jobs), strict=True))
    for way in WAYS:
        found[way] = [accuracies[way, place] for place in range(len(there))]
    for way, values in found.items():
        print(f"{way}: {', '.join(f'{value:.4f}' for value in values)}")
    for way in ("taught", "others", "teacher"):
        more, width = interval([100 * (a - b) for a, b in zip(found[way], found["alone"], strict=True)])
        print(f"{way} − alone: {more - width:+.2f} to {more + width:+.2f} points over {len(there)} silos")
    for way, values in found.items():
        print(f"figure {way} {statistics.fmean(values):.4f}")


if __name__ == "__main__":
    main()
