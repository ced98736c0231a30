"""Whether a silo's learner can do at all what a run will ask of it, tried out on a few instances.

Fit, predict what the silo has to predict, save, load: the loaded one has to give the same answers. What a run
would find out after hours of training, or at its end, is found here in moments.
"""

import tempfile
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, take
from cosilo.data.stratified import stratified
from cosilo.errors import CosiloError
from cosilo.learners.base import Codes, Learner
from cosilo.silo.silo import Silo

#: Instances to fit on; twice as many as most learners need neighbours, folds or components.
_FEW = 100
#: Instances to predict, of each kind.
_ASKED = 20


def smoke_test(silo: Silo) -> str | None:
    """Why the silo's learner cannot take part, in one line for its owner; None if it can.

    A learner that fails on a few instances, as one that wants 200 neighbours does, gets all of them.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.eye(8), list("abababab")
    >>> smoke_test(Silo("a", X, y, DecisionTreeClassifier()))
    >>> smoke_test(Silo("a", X, y, DecisionTreeClassifier(max_depth="six")))[:72]
    "silo 'a': DecisionTreeClassifier.fit raised InvalidParameterError (The '"
    """
    X, y = silo.data.train
    few = stratified(y, max(_FEW, 2 * len(silo.task)), seed=0)
    asked = [take(part, slice(0, _ASKED)) for part in _to_predict(silo)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _try_out(deepcopy(silo.learner), take(X, few), y[few], len(silo.task), asked)
            except Exception:
                if len(few) == len(y):
                    raise
                _try_out(deepcopy(silo.learner), X, y, len(silo.task), asked)
    except Exception as error:
        return _line(silo, error)
    return None


def _to_predict(silo: Silo) -> list[Instances]:
    """All that its model will be asked about: its own data, test data, pool, target."""
    found = [silo.data.train[0]]
    found += [silo.data.test[0]] if silo.data.test is not None else []
    found += [silo.pool] if silo.pool is not None else []
    found += [silo.data.target.unlabelled] if silo.data.target is not None else []
    return [part for part in found if len(part)]


def _try_out(learner: Learner, X: Instances, y: Codes, n_classes: int, asked: list[Instances]) -> None:
    training = getattr(learner, "training", None)
    options: dict[str, Any] = {} if training is None else {"training": training.but(**_BRIEF)}
    learner.fit(X, y, n_classes=n_classes, seed=0, **options)
    other = deepcopy(learner)
    said = [_answers(learner, part) for part in asked]
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder))
        other.load(Path(folder))
    for before, part in zip(said, asked, strict=True):
        after = _answers(other, part)
        if not all(np.array_equal(one, two) for one, two in zip(before, after, strict=True)):
            raise CosiloError(
                f"{learner.name} answers differently after it was saved and loaded; "
                "give its class save(folder) and load(folder) that keep all it has learnt"
            )


#: A network shows whether it works in one epoch.
_BRIEF = {"epochs": 1, "passes": None, "patience": None}


def _answers(learner: Learner, X: Instances) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = [learner.predict(X)]
    return [*found, learner.predict_proba(X)] if learner.has_probabilities else found


def _line(silo: Silo, error: Exception) -> str:
    """The error, with what another library said: whoever checks a silo owns it."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    ours = isinstance(error, CosiloError)
    text = str(error) if ours else f"{silo.learner.name} raised {type(error).__name__}"
    said = " ".join(str(cause).split()) if cause is not error or not ours else ""
    text += f" ({said[:200]}{'…' if len(said) > 200 else ''})" if said else ""
    return text if text.startswith("silo ") else f"silo {silo.name!r}: {text}"
