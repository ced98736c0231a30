"""A silo's model without its data: what the silo's record says is enough to predict with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.columns import difference
from cosilo.data.instances import Instances, as_instances, example, form, is_frame
from cosilo.errors import DataError, LearnerError, RunError
from cosilo.learners.base import Codes, Learner
from cosilo.protocol.message import Fields
from cosilo.protocol.task import Task
from cosilo.runs.kept_models import check_kept, check_models, chosen, last_continued
from cosilo.runs.silo_state import last_state
from cosilo.silo import predicting
from cosilo.silo.guard import noted
from cosilo.silo.predictor import Predictor

if TYPE_CHECKING:
    import pandas as pd


class Model(Predictor):
    """What a silo has learnt in a run, ready to use; `Run.model` opens one.

    Parameters
    ----------
    about : mapping
        What the silo's record says of it (`silo.json`).
    learner : Learner
        The learner with what it has learnt.
    notes : Fields
        What the method left beside it.
    which : str
        Which of the silo's models it is: local, federated or continued.

    Attributes
    ----------
    name : str
        The silo.
    which : str
        Which of its models it is.
    classes : array
        The classes that it chooses among, as labels of the type that the silo's own have.
    instances : dict
        The form of what it was trained on: columns, the shape of an array, or text.
    fitted : object
        The fitted scikit-learn object or pipeline, the torch module. It knows the classes by number.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from cosilo import Federation, Local, Run, Silo
    >>> silo = Silo("clinic", np.eye(20), ["well", "ill"] * 10, GaussianNB())
    >>> made = Federation([silo], method=Local()).run(tempfile.mkdtemp())
    >>> model = Run.open(made.folder).model("clinic")
    >>> model.classes.tolist(), len(model.predict(np.eye(20)[:3]))
    (['ill', 'well'], 3)
    """

    def __init__(self, about: Mapping[str, Any], learner: Learner, notes: Fields, which: str) -> None:
        self.about = dict(about)
        self.name = str(about["name"])
        self.which = which
        self.learner = learner
        self.notes = notes
        self.trained = True
        self.task = Task(tuple(about["classes"]))
        self.wanted = Task(tuple(about["wanted"]))
        self.among = Task(tuple(about["among"]))
        self.instances: dict[str, Any] = dict(about["instances"])
        self._labels = labels_of(about)

    def __repr__(self) -> str:
        classes = ", ".join(self.among.classes)
        return f"<Model of {self.name!r}, {self.which}: {self.learner.name}, classes {classes}>"

    @property
    def classes(self) -> NDArray[Any]:
        """The classes that it chooses among."""
        return self.as_given(np.array(self.among.codes_in(self.task)))

    @property
    def fitted(self) -> object:
        """What is inside."""
        return self.learner.fitted()

    def as_given(self, codes: Codes) -> NDArray[Any]:
        """Labels of the type that the silo's own labels have, of codes of its task."""
        found: NDArray[Any] = self._labels[codes]
        return found

    def to_frame(self, X: Any) -> "pd.DataFrame":
        """What new instances are, one row each.

        Parameters
        ----------
        X : array, DataFrame or list of str
            Instances of the same form as the silo's data; a data frame may have more columns.

        Returns
        -------
        DataFrame
            `label`, and `probability`: how likely that label is; missing if the learner cannot say.
        """
        import pandas as pd

        codes, probability = predicting.predict_surely(self, self.read(X), self.among)
        return pd.DataFrame({"label": self.as_given(codes), "probability": probability})

    def read(self, X: Any) -> Instances:
        """New instances, checked; of a data frame the columns that were learnt from."""
        where, learnt = f"silo {self.name!r}, new instances", example(self.instances)
        if is_frame(X) and is_frame(learnt):
            missing = [str(name) for name in learnt.columns if name not in X.columns]
            if missing:
                there = ", ".join(map(repr, map(str, X.columns[:10])))
                raise DataError(f"{where}: have no column {missing[0]!r}; they have {there}")
            X = X[list(learnt.columns)]
            if (other := difference(X, "the new instances", learnt)) is not None:
                raise DataError(f"{where}: {other}")
        found = as_instances(X, where)
        if form(found) != form(learnt):
            raise DataError(f"{where}: are {form(found)}; the model was trained on {form(learnt)}")
        return found


def open_model(record: Path, about: Mapping[str, Any], learner: Learner, which: str | None = None) -> Model:
    """The model of a silo's record: the one its owner chose, unless another one is asked for.

    `learner` is like the one that the silo trained; it takes over what the record has.
    """
    check_models(record)
    which = chosen(record) if which is None else check_kept(which)
    state = last_state(record)
    if state is None and (record / "states").exists():
        raise RunError(f"{record}: was written by an earlier version of cosilo, which can still open it")
    if state is None or not state.trained:
        raise RunError(f"{record}: has no model yet; the run did not get that far")
    notes, folder, alone = state.noted(), record / state.models["model"], about["method"] == "local"
    if which is None:
        which = "local" if alone or _refused(notes) else "federated"
    elif which == "continued":
        later = last_continued(record)
        if later is None:
            raise RunError(f"{record}: was never continued; cosilo continue RUN SILO --data FILE does it")
        continued = last_state(later)
        if continued is None:
            raise RunError(f"{later}: is damaged (it has no state); continue once more")
        folder, notes = later / continued.models["model"], continued.noted()
    elif which == "federated" and alone:
        raise RunError(f"{record}: has a local model only; its method trains each silo alone")
    elif which == "federated" and _refused(notes):
        folder = record / state.models["spare"]
    elif which == "local" and not alone:
        if "local" not in state.models:
            raise RunError(f"{record}: has no local model; its method did not train alone first")
        folder, notes = record / state.models["local"], Fields({})
    try:
        learner.load(folder)
    except LearnerError as error:
        raise RunError(f"{folder}: cannot be opened: {error}") from error
    return Model(about, learner, notes, which)


def _refused(notes: Fields) -> bool:
    """Whether the silo's own data spoke against what the federation offered."""
    decision = noted(notes)
    return decision is not None and not decision.accepted


def labels_of(about: Mapping[str, Any]) -> NDArray[Any]:
    """The classes of a silo's task, as labels of the type that its own have."""
    kind = about["labels"]
    names = np.array(about["classes"])
    if kind == "b":
        return np.asarray(names == "True")
    return names.astype({"i": np.int64, "u": np.int64, "f": np.float64}.get(kind, np.str_))
