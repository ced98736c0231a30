"""What a silo asks of its learner, whatever is inside the black box, and what all adapters share."""

import json
import random
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, is_frame
from cosilo.data.missing import columns_with_holes
from cosilo.errors import LearnerError
from cosilo.text import listing

Codes = NDArray[np.int64]

#: The global random states belong to the whole process: two threads that seed them spoil each other's run.
_GLOBAL_RANDOM = threading.RLock()


class MissingExtra(LearnerError, ImportError):
    """A learner needs a package that is not installed; the line says which extra brings it."""


@runtime_checkable
class Learner(Protocol):
    """A classifier that a silo can train, question, save and load: what an adapter has to have.

    Labels are codes 0 … k−1 into the silo's task. Two adapters implement this: `Estimator` for anything with
    `fit` and `predict`, `Network` for torch modules.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from cosilo import Estimator
    >>> isinstance(Estimator(GaussianNB()), Learner), isinstance(GaussianNB(), Learner)
    (True, False)
    """

    #: Whether update training can continue from the weights of the last training.
    can_warm_start: bool
    #: Whether `predict_proba` may be called.
    has_probabilities: bool
    #: Whether this is a network whose weights can be read and set (see `Network`).
    has_weights: bool
    #: Whether `fit` takes sample weights.
    can_weigh: bool
    #: Whether update training continues from the last weights by default.
    warm_starts_by_default: bool
    #: Whether update training weighs the classes by itself, if no sample weights are given.
    weighs_by_itself: bool
    #: Whether `fit` makes use of a validation set (early stopping).
    wants_validation: bool

    @property
    def name(self) -> str:
        """What the black box is called in errors and on the silo's own pages."""

    def fit(
        self,
        X: Instances,
        y: Codes,
        *,
        n_classes: int,
        seed: int,
        update: bool = False,
        warm: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
        validation: tuple[Instances, Codes] | None = None,
    ) -> None:
        """Train on (X, y).

        `update` says that this is update training, which may have a training of its own; `warm` continues
        from what was learnt before.
        """

    def predict(self, X: Instances) -> Codes:
        """One code per instance."""

    def predict_proba(self, X: Instances) -> NDArray[np.float64]:
        """Probabilities, shape (n, n_classes), columns in the order of the codes."""

    def fitted(self) -> object:
        """What is inside the box, as it was trained; an error if it was not."""

    def preload(self) -> None:
        """Import what training and saving will need; called once, before worker processes are forked."""

    def notes(self) -> list[str]:
        """What its owner should know before a run, one line each."""

    def save(self, folder: Path) -> None:
        """Write what was learnt into `folder`, without pickle."""

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""


