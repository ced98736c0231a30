"""How a network is trained, as plain settings: readable from a file, and without torch."""

import math
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from cosilo.parameters import Parameters


class Training(Parameters):
    """How a network is trained.

    Parameters
    ----------
    optimiser : {"adam", "adamw", "sgd"}, default "adam"
        What makes steps of gradients.
    lr : float, default 1e-3
        The learning rate of the first epoch.
    momentum : float in [0, 1), default 0.9
        That of sgd.
    weight_decay : float, default 0.0
        How much weights shrink by themselves.
    schedule : {"constant", "exponential", "cosine", "step"}, default "exponential"
        What happens to the learning rate: nothing; × decay after every epoch; half a cosine down to 0 over
        all epochs; × decay after each third of the epochs.
    decay : float in (0, 1], default 0.99
        What the schedule multiplies with.
    epochs : int, default 20
        How often all instances are seen.
    passes : int, default None
        How many instances are seen in all, which then sets the epochs: whole ones, as near as they come.
    batch : int, default 50
        Instances in a batch; never more than there are.
    patience : int, default None
        Stop after this many epochs without a smaller validation loss, and go back to the best weights; None:
        never.
    balanced : bool, default False
        Whether each sample is weighed by 1/count of its class, scaled to mean 1.
    augment : list of {"flip", "shift"}, default ()
        What is done to images at random each time they are seen: mirrored left to right; moved by up to an
        eighth of their size, with the pixels at the edge repeated.
    precision : {"single", "bf16"}, default "single"
        What a network computes in while it trains; weights and steps are in single precision either way. bf16
        is faster where the processor or the GPU has instructions for it, and slower where it has not.
    device : {"auto", "cpu", "cuda", "mps"}, default "auto"
        Where; auto: on a GPU if there is one.

    Examples
    --------
    >>> Training(lr=0.1, decay=0.5).rate(2)
    0.025
    """

    model_config = ConfigDict(allow_inf_nan=False)

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    lr: Annotated[float, Field(gt=0)] = 1e-3
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    schedule: Literal["constant", "exponential", "cosine", "step"] = "exponential"
    decay: Annotated[float, Field(gt=0, le=1)] = 0.99
    epochs: Annotated[int, Field(ge=1)] = 20
    passes: Annotated[int | None, Field(ge=1)] = None
    batch: Annotated[int, Field(ge=1)] = 50
    patience: Annotated[int | None, Field(ge=1)] = None
    balanced: bool = False
    augment: tuple[Literal["flip", "shift"], ...] = ()
    precision: Literal["single", "bf16"] = "single"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"

    def but(self, **changes: object) -> "Training":
        """The same with other settings here and there; a misspelt one is an error.

        >>> Training(lr=0.1).but(epochs=3).epochs
        3
        """
        return Training(**{**self.model_dump(), **changes})

    def on(self, instances: int) -> "Training":
        """The same for this number of instances: `passes` become epochs.

        >>> Training(passes=1000).on(300).epochs
        3
        """
        if self.passes is None:
            return self
        return self.but(epochs=max(1, round(self.passes / max(instances, 1))), passes=None)

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch; the first is epoch 0."""
        match self.schedule:
            case "constant":
                return self.lr
            case "exponential":
                return self.lr * self.decay**epoch
            case "cosine":
                return self.lr * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
            case "step":
                return self.lr * self.decay ** (3 * epoch // self.epochs)
