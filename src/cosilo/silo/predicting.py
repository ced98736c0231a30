"""What a silo's model says about instances: classes, in the codes of its task, and how likely they are."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cosilo.aggregation.voting import vote_dtype
from cosilo.data.instances import Instances, blocks, take
from cosilo.errors import LearnerError
from cosilo.learners.base import Codes, Learner
from cosilo.protocol.message import Fields
from cosilo.protocol.task import Task

#: Instances that are predicted at a time: bounds what a learner has to hold meanwhile.
AT_ONCE = 20_000


class Answering(Protocol):
    """Whatever has a model and knows what its outputs mean: a silo, or what its record says of it."""

    @property
    def name(self) -> str:
        """Whose model it is."""

    @property
    def learner(self) -> Learner:
        """The model."""

    @property
    def task(self) -> Task:
        """The classes it knows."""

    @property
    def notes(self) -> Fields:
        """What a method left beside the model."""

    @property
    def trained(self) -> bool:
        """Whether there is a model."""


def output_codes(one: Answering) -> NDArray[np.int64] | None:
    """The place of each class among the outputs of a network that has more; None: it has just these."""
    return one.notes.array("codes") if "outputs" in one.notes else None


def predict(silo: Answering, X: Instances, among: Task) -> Codes:
    """The most likely of some classes of the task; a learner without probabilities may name any of them."""
    if silo.learner.has_probabilities and (len(among) < len(silo.task) or "outputs" in silo.notes):
        return predict_surely(silo, X, among)[0]
    need_model(silo)
    return np.concatenate([silo.learner.predict(take(X, part)) for part in blocks(len(X), AT_ONCE)])


def predict_surely(silo: Answering, X: Instances, among: Task) -> tuple[Codes, NDArray[np.float64]]:
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


def probabilities(silo: Answering, X: Instances, among: Task) -> NDArray[np.float64]:
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


def votes(silo: Answering, X: Instances, margin: float) -> NDArray[np.signedinteger[Any]]:
    """One code of the whole task per instance; −1 where the two most likely are within `margin`."""
    small = vote_dtype(len(silo.task))
    if margin <= 0:
        return predict(silo, X, silo.task).astype(small)
    need_model(silo)
    found: NDArray[np.signedinteger[Any]] = np.empty(len(X), small)
    for part in blocks(len(X), AT_ONCE):
        found[part] = leading(_chances(silo, take(X, part)), margin)
    return found


def leading(chances: NDArray[Any], margin: float) -> NDArray[np.signedinteger[Any]]:
    """The most likely class of each row; −1 where the two most likely are within `margin`.

    >>> leading(np.array([[0.9, 0.1], [0.55, 0.45]]), 0.2)
    array([ 0, -1], dtype=int8)
    """
    codes: NDArray[np.signedinteger[Any]] = chances.argmax(axis=1).astype(vote_dtype(chances.shape[1]))
    if margin > 0:
        second, first = np.sort(chances, axis=1)[:, -2:].T
        codes[first - second <= margin] = -1
    return codes


def _chances(silo: Answering, X: Instances) -> NDArray[np.float64]:
    """Probabilities of the silo's own classes, of whichever the learner has outputs for."""
    chances, codes = silo.learner.predict_proba(X), output_codes(silo)
    return chances if codes is None else chances[:, codes]


def need_model(silo: Answering) -> None:
    """Raise if it was not trained yet."""
    if not silo.trained:
        raise LearnerError(f"silo {silo.name!r}: has no model yet; run a method first")
