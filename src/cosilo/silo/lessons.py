"""What others taught a silo about public instances: labels, what each of them weighs, or soft targets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, join, take
from cosilo.silo.data import Examples


@dataclass(frozen=True, eq=False)
class Lessons:
    """Public instances and what they are said to be, in the codes of the silo's task.

    Attributes
    ----------
    X
        The instances.
    y
        One code each; or soft targets, instances × classes: how much of every class each is.
    weight
        What each counts for beside one of the silo's own instances; None: the same.
    places
        Where they are in the pool; None if they are not of the pool alone.
    """

    X: Instances
    y: NDArray[Any]
    weight: NDArray[np.float64] | None = None
    places: NDArray[np.integer[Any]] | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def likeliest(self) -> NDArray[np.int64]:
        """One code each."""
        return np.asarray(self.y if self.y.ndim == 1 else self.y.argmax(axis=1), dtype=np.int64)

    def take(self, index: NDArray[np.int64]) -> "Lessons":
        """Some of them."""
        weight = None if self.weight is None else self.weight[index]
        places = None if self.places is None else self.places[index]
        return Lessons(take(self.X, index), self.y[index], weight, places)

    def after(self, own: Examples, own_weight: float = 1.0) -> "Lessons":
        """The silo's own examples, each with this weight, followed by these.

        >>> own = np.zeros((1, 2)), np.array([1])
        >>> Lessons(np.ones((1, 2)), np.array([[0.25, 0.75]])).after(own, own_weight=2).y
        array([[0.  , 2.  ],
               [0.25, 0.75]])
        """
        X, y = own
        together = join(X, self.X)
        if self.y.ndim == 2:
            targets = np.zeros((len(y), self.y.shape[1]))
            targets[np.arange(len(y)), y] = own_weight
            return Lessons(together, np.concatenate([targets, self.y]))
        if self.weight is None and own_weight == 1:
            return Lessons(together, np.concatenate([y, self.y]))
        theirs = np.ones(len(self)) if self.weight is None else self.weight
        weight = np.concatenate([np.full(len(y), own_weight), theirs])
        return Lessons(together, np.concatenate([y, self.y]), weight)
