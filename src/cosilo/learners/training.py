"""How a network is trained, as plain settings: readable from a file, and without torch."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Training(BaseModel):
    """How a network is trained.

    >>> Training(lr=0.1, decay=0.5).rate(2)
    0.025
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    lr: Annotated[float, Field(gt=0)] = 1e-3
    #: Used by sgd.
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    #: What happens to the learning rate: nothing; × decay after every epoch; half a cosine down to 0 over
    #: all epochs; × decay after each third of the epochs.
    schedule: Literal["constant", "exponential", "cosine", "step"] = "exponential"
    decay: Annotated[float, Field(gt=0, le=1)] = 0.99
    epochs: Annotated[int, Field(ge=1)] = 20
    #: Never larger than the set.
    batch: Annotated[int, Field(ge=1)] = 50
    #: Stop after so many epochs without a smaller validation loss and go back to the best weights.
    patience: Annotated[int | None, Field(ge=1)] = None
    #: Weigh each sample by 1/count of its class, scaled to mean 1.
    balanced: bool = False
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"

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
