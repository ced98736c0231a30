"""The parts of fitted objects that skops does not keep, or keeps slowly, in forms of their own.

A library's own format where it has one (LightGBM, XGBoost, CatBoost, skorch), arrays for the trees of
scikit-learn, lists for containers whose keys skops would lose. A `Part` stands in their place.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cosilo.errors import LearnerError
from cosilo.learners.saving import libraries, plain, tree_arrays
from cosilo.learners.saving.contents import everything
from cosilo.learners.saving.form import Form


class Part:
    """Stands for something that has a form of its own; `about` is what else it takes to make it again."""

    #: Makes what it stands for, once it is known from where.
    make: Callable[[dict[int, Any]], Any]

    def __init__(self, form: str, file: str = "", about: Any = None) -> None:
        self.form, self.file, self.about = form, file, about

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """What it stands for: copying a skeleton whose parts know how they are made puts it together."""
        return self.make(memo)


#: By name, in the order in which they are tried.
FORMS: dict[str, Form] = libraries.FORMS | tree_arrays.FORMS | plain.FORMS


def form_of(thing: Any) -> str | None:
    """The name of the form that a thing is kept in, if not by skops."""
    if thing is None or isinstance(thing, str | int | float | bytes):
        return None
    return next((name for name, form in FORMS.items() if form.knows(thing)), None)


def split(model: Any, folder: Path, template: Any) -> Any:
    """Write the parts of a fitted object into a folder; what is left, with a `Part` in place of each.

    An object without such parts is handed back as it is.
    """
    parts: dict[int, tuple[Part, Any, Any]] = {}
    memo: dict[int, Any] = {}  # what a copy has in place of a thing: of arrays the same, which saves time
    waiting = [model]
    while waiting:
        for thing in everything(waiting.pop(), lambda inner: id(inner) not in memo):
            if id(thing) in memo:
                continue
            if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
                memo[id(thing)] = thing
            elif (name := form_of(thing)) is not None:
                number = sum(part.form == name for part, _, _ in parts.values())
                suffix = FORMS[name].suffix
                part = Part(name, "" if suffix is None else f"{name}-{number}{suffix}")
                if suffix is not None:
                    folder.mkdir(exist_ok=True)
                about = FORMS[name].write(thing, folder / part.file)
                if FORMS[name].from_template:
                    about = [number, about]
                parts[id(thing)] = part, thing, about  # which keeps them alive
                memo[id(thing)] = part
                waiting.append(about)
    if not parts:
        return model
    for part, _, about in parts.values():
        part.about = deepcopy(about, memo)
    return deepcopy(model, memo)


def join(skeleton: Any, folder: Path, template: Any) -> Any:
    """The object that `split` took apart; `template` is the silo's own learner."""
    found = [thing for thing in everything(skeleton) if isinstance(thing, Part)]
    if not found:
        return skeleton
    for part in found:
        if part.form not in FORMS or Path(part.file).name != part.file:
            raise LearnerError(f"{folder} is damaged; restore it or start a new run")
        part.make = partial(_made, part, folder, template)
    memo = {id(thing): thing for thing in everything(skeleton) if isinstance(thing, np.ndarray)}
    return deepcopy(skeleton, {key: array for key, array in memo.items() if not array.dtype.hasobject})


def _made(part: Part, folder: Path, template: Any, memo: dict[int, Any]) -> Any:
    form, about, original = FORMS[part.form], deepcopy(part.about, memo), None
    if form.from_template:
        number, about = about
        originals = [thing for thing in everything(template) if form_of(thing) == part.form]
        if not originals:
            raise LearnerError(f"{folder} takes the silo's own learner to be read")
        # An ensemble has its templates first, and then trained copies of them in the same order.
        original = originals[number % len(originals)]
    return form.read(folder / part.file, about, original)
