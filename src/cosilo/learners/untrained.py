"""Learners before any training, on disk: a model can then be opened where nobody has its learner at hand."""

import sys
from contextlib import suppress
from pathlib import Path

from cosilo.errors import LearnerError
from cosilo.learners.base import Learner

_FILE = "template.skops"


def save_untrained(learner: Learner, folder: Path) -> None:
    """Write an estimator's template, if skops can; only code can make a network or a user's class again."""
    estimator = sys.modules.get("cosilo.learners.estimator")  # whoever has one has imported it
    if estimator is not None and isinstance(learner, estimator.Estimator):
        from cosilo.learners.saving import model_file

        with suppress(LearnerError):
            model_file.write(learner.model, folder / _FILE, learner.model)


def read_untrained(folder: Path) -> Learner | None:
    """The learner that was written, made of well-known libraries only; None if none was."""
    from cosilo.learners.estimator import Estimator
    from cosilo.learners.saving import model_file

    path = folder / _FILE
    return Estimator(model_file.read_known(path)) if path.exists() else None
