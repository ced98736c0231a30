"""Trained networks as files: the weights, and the whole network as a program that needs no class of ours."""

import warnings
from pathlib import Path
from typing import Any

import torch

from cosilo.errors import LearnerError
from cosilo.learners import module_weights
from cosilo.learners.network import Network


def write_network(network: Network, folder: Path) -> dict[str, Any]:
    """Write what a network has learnt; returns what `model.json` says about it."""
    if network.tokens is not None and not isinstance(network.tokens, int):
        raise LearnerError(
            f"{network.name}: its texts go through a tokeniser or vocabulary of your own, which an export "
            "does not hold; use the model where that is: Run.open(…).model(…)"
        )
    module_weights.save(network.fitted(), folder / "model.safetensors", network.name)
    with warnings.catch_warnings():  # about weights that are not on the processor
        warnings.simplefilter("ignore")
        torch.export.save(program(network), folder / "model.pt2")
    return {
        "kind": "network",
        "file": "model.pt2",
        "by": "probabilities",
        "trusted": {"preprocessing": [], "model": []},
        "flat": False,
        "outputs": list(range(network.n_classes_)),
        "tokens": network.tokens,
        "preprocessed": False,
    }


def program(network: Network) -> Any:
    """The network for any number of instances, as torch's own exporter has it."""
    module = network.fitted().cpu().eval()
    kind = torch.float32 if network.tokens is None else torch.long
    some = torch.zeros(2, *network.input_shape_, dtype=kind)
    return torch.export.export(module, (some,), dynamic_shapes=({0: torch.export.Dim("instances", min=1)},))


def preparation_of(network: Network) -> list[str]:
    """The preprocessing in words."""
    found = []
    if isinstance(network.tokens, int):
        found.append(
            "the first 100 words of a text, in lower case, as numbers: CRC-32 folded into 1 … "
            f"{network.tokens - 1}, and 0 where there are fewer"
        )
    if network.columns_ is not None:
        found.append(f"the columns {', '.join(map(str, network.columns_))}, in this order")
    if network.bytes_:
        found.append("bytes scaled to [−1, 1]: x / 127.5 − 1")
    if len(network.input_shape_) == 3:
        found.append("images with their channels first")
    return [*found, "numbers as float32"]
