"""How a silo trains its learner: what is held out for a choice and given back, and what classes weigh."""

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosilo.learners.base import Codes, Learner, balanced_weights, weights_towards
from cosilo.silo.data import Examples, joined
from cosilo.silo.holdings import Holdings

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
    """

    update: bool = False
    warm: bool = False
    classes: ClassWeights = None

    def __call__(
        self,
        silo: Holdings,
        learner: Learner,
        examples: Examples,
        validation: Examples | None = None,
        training: "Training | None" = None,
    ) -> None:
        """Train a learner of the silo's on examples; `training` is for networks, instead of their own."""
        box: Any = learner
        box.fit(
            *examples,
            n_classes=len(silo.task),
            seed=silo.seed,
            update=self.update,
            warm=self.warm,
            sample_weight=self._sample_weight(silo, learner, examples[1]),
            validation=validation,
            **({} if training is None else {"training": training}),
        )

    def _sample_weight(self, silo: Holdings, learner: Learner, y: Codes) -> NDArray[np.float64] | None:
        classes = self.classes
        if classes == "auto":
            classes = "own" if learner.can_weigh and not learner.weighs_by_itself else "auto"
        if classes == "equal":
            return balanced_weights(y, len(silo.task))
        if classes == "own":
            return weights_towards(np.bincount(silo.data.train[1], minlength=len(silo.task)), y)
        # A learner that weighs by itself is told not to.
        return np.ones(len(y)) if classes == "none" and learner.can_weigh else None


def fit_with_trial(
    silo: Holdings, fit: Fit, pseudo: Examples | None, training: "Training | None" = None
) -> None:
    """Make every choice with a part of the data held out, then train on all of it as was chosen.

    The trial never sees the silo's validation part, in any training of the run: an update goes on from the
    trial before it, not from a model that knows all. A learner that stops early has as large a part of
    `pseudo` held out too: its own data alone cannot tell what these teach about the rest of the world.
    """
    trial = silo.trial if fit.warm and silo.trial is not None else deepcopy(silo.learner)
    held, rest = silo.data.validation()
    everything = silo.data.train
    if pseudo is not None:
        everything = joined(everything, pseudo)
        if silo.learner.wants_validation:
            held_pseudo, pseudo = silo.data.parted(pseudo)
            held = joined(held, held_pseudo)
        rest = joined(rest, pseudo)
    fit(silo, trial, rest, held, training)
    fit(silo, silo.learner, everything, training=getattr(trial, "trained_as_", None))
    silo.trial = trial


def fit_control(
    silo: Holdings, fit: Fit, before: Learner, training: "Training | None", instances: int
) -> None:
    """Train what there was before an update on the silo's own data alone, for as many passes.

    A network was updated as `training` says, on so many instances; others train by their own settings.
    """
    if training is not None:
        training = training.but(passes=training.epochs * instances)
    fit(silo, before, silo.data.train, training=training)
