"""How a silo trains its learner: what is held out for a choice and given back, and what classes weigh."""

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, take
from cosilo.learners.base import Learner, weights_towards
from cosilo.silo.data import Examples
from cosilo.silo.holdings import Holdings
from cosilo.silo.lessons import Lessons

if TYPE_CHECKING:
    from cosilo.learners.training import Training

#: All the same, as in the silo's own data, as they come; auto: as a learner does that weighs classes by
#: itself, else as in the silo's own data if it takes weights. None: no sample weights at all.
ClassWeights = Literal["auto", "equal", "own", "none"] | None


@dataclass(frozen=True)
class Fit:
    """How the learner is trained.

    Attributes
    ----------
    update
        Whether this is update training, which may have a training of its own.
    warm
        Whether it goes on from what was learnt before.
    classes
        How much each class counts.
    own_weight
        What one of the silo's own instances counts for beside one that others labelled.
    """

    update: bool = False
    warm: bool = False
    classes: ClassWeights = None
    own_weight: float = 1.0

    def __call__(
        self,
        silo: Holdings,
        learner: Learner,
        own: Examples,
        lessons: Lessons | None = None,
        validation: tuple[Instances, NDArray[Any]] | None = None,
        training: "Training | None" = None,
    ) -> None:
        """Train a learner of the silo's; `training` is for networks, instead of their own."""
        learnt = Lessons(*own) if lessons is None else lessons.after(own, self.own_weight)
        box: Any = learner
        box.fit(
            learnt.X,
            learnt.y,
            n_classes=len(silo.task),
            seed=silo.seed,
            update=self.update,
            warm=self.warm,
            sample_weight=self._sample_weight(silo, learner, learnt),
            validation=validation,
            **({} if training is None else {"training": training}),
        )

    def _sample_weight(self, silo: Holdings, learner: Learner, learnt: Lessons) -> NDArray[np.float64] | None:
        if learnt.y.ndim == 2 or not (learner.can_weigh or self.classes in ("equal", "own")):
            return None  # soft targets have weights in them
        classes = self.classes
        if classes == "auto" and not learner.weighs_by_itself:
            classes = "own"
        elif classes == "auto" and learnt.weight is not None:
            classes = "equal"  # what it would do by itself, and beside that the weights
        if classes == "equal":
            return weights_towards(np.ones(len(silo.task)), learnt.y, learnt.weight)
        if classes == "own":
            own = np.bincount(silo.data.train[1], minlength=len(silo.task))
            return weights_towards(own, learnt.y, learnt.weight)
        # A learner that weighs by itself is told not to.
        return np.ones(len(learnt)) if classes == "none" and learnt.weight is None else learnt.weight


def fit_with_trial(
    silo: Holdings, fit: Fit, lessons: Lessons | None, training: "Training | None" = None
) -> None:
    """Make every choice with a part of the data held out, then train on all of it as was chosen.

    The trial never sees the silo's validation part, in any training of the run: an update goes on from the
    trial before it, not from a model that knows all. A learner that stops early has as large a part of
    the lessons held out too: its own data alone cannot tell what these teach about the rest of the world.
    """
    trial = silo.trial if fit.warm and silo.trial is not None else deepcopy(silo.learner)
    held, rest = silo.data.validation()
    validation, some = held, lessons
    if lessons is not None and silo.learner.wants_validation:
        places, others = silo.data.held_out(lessons.likeliest)
        also, some = lessons.take(places).after(held), lessons.take(others)
        validation = also.X, also.y
    fit(silo, trial, rest, some, validation, training)
    fit(silo, silo.learner, silo.data.train, lessons, training=getattr(trial, "trained_as_", None))
    silo.trial = trial


def fit_for_a_look(
    silo: Holdings, fit: Fit, learner: Learner, own: Examples, lessons: Lessons | None = None
) -> None:
    """Train a learner that is only looked at, on some of the silo's own examples.

    One that stops early, or chooses, has a part of these and of the lessons held out for that.
    """
    if not learner.wants_validation:
        fit(silo, learner, own, lessons)
        return
    (X, y), (places, others) = own, silo.data.held_out(own[1])
    held, rest, some = (take(X, places), y[places]), (take(X, others), y[others]), None
    if lessons is not None and len(lessons):
        places, others = silo.data.held_out(lessons.likeliest)
        also, some = lessons.take(places).after(held), lessons.take(others)
        held = also.X, also.y
    fit(silo, learner, rest, some, held)


def fit_control(
    silo: Holdings, fit: Fit, before: Learner, training: "Training | None", instances: int
) -> None:
    """Train what there was before an update on the silo's own data alone, for as many passes.

    A network was updated as `training` says, on that many instances; others train by their own settings.
    """
    if training is not None:
        training = training.but(passes=training.epochs * instances)
    fit(silo, before, silo.data.train, training=training)
