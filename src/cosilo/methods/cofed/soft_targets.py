"""Shares of the votes as soft targets for a network."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.methods.cofed.elections import with_labels, without_vote
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
    """Shares as soft targets, and the same without the silo's own vote, which it gave with this margin.

    Of a class that only a few have no shares are told: there the label is all that is known.
    """
    told = np.isin(label, np.flatnonzero(~share.any(axis=0)))
    lessons = silo.soft_lessons(with_labels(share, index[told], label[told]))
    rest = without_vote(share, silo.label_pool(margin), part)
    rest[index[told]] = 0.0
    sure = told & (stands > 0)
    return lessons, silo.soft_lessons(with_labels(rest, index[sure], label[sure]))
