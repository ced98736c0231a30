"""The adapter for anything with `fit(X, y)` and `predict(X)`."""

import copy
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from cosilo.data.instances import Instances, is_frame
from cosilo.errors import LearnerError
from cosilo.learners.base import (
    Codes,
    black_box,
    columns_as_learnt,
    columns_of,
    read_card,
    seeded,
    untrained,
    write_card,
)
from cosilo.learners.kinds import kinds
from cosilo.learners.open_settings import open_seeds, parameters, quiet_settings
from cosilo.learners.saving import model_file
from cosilo.learners.saving.plain import keeps_itself

#: What also has `fit` and `predict`, as scikit-learn calls it, in words; its answers are no classes.
_OTHERS = {
    "regressor": "a regressor",
    "clusterer": "a clusterer",
    "outlier_detector": "an outlier detector",
    "density_estimator": "a density estimator",
}
#: Numbers of trainings in this process.
_TRAININGS = count(1)


class Estimator:
    """A scikit-learn estimator or pipeline, or any other object with `fit` and `predict`, as a learner.

    It always sees the codes 0 … m−1 of the classes present in its training data, even where the task has
    more.

    Parameters
    ----------
    model : object
        A template that is never fitted itself: each training is that of a copy. With `save(folder)` and
        `load(folder)` it keeps itself; without, what it has learnt is written by skops, and what is of
        LightGBM, XGBoost or CatBoost in the format of that library.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> learner = Estimator(DecisionTreeClassifier())
    >>> learner.fit(np.array([[0.0], [1.0]]), np.array([0, 2]), n_classes=3, seed=1)
    >>> learner.predict(np.array([[0.1], [0.9]]))
    array([0, 2])
    >>> learner.predict_proba(np.array([[0.9]]))
    array([[0., 0., 1.]])
    """

    def __init__(self, model: Any) -> None:
        self.name = model.__name__ if isinstance(model, type) else type(model).__name__
        if isinstance(model, type):
            raise LearnerError(f"got the class {self.name}; wants an object: {self.name}(…)")
        # Some scikit-learn objects show `predict` only once they are fitted; their class always does.
        missing = [m for m in ("fit", "predict") if not (hasattr(model, m) or hasattr(type(model), m))]
        if missing:
            raise LearnerError(f"{self.name} has no {' and no '.join(missing)}; wants fit(X, y), predict(X)")
        self.model = model
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        self.name = type(last).__name__
        self._is_skorch = "skorch.net.NeuralNet" in kinds(type(last))
        self._is_naive_bayes = "sklearn.naive_bayes._BaseNB" in kinds(type(last))
        if (other := _OTHERS.get(_kind(last) or "")) is not None:
            raise LearnerError(f"{self.name} is {other}; wants a classifier, which predicts classes")
        if "<locals>" in type(last).__qualname__ and not self._keeps_itself:
            raise LearnerError(
                f"{self.name} is a class inside a function, where a saved model cannot find it again; "
                "move it to the top of a module, or give it the methods save(folder) and load(folder)"
            )
        with black_box(self.name, "get_params"):
            self._open_seeds = open_seeds(model)
            self._quiet = quiet_settings(model)
            own = parameters(last, deep=False)
        # Histogram boosting has the parameter, but bins the data anew: valid on the same data only.
        self.can_warm_start = "warm_start" in own and "max_bins" not in own
        #: An ensemble keeps its members and learns with new ones: a warm fit adds as many as it began with.
        self._members = own.get("n_estimators")
        self.has_probabilities = hasattr(model, "predict_proba")
        self.has_weights = False
        self.can_weigh = _takes_weights(last)
        self.warm_starts_by_default = False
        self.weighs_by_itself = False
        self.wants_validation = False
        self.model_: Any = None
        #: Copies of what came of one training have the same number: it need not be written twice.
        self.training_number_: int | None = None
        self.columns_: list[Any] | None = None

    def fit(
        self,
        X: Instances,
        y: Codes,
        *,
        n_classes: int,
        seed: int,
        update: bool = False,
        warm: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
        validation: tuple[Instances, Codes] | None = None,
    ) -> None:
        """Train a fresh copy of the template, or with `warm` a copy of what was learnt before."""
        if sample_weight is not None and not self.can_weigh:
            raise LearnerError(f"{self.name}: got sample weights, but its fit takes no sample_weight")
        present, codes = np.unique(y, return_inverse=True)
        if warm:
            self._check_warm(present, n_classes)
            X = columns_as_learnt(X, self.columns_, self.name)
        columns = columns_of(X)
        with seeded(seed), black_box(self.name, "fit", X):
            # Work on a copy: a fit that fails leaves what was learnt before as it was.
            model = copy.deepcopy(self.model_) if warm else _fresh(self.model)
            if self._quiet and not warm:
                model.set_params(**self._quiet)
            if self._open_seeds:
                drawn = np.random.SeedSequence(seed).generate_state(len(self._open_seeds)).tolist()
                model.set_params(**dict(zip(self._open_seeds, drawn, strict=True)))
            prefix, target, X = "", model, self._shaped(X)
            if isinstance(model, Pipeline) and warm:
                # The earlier steps stay: fitted anew they could hand over other columns than were learnt.
                X = model[:-1].transform(X) if len(model) > 1 else X
                target = model.steps[-1][1]
            elif isinstance(model, Pipeline):
                prefix = f"{model.steps[-1][0]}__"
            if warm:
                grown = {"n_estimators": target.n_estimators + self._members} if self._members else {}
                target.set_params(warm_start=True, **grown)
            options = {} if sample_weight is None else {f"{prefix}sample_weight": sample_weight}
            target.fit(X, codes, **options)
        self.model_, self.present_, self.columns_ = model, present, columns
        self.n_classes_, self.seed_ = int(n_classes), int(seed)
        self.training_number_ = next(_TRAININGS)

    def predict(self, X: Instances) -> Codes:
        """One code per instance."""
        answer, m = self._ask("predict", X), len(self.present_)
        if answer.shape == (len(X), 1):  # as CatBoost answers
            answer = answer[:, 0]
        whole = answer.dtype.kind in "biu" or (answer.dtype.kind == "f" and bool((answer % 1 == 0).all()))
        if answer.shape != (len(X),) or not whole:
            raise self._bad("predict", answer, f"shape ({len(X)},) of whole numbers")
        if len(X) and (answer.min() < 0 or answer.max() >= m):
            raise self._bad("predict", answer, f"only the codes it was fitted with, 0 … {m - 1}")
        return self.present_[answer.astype(np.int64)]

    def predict_proba(self, X: Instances) -> NDArray[np.float64]:
        """Probabilities, shape (n, n_classes); 0 for classes that were not in the training data."""
        if not self.has_probabilities:
            raise LearnerError(f"{self.name} has no predict_proba; it can label but not say how sure it is")
        answer, m = self._ask("predict_proba", X), len(self.present_)
        if answer.shape != (len(X), m) or answer.dtype.kind not in "biuf":
            raise self._bad("predict_proba", answer, f"shape ({len(X)}, {m}) of numbers")
        if not np.isfinite(answer).all() or (answer < 0).any():
            raise self._bad("predict_proba", answer, "finite values, none below 0")
        sums = answer.sum(axis=1, dtype=np.float64)
        if (off := np.abs(sums - 1) > 1e-3).any():
            # In float32 scikit-learn's naive Bayes misses 1 by far where its densities are extreme.
            if not self._is_naive_bayes or answer.dtype != np.float32 or not sums.all():
                raise self._bad("predict_proba", answer, "rows with sum 1")
            answer = np.where(off[:, np.newaxis], answer / sums[:, np.newaxis], answer)
        spread = np.zeros((len(X), self.n_classes_))
        spread[:, self.present_] = answer
        return spread

    def fitted(self) -> object:
        """The fitted copy of the template."""
        if self.model_ is None:
            raise untrained(self.name)
        return self.model_

    def save(self, folder: Path) -> None:
        """Write what was learnt: by the object's own `save(folder)` if it has one, else by `model_file`."""
        if self.model_ is None:
            raise untrained(self.name)
        numbers = {"n_classes": self.n_classes_, "seed": self.seed_}
        lists = {"classes": self.present_.tolist(), "columns": self.columns_}
        write_card(folder, self.name, numbers | lists)
        if self._keeps_itself:
            (folder / "model").mkdir(exist_ok=True)
            with black_box(self.name, "save"):
                self.model_.save(folder / "model")
        else:
            model_file.write(self.model_, folder / "model.skops", self.model)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; types from packages that the template does not use are refused."""
        card = read_card(folder, self.name, {"classes": list, "n_classes": int, "seed": int})
        if self._keeps_itself:
            with black_box(self.name, "load"):
                model = _fresh(self.model)
                returned = model.load(folder / "model")  # a classmethod hands over a new object
            model = returned if isinstance(returned, type(self.model)) else model
        else:
            model = model_file.read(folder / "model.skops", self.model)
        self.model_, self.present_ = model, np.array(card["classes"], dtype=np.int64)
        self.n_classes_, self.seed_, self.columns_ = card["n_classes"], card["seed"], card.get("columns")
        self.training_number_ = None

    def preload(self) -> None:
        """Import skops, which takes seconds, once for all worker processes."""
        if not self._keeps_itself:
            model_file.preload()

    def notes(self) -> list[str]:
        """Nothing: how it is trained is its own affair."""
        return []

    @property
    def _keeps_itself(self) -> bool:
        return keeps_itself(self.model)

    def _check_warm(self, present: Codes, n_classes: int) -> None:
        if not self.can_warm_start:
            raise LearnerError(f"{self.name} cannot continue from what it learnt; set warm=False")
        if self.model_ is None:
            raise untrained(self.name)
        if n_classes != self.n_classes_ or not np.array_equal(present, self.present_):
            raise LearnerError(
                f"{self.name}: warm fit with the classes {present.tolist()} of {n_classes}, but it has "
                f"learnt {self.present_.tolist()} of {self.n_classes_}; set warm=False"
            )

    def _shaped(self, X: Instances) -> Instances:
        """Flat rows for scikit-learn, which takes no more than two dimensions; most others see X as it is."""
        if self._is_skorch:  # torch's layers are of float32
            X = X.to_numpy(dtype=np.float32) if is_frame(X) and not isinstance(self.model, Pipeline) else X
            X = X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype == np.float64 else X
        elif isinstance(X, np.ndarray) and X.ndim > 2 and isinstance(self.model, BaseEstimator):
            return X.reshape(len(X), -1)
        return X

    def _ask(self, method: str, X: Instances) -> NDArray[Any]:
        if self.model_ is None:
            raise untrained(self.name)
        if len(X) == 0:  # scikit-learn refuses to predict nothing
            return np.zeros(0 if method == "predict" else (0, len(self.present_)), dtype=np.int64)
        X = columns_as_learnt(X, self.columns_, self.name)
        with seeded(self.seed_), black_box(self.name, method, X):
            return np.asarray(getattr(self.model_, method)(self._shaped(X)))

    def _bad(self, method: str, answer: NDArray[Any], wanted: str) -> LearnerError:
        # Only form is quoted, never values: the line leaves the silo.
        return LearnerError(
            f"{self.name}.{method} returned {answer.dtype} of shape {answer.shape}; wants {wanted}"
        )


def _kind(model: Any) -> str | None:
    """What an estimator says it is; a search over regressors is a regressor."""
    try:
        return str(get_tags(model).estimator_type)
    except Exception:
        return getattr(model, "_estimator_type", None)


def _takes_weights(model: Any) -> bool:
    try:
        return bool(has_fit_parameter(model, "sample_weight"))
    except (AttributeError, TypeError, ValueError):  # no fit, or one without a signature
        return False


def _fresh(model: Any) -> Any:
    """An unfitted copy: scikit-learn's clone where it works, a deep copy of anything else."""
    if callable(getattr(model, "get_params", None)):
        try:
            return clone(model)
        except (TypeError, RuntimeError):
            pass  # looks like an estimator but does not keep scikit-learn's rules
    return copy.deepcopy(model)
