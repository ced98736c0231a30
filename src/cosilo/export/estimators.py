"""Fitted estimators as files: what comes before the classifier, and the classifier in its own format."""

import inspect
import shutil
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from cosilo.errors import LearnerError
from cosilo.learners.estimator import Estimator


def write_estimator(learner: Estimator, folder: Path) -> dict[str, Any]:
    """Write what an estimator has learnt; returns what `model.json` says about it."""
    fitted: Any = learner.fitted()
    before, last = None, fitted
    if isinstance(fitted, Pipeline):
        last = fitted.steps[-1][1]
        before = fitted[:-1] if len(fitted) > 1 else None
    trusted: dict[str, list[str]] = {"preprocessing": [], "model": []}
    if before is not None:
        trusted["preprocessing"] = _skops(before, folder / "preprocessing.skops")
    file, by = "model.skops", "predict"
    match type(last).__module__.partition(".")[0]:
        case "lightgbm":
            file, by = "model.txt", "probabilities"  # its own argmax
            last.booster_.save_model(folder / file)
        case "xgboost":
            file = "model.ubj"
            last.save_model(folder / file)
        case "catboost":
            file = "model.cbm"
            last.save_model(str(folder / file), format="cbm")
        case _ if all(callable(getattr(last, name, None)) for name in ("save", "load")):
            file = "model"
            (folder / file).mkdir()
            last.save(folder / file)
        case _:
            trusted["model"] = _skops(last, folder / file)
    _copy_code([before, last], folder / "code")
    return {
        "kind": "estimator",
        "file": file,
        "by": by,
        "class": f"{type(last).__module__}.{type(last).__qualname__}",
        "trusted": trusted,
        "flat": isinstance(learner.model, BaseEstimator),
        "outputs": learner.present_.tolist(),
        "tokens": None,
        "preprocessed": before is not None,
    }


def steps_of(learner: Estimator) -> list[str]:
    """The preprocessing in words: a line for each step before the classifier."""
    fitted: Any = learner.fitted()
    if not isinstance(fitted, Pipeline):
        return []
    return [line for name, step in fitted.steps[:-1] for line in _words(name, step)]


def _words(name: str, step: Any) -> list[str]:
    if hasattr(step, "transformers_"):
        found = []
        for part, transformer, columns in step.transformers_:
            if len(columns):
                what = transformer if isinstance(transformer, str) else repr(transformer)
                some = ", ".join(map(str, np.asarray(columns).tolist()))
                found.append(f"`{part}`: `{what}` of {some}")
        return found
    return [f"`{name}`: `{step!r}`"]


def _skops(thing: Any, path: Path) -> list[str]:
    """Write by skops; returns the types that whoever loads it has to trust."""
    from skops.io import dump, get_untrusted_types

    try:
        dump(thing, path)
        return list(get_untrusted_types(file=path))
    except Exception as error:
        path.unlink(missing_ok=True)
        name = type(thing).__name__
        raise LearnerError(f"{name} cannot be exported: skops raised {type(error).__name__}") from error


def _copy_code(things: list[Any], folder: Path) -> None:
    """Copy the modules of the owner's own classes: nobody else has them installed."""
    libraries = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    waiting = list(things)
    seen: set[int] = set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or thing is None or isinstance(thing, str | np.ndarray | ModuleType):
            continue
        seen.add(id(thing))
        module = inspect.getmodule(type(thing))
        file = getattr(module, "__file__", None)
        own = file is not None and not any(Path(file).is_relative_to(place) for place in libraries)
        if own and module is not None and "." not in module.__name__ and module.__name__ != "__main__":
            folder.mkdir(exist_ok=True)
            shutil.copy(str(file), folder / f"{module.__name__}.py")
        if isinstance(thing, list | tuple):
            waiting += thing
        elif hasattr(thing, "__dict__"):
            waiting += vars(thing).values()
