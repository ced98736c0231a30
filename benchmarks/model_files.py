"""What keeping a large forest costs, beside pickle: `python benchmarks/model_files.py`.

A forest of 8,000 trees on the digits is written as a silo's record does, and read again. Pickle, which cosilo
does not use, is the measure: into a file, and out of it.
"""

import pickle
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from cosilo.learners import Estimator

TREES = 8000


def seconds(work: Callable[[], object]) -> float:
    """Processor time, which does not depend on what else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    X, y = load_digits(return_X_y=True)
    learner = Estimator(RandomForestClassifier(TREES))
    learner.preload()
    learner.fit(X, y, n_classes=10, seed=1)
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "forest.pickle"

        def dump() -> None:
            with path.open("wb") as file:
                pickle.dump(learner.model_, file, protocol=5)

        def load() -> None:
            with path.open("rb") as file:
                pickle.load(file)

        other = Estimator(RandomForestClassifier(TREES))
        by_pickle = seconds(dump), seconds(load)
        ours = seconds(lambda: learner.save(folder)), seconds(lambda: other.load(folder))
        assert (other.predict(X[:20]) == learner.predict(X[:20])).all()
    for what, mine, theirs in zip(("save", "load"), ours, by_pickle, strict=True):
        print(f"{what}: {mine:.1f} s, pickle {theirs:.1f} s")
        print(f"figure forest_{what}_seconds {mine:.2f}")
        print(f"figure forest_{what}_times_pickle {mine / theirs:.2f}")


if __name__ == "__main__":
    main()
