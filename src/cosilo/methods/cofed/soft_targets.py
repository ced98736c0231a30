"""Shares of the votes as soft targets for a network.

A network learns the shares of its own classes, squared, of the instances that one of these has won. Where
another class leads, the best of its own classes is wrong: most of a pool may be like that, and a network that
learns shares of all of it gains less than by the paper's rule. Squares say what leads more clearly than
shares do, and still say what comes next (docs/cofed.md has the figures).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting import TaughtLabels, Votes
from cosilo.methods.cofed.elections import without_vote
from cosilo.silo.lessons import Lessons
from cosilo.silo.silo import Silo


def soft_lessons(
    silo: Silo, taught: TaughtLabels, votes: Votes, part: NDArray[np.float32]
) -> tuple[Lessons, Lessons]:
    """Return squared shares of what its classes won, and the same without its own vote where these stand.

    `votes` are those of the silo that are in the shares, and `part` is by class what one of them is of the
    share. Of a class that only a few have no shares are told: there the label is all that is known.
    """
    assert taught.shares is not None
    index, label, share = taught.index, taught.label, taught.shares / 255
    lessons = silo.pool_lessons(index, soft_targets(share, label))
    sure = np.flatnonzero(taught.stands)
    rest = without_vote(share[sure], votes[index[sure]], part)
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
