"""Losses, as their gradients with respect to a network's outputs: all that training needs of them.

Each is of the mean over the batch. The gradient of softmax and cross-entropy together is p − y, so nothing
here is more than a few operations, whatever the network.
"""

from cosilo.learners import tensors  # noqa: F401 - says it in one line if torch is missing

import torch  # isort: skip
from torch import Tensor  # isort: skip


def cross_entropy(outputs: Tensor, codes: Tensor, weight: Tensor | None = None) -> Tensor:
    """Of Σ w·CE / n: w·(p − y) / n, where y is 1 at the code and 0 elsewhere.

    >>> cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor([[ 0.5000, -0.5000]])
    """
    gradient = outputs.softmax(1)
    gradient[torch.arange(len(codes), device=codes.device), codes] -= 1
    if weight is not None:
        gradient *= weight.unsqueeze(1)
    return gradient.div_(len(outputs))


def soft_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Of the mean cross-entropy with rows of probabilities: (p − target) / n.

    >>> soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.25, 0.75]]))
    tensor([[ 0.2500, -0.2500]])
    """
    return (outputs.softmax(1) - targets).div_(len(outputs))


def divergence(outputs: Tensor, peer: Tensor, temperature: float = 1.0) -> Tensor:
    """Of KL(p_peer ‖ p), both softened by a temperature T and the peer held still: (p − p_peer) / (T·n).

    >>> divergence(torch.zeros(1, 2), torch.tensor([[0.0, 0.0]]))
    tensor([[0., 0.]])
    """
    own, theirs = (logits.div(temperature).softmax(1) for logits in (outputs, peer))
    return (own - theirs).div_(temperature * len(outputs))


def mean_absolute_error(outputs: Tensor, targets: Tensor, weight: Tensor | None = None) -> Tensor:
    """Of the mean of |z − target| over instances and outputs: its sign, divided by their number.

    >>> mean_absolute_error(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]]))
    tensor([[-0.5000,  0.0000]])
    """
    error = outputs - targets
    # To torch the sign of NaN is 0, which would hide a network that went astray.
    gradient = error.sign().add_(error, alpha=0)
    if weight is not None:
        gradient *= weight.unsqueeze(1)
    return gradient.div_(outputs.numel())
