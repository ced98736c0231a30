"""Shares of the votes as soft targets for a network.

A network learns the shares of its own classes, squared, of the instances that one of these has won. Where
another class leads, the best of its own classes is wrong: most of a pool may be like that, and a network that
learns shares of all of it gains less than by the paper's rule. Squares say what leads more clearly than
shares do, and still say what comes next (docs/cofed.md has the figures).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.methods.cofed.elections import without_vote
from cosilo.silo.lessons import Lessons
from cosilo.silo.silo import Silo


def soft_lessons(
    silo: Silo,
    margin: float,
    index: NDArray[Any],
    label: NDArray[Any],
    stands: NDArray[Any],
    share: NDArray[Any],
    part: NDArray[Any],
) -> tuple[Lessons, Lessons]:
    """Squared shares of what its classes won, and the same without the silo's own vote where these stand.

    `share` has a row for each label, and `part` what the silo's vote, given with this margin, is of the share
    of each class. Of a class that only a few have no shares are told: there the label is all that is known.
    """
    silo.check_labels(index, label)
    silo.check_labels(index, share)
    lessons = silo.pool_lessons(index, soft_targets(share, label))
    sure = np.flatnonzero(stands)
    rest = without_vote(share[sure], silo.label_pool(margin)[index[sure]], part)
    return lessons, silo.pool_lessons(index[sure], soft_targets(rest, label[sure]))


def soft_targets(share: NDArray[Any], label: NDArray[Any]) -> NDArray[np.float64]:
    """Squared shares that add up to 1, or the label where its class has no share.

    >>> soft_targets(np.array([[0.75, 0.25], [0.5, 0.0]]), np.array([0, 1]))
    array([[0.9, 0.1],
           [0. , 1. ]])
    """
    rows = np.arange(len(label))
    untold = share[rows, label] <= 0
    found = np.square(share, dtype=np.float64)
    found[untold] = 0.0
    found[rows[untold], label[untold]] = 1.0
    return np.asarray(found / found.sum(axis=1, keepdims=True))
