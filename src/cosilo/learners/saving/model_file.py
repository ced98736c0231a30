"""Fitted objects on disk without pickle: skops, and beside it files in the formats of their libraries.

`model.skops` has the object; what has a form of its own (`parts`) is in the folder `model.parts` beside it.
"""

import importlib
import shutil
from pathlib import Path
from typing import Any

from cosilo.errors import LearnerError
from cosilo.learners.saving import parts
from cosilo.learners.saving.sameness import same
from cosilo.learners.saving.trust import Trust

#: What a saved learner may be made of where nobody says what it is.
_WELL_KNOWN = ("lightgbm.", "xgboost.", "catboost.")


def preload() -> None:
    """Import skops now: it looks up all of scikit-learn, which takes seconds."""
    importlib.import_module("skops.io")


def write(model: Any, path: Path, template: Any) -> None:
    """Write a fitted object and check that it can be read again: after a crash it would be too late."""
    from skops.io import dump, load

    cause: Exception | None = None
    why = "what is read back is not what was written"
    shutil.rmtree(_parts(path), ignore_errors=True)  # of an earlier save
    try:
        skeleton = parts.split(model, _parts(path), template)
        dump(skeleton, path)
        if same(skeleton, load(path, trusted=_vetted(path, template))):
            return
    except LearnerError as error:
        why, cause = str(error), error
    except OSError:
        raise  # the disk's fault, not the object's
    except Exception as error:
        why, cause = f"skops raised {type(error).__name__}", error
    path.unlink(missing_ok=True)
    shutil.rmtree(_parts(path), ignore_errors=True)
    cure = "give the class the methods save(folder) and load(folder)"
    raise LearnerError(f"{type(template).__name__} cannot be saved: {why}; {cure}") from cause


def read(path: Path, template: Any) -> Any:
    """Read a fitted object of the template's class; refuse types that such an object does not need."""
    from skops.io import load

    try:
        model = parts.join(load(path, trusted=_vetted(path, template)), _parts(path), template)
    except LearnerError:
        raise
    except Exception as error:
        raise LearnerError(f"{path} cannot be read: {type(error).__name__}") from error
    if type(model) is not type(template):
        raise LearnerError(f"{path} holds a {type(model).__name__}; wants a {type(template).__name__}")
    return model


def read_known(path: Path) -> Any:
    """Read an object that has to be made of well-known libraries: nothing else says what may be in it."""
    from skops.io import get_untrusted_types, load

    trust = Trust(None)
    try:
        asked = get_untrusted_types(file=path)
        foreign = [kind for kind in asked if not (trust.allows(kind) or kind.startswith(_WELL_KNOWN))]
        if not foreign:
            return parts.join(load(path, trusted=asked), _parts(path), None)
    except Exception as error:
        raise LearnerError(f"{path} cannot be read: {type(error).__name__}") from error
    raise LearnerError(f"{path} holds types that are not of a well-known library: {', '.join(foreign)}")


def _parts(path: Path) -> Path:
    return path.with_suffix(".parts")


def _vetted(path: Path, template: Any) -> list[str]:
    """The types in a file that skops asks about, if all may be trusted; else an error names the others."""
    from skops.io import get_untrusted_types

    trust, asked = Trust(template), get_untrusted_types(file=path)
    foreign = [kind for kind in asked if not trust.allows(kind)]
    if foreign:
        name = type(template).__name__
        raise LearnerError(f"{path.name} holds types that {name} does not use: {', '.join(foreign)}")
    return list(asked)
