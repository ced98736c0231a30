"""Where a network computes: the choice of a device, copies to it, and turns on it.

Nothing here was tried on a GPU yet: tests take the same path on the processor, and hold turns and copies
against a device that is only named.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cosilo.errors import LearnerError

# Otherwise the look for a GPU would be a first use of it, after which no worker could be forked.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

import torch  # isort: skip
from torch import Tensor, nn  # isort: skip


def device_of(choice: str) -> torch.device:
    """The device of a training; "auto" is the fastest one this machine has."""
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if choice == "auto":
        choice = next(device for device, available in here.items() if available)
    if not here[choice]:
        raise LearnerError(f'device="{choice}" is not available here; set device="auto" or "cpu"')
    return torch.device(choice)


def emulates_bf16(device: torch.device) -> bool:
    """Whether bf16 is slower there than single precision: on x86 processors without instructions for it."""
    here: dict[str, object] = getattr(
        torch.cpu, "get_capabilities", dict
    )()  # older versions of torch do not say
    has = here.get("avx512_bf16") or here.get("amx_bf16")
    return device.type == "cpu" and here.get("architecture") == "x86_64" and not has


def carried(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; to a GPU from memory that stays where it is, so that nothing waits for it."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def moved(module: nn.Module, device: torch.device) -> nn.Module:
    """The module on a device; one that is there is not walked through again."""
    there = all(tensor.device == device for tensor in module.parameters())
    return module if there else module.to(device)


@contextmanager
def turn_on(device: torch.device) -> Iterator[None]:
    """Have a GPU to oneself: silos of all processes of this machine use it one after the other.

    Together they would need the memory of all at once, and be no faster. What a silo's network has learnt
    stays on the GPU between its turns; the room for its batches is given back.
    """
    if device.type == "cpu":
        yield
        return
    path = Path(tempfile.gettempdir()) / f"cosilo-{os.getuid()}-{device.type}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed, also by a kill
        try:
            yield
        finally:
            if device.type == "cuda":
                torch.cuda.empty_cache()
