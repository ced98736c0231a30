"""Learners before any training, on disk: a model can then be opened where nobody has its learner at hand."""

import json
import sys
from contextlib import suppress
from pathlib import Path

from cosilo.errors import LearnerError
from cosilo.learners.base import Learner
from cosilo.learners.description import describe

_FILE = "template.skops"
#: What was written of learners so far, by their description: silos often have the same.
_WRITTEN: dict[str, bytes] = {}


def save_untrained(learner: Learner, folder: Path) -> None:
    """Write an estimator's template, if skops can; only code can make a network or a user's class again."""
    estimator = sys.modules.get("cosilo.learners.estimator")  # whoever has one has imported it
    if estimator is not None and isinstance(learner, estimator.Estimator):
        from cosilo.learners.saving import model_file

        path, same = folder / _FILE, json.dumps(describe(learner).value, sort_keys=True)
        if same in _WRITTEN:  # by another silo of this process
            path.write_bytes(_WRITTEN[same])
            return
        with suppress(LearnerError):
            model_file.write(learner.model, path, learner.model)
            if not path.with_suffix(".parts").exists():
                _WRITTEN[same] = path.read_bytes()


def read_untrained(folder: Path) -> Learner | None:
    """The learner that was written, made of well-known libraries only; None if none was."""
    from cosilo.learners.estimator import Estimator
    from cosilo.learners.saving import model_file

    path = folder / _FILE
    return Estimator(model_file.read_known(path)) if path.exists() else None
