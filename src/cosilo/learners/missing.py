"""Whether a learner takes missing values, found out by trying: only one that cannot is told so."""

import warnings
from copy import deepcopy

import numpy as np

from cosilo.data.instances import Instances, join, take
from cosilo.data.missing import columns_with_holes, filled, rows_with_holes
from cosilo.errors import DataError, LearnerError
from cosilo.learners.base import Codes, Learner
from cosilo.text import listing

#: Instances of each column with holes, and of each class, that the trial is made with.
_OF_COLUMN, _OF_CLASS = 3, 5


def check_missing(
    learner: Learner, X: Instances, y: Codes, n_classes: int, where: str, asked: Instances | None = None
) -> None:
    """Raise if there are missing values and the learner fails because of them, and of nothing else.

    `asked` are instances that it will be asked about, such as a pool; None: those that it learns from. A few
    instances decide: the learner fails with their holes, and not if they are filled.
    """
    holes = columns_with_holes(X if asked is None else asked)
    if not holes:
        return
    some = [np.flatnonzero(y == code)[:_OF_CLASS] for code in np.unique(y)]
    if asked is None:
        some.append(rows_with_holes(X, _OF_COLUMN))
    places = np.unique(np.concatenate(some))
    few, codes = take(X, places), y[places]
    answers = few if asked is None else take(asked, rows_with_holes(asked, _OF_COLUMN))
    if _works(learner, few, codes, n_classes, answers):
        return
    if _works(learner, filled(few), codes, n_classes, filled(answers)):
        raise DataError(
            f"{where}: {listing(holes, 6)} {'have' if len(holes) > 1 else 'has'} missing values, which "
            f"{learner.name} does not take; put an imputer in front of it (a pipeline with SimpleImputer), "
            "use a learner that takes them (HistGradientBoosting, LightGBM, XGBoost), or fill them"
        )


def _works(learner: Learner, X: Instances, y: Codes, n_classes: int, asked: Instances) -> bool:
    trial = deepcopy(learner)
    validation = (X, y) if learner.wants_validation else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is only a trial
            trial.fit(X, y, n_classes=n_classes, seed=0, validation=validation)
            trial.predict(join(X, asked))
    except LearnerError:
        return False
    return True
