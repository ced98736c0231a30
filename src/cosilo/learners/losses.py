"""The usual loss, as its gradient with respect to a network's outputs: all that training needs of it.

It is of the mean over the batch. The gradient of softmax and cross-entropy together is p − y: a few
operations, whatever the network. Losses that belong to a method are in the method's file.
"""

from cosilo.learners import tensors  # noqa: F401 - says it in one line if torch is missing

from torch import Tensor  # isort: skip


def cross_entropy(outputs: Tensor, codes: Tensor, weight: Tensor | None = None) -> Tensor:
    """Of Σ w·CE / n: w·(p − y) / n, where y is 1 at the code and 0 elsewhere.

    >>> import torch
    >>> cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor([[ 0.5000, -0.5000]])
    """
    gradient = outputs.softmax(1)
    gradient.scatter_(1, codes.unsqueeze(1), -1.0, reduce="add")
    if weight is not None:
        gradient *= weight.unsqueeze(1)
    return gradient.div_(len(outputs))


def soft_cross_entropy(outputs: Tensor, targets: Tensor, weight: Tensor | None = None) -> Tensor:
    """Of −Σ t·log p / n, with as much of every class as a row of targets has: ((Σ t)·p − t) / n.

    What a row adds up to is what its instance weighs.

    >>> import torch
    >>> soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.5, 1.5]]))
    tensor([[ 0.5000, -0.5000]])
    """
    if weight is not None:
        targets = targets * weight.unsqueeze(1)
    return (outputs.softmax(1) * targets.sum(1, keepdim=True)).sub_(targets).div_(len(outputs))
