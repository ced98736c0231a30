"""What a silo's model says about instances: classes, in the codes of its task, and how likely they are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting import vote_dtype
from cosilo.data.instances import Instances, blocks, take
from cosilo.errors import LearnerError
from cosilo.learners.base import Codes
from cosilo.protocol.task import Task
from cosilo.silo.holdings import Holdings
from cosilo.silo.network import NetworkView

#: Instances that are predicted at a time: bounds what a learner has to hold meanwhile.
AT_ONCE = 20_000


def predict(silo: Holdings, X: Instances, among: Task) -> Codes:
    """The most likely of some classes of the task; a learner without probabilities may name any of them."""
    if silo.learner.has_probabilities and (len(among) < len(silo.task) or NetworkView(silo).is_wide):
        return predict_surely(silo, X, among)[0]
    need_model(silo)
    return np.concatenate([silo.learner.predict(take(X, part)) for part in blocks(len(X), AT_ONCE)])


def predict_surely(silo: Holdings, X: Instances, among: Task) -> tuple[Codes, NDArray[np.float64]]:
    """The same, and how likely each class is among these; NaN if the learner has no probabilities."""
    if not silo.learner.has_probabilities:
        return predict(silo, X, among), np.full(len(X), np.nan)
    need_model(silo)
    places = np.array(among.codes_in(silo.task))
    codes, confidence = np.empty(len(X), np.int64), np.empty(len(X))
    for part in blocks(len(X), AT_ONCE):
        chances = _chances(silo, take(X, part))[:, places]
        total = chances.sum(axis=1)
        codes[part] = places[chances.argmax(axis=1)]
        # Where none of them has any probability, one is as good as another.
        even = np.full(len(chances), 1 / len(places))
        confidence[part] = np.divide(chances.max(axis=1), total, out=even, where=total > 0)
    return codes, confidence


def probabilities(silo: Holdings, X: Instances, among: Task) -> NDArray[np.float64]:
    """How likely each of some classes of the task is, one column each; rows have the sum 1."""
    if not silo.learner.has_probabilities:
        raise LearnerError(
            f"silo {silo.name!r}: {silo.learner.name} has no predict_proba; predict says what it can say"
        )
    need_model(silo)
    places, found = among.codes_in(silo.task), np.empty((len(X), len(among)))
    for part in blocks(len(X), AT_ONCE):
        chances = _chances(silo, take(X, part))[:, places]
        total = chances.sum(axis=1, keepdims=True)
        # Where none of them has any probability, one is as good as another.
        found[part] = np.divide(chances, total, out=np.full(chances.shape, 1 / len(places)), where=total > 0)
    return found


def votes(silo: Holdings, X: Instances, margin: float) -> NDArray[np.signedinteger[Any]]:
    """One code of the whole task per instance; −1 where the two most likely are within `margin`."""
    small = vote_dtype(len(silo.task))
    if margin <= 0:
        return predict(silo, X, silo.task).astype(small)
    need_model(silo)
    found: NDArray[np.signedinteger[Any]] = np.empty(len(X), small)
    for part in blocks(len(X), AT_ONCE):
        chances = _chances(silo, take(X, part))
        second, first = np.sort(chances, axis=1)[:, -2:].T
        found[part] = np.where(first - second > margin, chances.argmax(axis=1), -1)
    return found


def _chances(silo: Holdings, X: Instances) -> NDArray[np.float64]:
    """Probabilities of the silo's own classes, of whichever the learner has outputs for."""
    chances = silo.learner.predict_proba(X)
    return chances[:, NetworkView(silo).codes] if NetworkView(silo).is_wide else chances


def need_model(silo: Holdings) -> None:
    """Raise if it was not trained yet."""
    if not silo.trained:
        raise LearnerError(f"silo {silo.name!r}: has no model yet; run a method first")
