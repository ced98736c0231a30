"""The weights of a torch module as arrays and as a file."""

import errno
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from cosilo.errors import LearnerError


def read(module: nn.Module) -> dict[str, NDArray[Any]]:
    """Copies of all parameters and buffers, by name."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in module.state_dict().items()}


def take_over(module: nn.Module, weights: Mapping[str, NDArray[Any]], name: str) -> None:
    """Put arrays where a module's parameters and buffers are; `name` is what an error calls the network."""
    mine = module.state_dict()
    for key in sorted(mine.keys() ^ weights.keys()):
        odd = "lacks" if key in mine else "has besides"
        raise LearnerError(f"{name}: the global model {odd} {key!r}; the architectures differ")
    for key, array in weights.items():
        if tuple(mine[key].shape) != array.shape:
            raise LearnerError(
                f"{name}: {key!r} is {list(array.shape)} in the global model, here "
                f"{list(mine[key].shape)}; the architectures differ"
            )
    with torch.no_grad(), warnings.catch_warnings():
        # What came in a message is read-only, and nothing here writes into it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        for key, array in weights.items():
            mine[key].copy_(torch.from_numpy(array))


def save(module: nn.Module, path: Path, name: str) -> None:
    """Write parameters and buffers as safetensors."""
    try:
        save_model(module, str(path))
    except SafetensorError as error:
        full = "os error 28" in str(error)  # a full disk is not the network's fault
        raise (OSError(errno.ENOSPC, str(error)) if full else _not_saved(name)) from error
    except (RuntimeError, ValueError) as error:
        raise _not_saved(name) from error


def load(module: nn.Module, path: Path, name: str) -> None:
    """Read what `save` wrote into a module that was built the same way."""
    try:
        load_model(module, str(path))
    except Exception as error:
        kind = type(error).__name__
        raise LearnerError(f"{path}: {kind}; wants the weights of this {name}") from error


def _not_saved(name: str) -> LearnerError:
    return LearnerError(f"{name}: its weights cannot be written as safetensors")