def balanced_weights(y: Codes, n_classes: int) -> NDArray[np.float64]:
    """Sample weights with which every class counts the same: 1/count of the class, scaled to mean 1.

    >>> balanced_weights(np.array([0, 0, 0, 1]), 3)
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    return weights_towards(np.ones(n_classes), y)


def balanced_targets(targets: NDArray[Any]) -> NDArray[np.float64]:
    """Soft targets, instances × classes, with which every class counts the same: columns scaled, mean sum 1.

    >>> balanced_targets(np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]))
    array([[0.6, 0. ],
           [0.3, 1.5],
           [0.6, 0. ]])
    """
    mass = targets.sum(axis=0, dtype=np.float64)
    there = mass > 0
    scale = np.divide(len(targets) / max(there.sum(), 1), mass, out=np.zeros(len(mass)), where=there)
    return np.asarray(targets * scale, dtype=np.float64)


def weights_towards(
    proportions: NDArray[Any], y: Codes, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Sample weights with which the classes of y count in these proportions, scaled to mean 1.

    A class with proportion 0 keeps the share it has in y. Within a class, instances count as `weight` says.

    >>> weights_towards(np.array([2, 1, 0]), np.array([0, 0, 1, 1]))
    array([1.33333333, 1.33333333, 0.66666667, 0.66666667])
    """
    if len(y) == 0:
        return np.empty(0)
    weight = np.ones(len(y)) if weight is None else weight * (len(y) / max(weight.sum(), 1e-300))
    counts = np.bincount(y, weight, minlength=len(proportions))
    wanted = np.where(proportions > 0, proportions, 0) * (counts > 0)
    kept = counts * (proportions <= 0)
    wanted = wanted / max(wanted.sum(), 1e-300) * (counts.sum() - kept.sum()) + kept
    per_class = np.divide(wanted, counts, out=np.zeros(len(counts)), where=counts > 0)
    return np.asarray(per_class[y] * weight, dtype=np.float64)


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Inside, the global random states of Python, numpy and torch depend on `seed` alone; then they return.

    Code that cosilo did not write draws from them. Torch takes part only if somebody has imported it. One
    thread at a time: parallel silos are processes.

    >>> with seeded(7):
    ...     first = random.random(), np.random.random()
    >>> with seeded(7):
    ...     first == (random.random(), np.random.random())
    True
    """
    seed, torch = int(seed), sys.modules.get("torch")
    with _GLOBAL_RANDOM:
        python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            with _torch_seeded(torch, seed) if torch else nullcontext():
                yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


@contextmanager
def _torch_seeded(torch: Any, seed: int) -> Generator[None]:
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=devices):
        # torch.manual_seed would note, with a stack trace each time, to seed devices that are not in use.
        torch.default_generator.manual_seed(seed % 2**63)
        if devices:
            torch.cuda.manual_seed_all(seed % 2**63)
        yield


@contextmanager
def black_box(name: str, method: str, X: Instances | None = None) -> Generator[None]:
    """Turn whatever the black box raises into one line that may leave the silo.

    The line names the kind of error and never its text, which may quote private data; the original stays
    the cause, for the silo's own log. Of the instances it says which columns have missing values, if any.
    """
    try:
        yield
    except LearnerError:
        raise
    except Exception as error:
        holes = [] if X is None else columns_with_holes(X)
        about = f"; {listing(holes, 6)} {'have' if holes[1:] else 'has'} missing values" if holes else ""
        raise LearnerError(f"{name}.{method} raised {type(error).__name__}{about}") from error


def untrained(name: str) -> LearnerError:
    """The error of a learner that is questioned, saved or warm-started before it has learnt anything."""
    return LearnerError(f"{name} has learnt nothing yet; call fit or load first")


def columns_of(X: Instances) -> list[Any] | None:
    """The names of a data frame's columns, in order; None for arrays."""
    return X.columns.tolist() if is_frame(X) else None


def columns_as_learnt(X: Instances, columns: list[Any] | None, name: str) -> Instances:
    """A data frame with the columns that were learnt, in that order; arrays as they are.

    Frames with the same columns in another order are the same instances to cosilo, not to a learner.
    """
    if columns is None or not is_frame(X) or columns == columns_of(X):
        return X
    missing = [str(column) for column in columns if column not in X.columns]
    if missing:
        raise LearnerError(f"{name} learnt from a column {missing[0]!r} that these instances do not have")
    return X[columns]


def write_card(folder: Path, name: str, card: dict[str, Any]) -> None:
    """Write what an adapter must know to load again as `learner.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "learner.json").write_text(json.dumps({"learner": name, **card}) + "\n", encoding="utf-8")


def read_card(folder: Path, name: str, wanted: dict[str, type]) -> dict[str, Any]:
    """Read `learner.json`; every field in `wanted` is there and of its type, or a LearnerError says which."""
    path = folder / "learner.json"
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LearnerError(f"{name}: no learner.json in {folder}; wants a folder written by save") from None
    except (OSError, ValueError) as error:
        raise LearnerError(f"{name}: {path} cannot be read: {type(error).__name__}") from error
    if not isinstance(card, dict) or card.get("learner") != name:
        found = card.get("learner") if isinstance(card, dict) else type(card).__name__
        raise LearnerError(f"{path} belongs to {found!r}; wants {name!r}")
    for field, kind in wanted.items():
        if type(card.get(field)) is not kind:
            raise LearnerError(f"{path}: {field} is {card.get(field)!r}; wants {kind.__name__}")
    return card
