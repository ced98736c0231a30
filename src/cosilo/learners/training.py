"""The training loop of networks: tensors in, trained module out, no loader in between."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cosilo.errors import LearnerError
from cosilo.instances import Instances, blocks
from cosilo.learners.base import Codes, MissingExtra, black_box
from cosilo.learners.recipe import Recipe

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingExtra('a network needs torch: pip install "cosilo[torch]"') from None

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

#: Instances per forward pass when nothing is learnt: large enough to be quick, small enough for memory.
PREDICT_BATCH = 1024


class Labelled(NamedTuple):
    """Instances as they are stored (bytes stay bytes), their codes, and perhaps a weight for each."""

    x: Tensor
    y: Tensor
    weight: Tensor | None

    @classmethod
    def of(cls, x: Tensor, y: Codes, weight: NDArray[np.float64] | None = None) -> "Labelled":
        """From arrays of codes and weights."""
        weights = None if weight is None else torch.tensor(weight, dtype=torch.float32)
        return cls(x, torch.tensor(y, dtype=torch.long), weights)

    def to(self, device: torch.device) -> "Labelled":
        """On another device."""
        weight = None if self.weight is None else self.weight.to(device)
        return Labelled(self.x.to(device), self.y.to(device), weight)


def as_tensor(X: Instances, name: str) -> Tensor:
    """All instances as one tensor: bytes as they are and without a copy, other numbers as float32."""
    if isinstance(X, pd.DataFrame):
        strange = [str(c) for c in X.columns if not pd.api.types.is_numeric_dtype(X[c].dtype)]
        if strange:
            raise LearnerError(f"{name} wants numbers; column {strange[0]!r} is {X[strange[0]].dtype}")
        with black_box(name, "fit"):
            X = X.to_numpy(dtype=np.float32)
    if X.dtype.kind not in "biuf":
        raise LearnerError(f"{name} wants numbers; got {'text' if X.dtype.kind in 'OU' else X.dtype}")
    array = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.uint8 else np.float32)
    with warnings.catch_warnings():
        # A pool may be read-only (mapped from a file). Nothing here writes into the tensor.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def shown(batch: Tensor) -> Tensor:
    """A batch as the module sees it: float32, bytes scaled to [−1, 1], images with channels first.

    Channels that were stored last stay last in memory, which is also what convolutions run fastest on.
    """
    if batch.ndim == 3:
        batch = batch.unsqueeze(1)
    elif batch.ndim == 4:
        batch = batch.permute(0, 3, 1, 2)
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


def device_of(choice: str) -> torch.device:
    """The device of a recipe; "auto" is the fastest one this machine has."""
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if choice == "auto":
        choice = next(device for device, available in here.items() if available)
    if not here[choice]:
        raise LearnerError(f'device="{choice}" is not available here; set device="auto" or "cpu"')
    return torch.device(choice)


def batch_sizes(n: int, batch: int) -> list[int]:
    """Sizes of the batches of an epoch.

    A single instance left over joins the batch before it, because batch normalisation fails on one.

    >>> batch_sizes(10, 4), batch_sizes(9, 4), batch_sizes(3, 4)
    ([4, 4, 2], [4, 5], [3])
    """
    sizes = [block.stop - block.start for block in blocks(n, batch)]
    if len(sizes) > 1 and sizes[-1] == 1 < batch:
        sizes[-2:] = [batch + 1]
    return sizes


def train(
    module: nn.Module,
    recipe: Recipe,
    data: Labelled,
    held: Labelled | None = None,
    *,
    n_classes: int,
    seed: int,
    name: str,
    pull: float = 0.0,
) -> None:
    """Train a module in place by a recipe; with `held`, stop early and go back to the best weights.

    `pull` adds (pull/2)‖w − w₀‖² to the loss, where w₀ are the weights at the start (FedProx).
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    start = [p.detach().clone() for p in parameters] if pull else []
    optimiser = _optimiser(recipe, parameters)
    order = torch.Generator().manual_seed(seed % 2**63)
    sizes = batch_sizes(len(data.x), recipe.batch)
    best_loss, best_epoch, best_state = math.inf, 0, module.state_dict()
    for epoch in range(recipe.epochs):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate(epoch)
        module.train()
        total = torch.zeros((), device=data.x.device)  # asked for once per epoch: asking waits for the device
        shuffled = torch.randperm(len(data.x), generator=order).to(data.x.device)
        for index in torch.split(shuffled, sizes):
            answer = outputs(module, shown(data.x.index_select(0, index)), n_classes, name)
            if data.weight is None:
                loss = cross_entropy(answer, data.y[index])
            else:
                loss = (cross_entropy(answer, data.y[index], reduction="none") * data.weight[index]).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for parameter, origin in zip(parameters, start, strict=False):
                if parameter.grad is not None:  # the gradient of the proximal term
                    parameter.grad.add_(parameter.detach() - origin, alpha=pull)
            optimiser.step()
            total += loss.detach()
        _finite(total.item(), "loss", epoch, recipe, name)
        if held is not None and recipe.patience is not None:
            held_loss = _finite(
                _mean_loss(module, held, n_classes, name), "validation loss", epoch, recipe, name
            )
            if held_loss < best_loss:
                best_loss, best_epoch = held_loss, epoch
                best_state = {key: value.detach().clone() for key, value in module.state_dict().items()}
            elif epoch - best_epoch >= recipe.patience:
                break
    if held is not None:
        module.load_state_dict(best_state)


def _optimiser(recipe: Recipe, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    # One fused call per step: for small networks the optimiser's own Python would cost as much as the step.
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    lr, decay = recipe.lr, recipe.weight_decay
    match recipe.optimiser:
        case "adam":
            return torch.optim.Adam(parameters, lr=lr, weight_decay=decay, fused=fused)
        case "adamw":
            return torch.optim.AdamW(parameters, lr=lr, weight_decay=decay, fused=fused)
        case "sgd":
            return torch.optim.SGD(
                parameters, lr=lr, momentum=recipe.momentum, weight_decay=decay, fused=fused
            )


@torch.no_grad()
def _mean_loss(module: nn.Module, held: Labelled, n_classes: int, name: str) -> float:
    module.eval()
    total = 0.0
    for block in blocks(len(held.x), PREDICT_BATCH):
        answer = outputs(module, shown(held.x[block]), n_classes, name)
        total += cross_entropy(answer, held.y[block], reduction="sum").item()
    return total / len(held.x)


def _finite(loss: float, what: str, epoch: int, recipe: Recipe, name: str) -> float:
    if math.isfinite(loss):
        return loss
    value = "NaN" if math.isnan(loss) else "infinite"
    raise LearnerError(f"{name}: {what} became {value} in epoch {epoch + 1}; lower lr, now {recipe.lr:g}")
