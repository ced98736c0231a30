"""What can be asked about new instances: of a silo, and of a model that is used without the silo's data."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances
from cosilo.data.labels import class_names
from cosilo.errors import DataError
from cosilo.learners.base import Codes, Learner
from cosilo.protocol.task import Task
from cosilo.silo import predicting
from cosilo.silo.labeller import label_new

if TYPE_CHECKING:
    import pandas as pd


class Predictor(ABC):
    """Something that has learnt a task, and tells about new instances in the labels of its owner."""

    name: str
    #: Untrained until a step trains it.
    learner: Learner
    #: The classes it knows, those it chooses among, and those of its target.
    task: Task
    among: Task
    wanted: Task
    #: What the method left beside its model, as `Fields`.
    notes: Any
    trained: bool

    @abstractmethod
    def read(self, X: Any) -> Instances:
        """New instances, checked."""

    @abstractmethod
    def as_given(self, codes: Codes) -> NDArray[Any]:
        """Labels of the type that the silo's own labels have, of codes of its task."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes of new instances.

        Parameters
        ----------
        X : array, DataFrame or list of str
            Instances of the same form as the silo's data; a data frame may have more columns.

        Returns
        -------
        array of shape (n,)
            One label each, of the type that the silo's own labels have.
        """
        return self.as_given(predicting.predict(self, self.read(X), self.among))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How likely each class is for new instances.

        Parameters
        ----------
        X : array, DataFrame or list of str
            Instances of the same form as the silo's data; a data frame may have more columns.

        Returns
        -------
        array of shape (n, n_classes)
            One column for each class, in the order of `classes`. A learner without probabilities raises a
            LearnerError.
        """
        return predicting.probabilities(self, self.read(X), self.among)

    def score(self, X: Any, y: Any) -> float:
        """The share of new instances that it has the right class for.

        Parameters
        ----------
        X : array, DataFrame or list of str
            Instances of the same form as the silo's data.
        y : array of labels
            Their true classes.

        Returns
        -------
        float
            The accuracy, between 0 and 1.
        """
        where, instances = f"silo {self.name!r}", self.read(X)
        names = class_names(y, where)
        if names.shape != (len(instances),):
            raise DataError(
                f"{where}: {len(instances)} new instances, but labels of shape {names.shape}; wants one each"
            )
        said = self.task.decode(predicting.predict(self, instances, self.among))
        return float(np.mean(said == names))

    def label(self, X: Any) -> "pd.DataFrame":
        """What new points are, by the models of other silos that labelled the silo's target (DoFed-SPP).

        Parameters
        ----------
        X : array, DataFrame or list of str
            Instances of the same form as the silo's data.

        Returns
        -------
        DataFrame
            For each of them label, confidence, and speakers: the silos whose models had a say.
        """
        import pandas as pd

        codes, confidence, names = label_new(self, self.wanted, self.read(X))
        labels = self.as_given(codes)
        return pd.DataFrame({"label": labels, "confidence": confidence, "speakers": ",".join(names)})
