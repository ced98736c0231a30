"""Instances as tensors, and what a module makes of them."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, is_frame
from cosilo.errors import LearnerError, with_extra
from cosilo.learners.base import Codes, MissingExtra, black_box

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingExtra(f"a network needs torch: {with_extra('torch')}") from None

from cosilo.learners.devices import carried  # isort: skip
from torch import Tensor, nn  # isort: skip

#: Instances per forward pass when nothing is learnt. What convolutions make of more leaves the cache: with
#: 1,024 CoFED's networks were measured two to three times slower.
PREDICT_BATCH = 64


class Labelled(NamedTuple):
    """Instances as they are stored (bytes stay bytes), their codes or targets, perhaps a weight for each."""

    x: Tensor
    y: Tensor
    weight: Tensor | None

    @classmethod
    def of(
        cls, x: Tensor, y: Codes | NDArray[np.floating[Any]], weight: NDArray[np.float64] | None = None
    ) -> "Labelled":
        """From arrays: codes are whole numbers, and anything else is a target as it is."""
        weights = None if weight is None else torch.tensor(weight, dtype=torch.float32)
        kind = torch.float32 if y.dtype.kind == "f" else torch.long
        return cls(x, torch.tensor(y, dtype=kind), weights)

    def to(self, device: torch.device) -> "Labelled":
        """On another device."""
        weight = None if self.weight is None else carried(self.weight, device)
        return Labelled(carried(self.x, device), carried(self.y, device), weight)


def as_tensor(X: Instances, name: str) -> Tensor:
    """All instances as one tensor: bytes as they are and without a copy, other numbers as float32."""
    if is_frame(X):
        from pandas.api.types import is_numeric_dtype

        strange = [str(c) for c in X.columns if not is_numeric_dtype(X[c].dtype)]
        if strange:
            raise LearnerError(f"{name} wants numbers; column {strange[0]!r} is {X[strange[0]].dtype}")
        with black_box(name, "fit"):
            X = X.to_numpy(dtype=np.float32)
    if X.dtype.kind not in "biuf":
        is_text = X.dtype.kind in "OU"
        hint = ": say how words become numbers, such as tokens = 30000" if is_text else ""
        raise LearnerError(f"{name} wants numbers; got {'text' if is_text else X.dtype}{hint}")
    array = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.uint8 else np.float32)
    with warnings.catch_warnings():
        # A pool may be read-only (mapped from a file). Nothing here writes into the tensor.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def as_module_input(batch: Tensor) -> Tensor:
    """A batch as the module sees it: float32, bytes scaled to [−1, 1], images with channels first; ids int64.

    Channels that were stored last stay last in memory, which is also what convolutions run fastest on.
    """
    if batch.ndim == 3:
        batch = batch.unsqueeze(1)
    elif batch.ndim == 4:
        batch = batch.permute(0, 3, 1, 2)
    if batch.dtype == torch.int32:
        return batch.long()  # token ids
    return batch.float().div_(127.5).sub_(1) if batch.dtype == torch.uint8 else batch


def outputs(module: nn.Module, batch: Tensor, n_classes: int, name: str) -> Tensor:
    """One row of outputs per instance, or an error that names the network."""
    with black_box(name, "forward"):
        answer = module(batch)
    wanted = (len(batch), n_classes)
    if not isinstance(answer, Tensor) or answer.shape != wanted:
        got = f"shape {tuple(answer.shape)}" if isinstance(answer, Tensor) else type(answer).__name__
        raise LearnerError(f"{name}.forward returned {got}; wants a tensor of shape {wanted}")
    return answer
