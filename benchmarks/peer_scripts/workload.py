"""What all peers train: data, networks and settings from one file. Needs numpy and torch, and not cosilo."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Workload:
    """Images and labels of every silo, test data, and the network that all start from."""

    network: str
    x: Tensor  # silos × images × 1 × 28 × 28
    y: Tensor
    test_x: Tensor
    test_y: Tensor
    weights: list[Tensor]
    rounds: int
    rate: float
    batch: int

    def module(self) -> nn.Sequential:
        """The network, as cosilo's zoo builds it, with its initial weights."""
        module = nn.Sequential(*_layers(self.network))
        with torch.no_grad():
            for parameter, tensor in zip(module.parameters(), self.weights, strict=True):
                parameter.copy_(tensor)
        return module

    def train(self, module: nn.Module, silo: int) -> None:
        """One epoch of a silo, as in the bare loop of `fedavg.py`."""
        x, y = self.x[silo], self.y[silo]
        optimiser = torch.optim.SGD(module.parameters(), lr=self.rate)
        for index in torch.split(torch.randperm(len(x)), self.batch):
            loss = cross_entropy(module(x[index]), y[index])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    def tell(self, marks: Sequence[float], module: nn.Module, version: str) -> None:
        """Print what `peers.py` reads: when training began and when each round ended, and the accuracy."""
        with torch.inference_mode():
            codes = torch.cat([module(part).argmax(1) for part in torch.split(self.test_x, 1000)])
        accuracy = float((codes == self.test_y).float().mean())
        print(json.dumps({"marks": list(marks), "accuracy": accuracy, "version": version}), flush=True)


@lru_cache
def load(path: Path) -> Workload:
    """Read once in a process."""
    torch.set_num_threads(1)
    with np.load(path) as file:
        arrays = dict(file)
    settings = json.loads(str(arrays.pop("settings")))
    x, y, test_x, test_y = (torch.from_numpy(arrays.pop(name)) for name in ("x", "y", "test_x", "test_y"))
    weights = [torch.from_numpy(array) for array in arrays.values()]
    return Workload(x=_scaled(x), y=y, test_x=_scaled(test_x), test_y=test_y, weights=weights, **settings)


def _scaled(images: Tensor) -> Tensor:
    return images.float().div(127.5).sub(1).unsqueeze(-3)


def _layers(network: str) -> list[nn.Module]:
    """Layers with parameters in the order of cosilo's zoo."""
    if network == "mlp":
        dense = [nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)]
        return [nn.Flatten(), *dense]
    first = [nn.Conv2d(1, 6, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(inplace=True)]
    second = [nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(inplace=True)]
    dense = [nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return [*first, *second, nn.Flatten(), *dense]
