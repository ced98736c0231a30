"""Distillation: a network learns soft labels, and ends as the mean of where it was on the way (SWA)."""

from cosilo.learners.losses import soft_cross_entropy
from cosilo.learners.tensors import Labelled
from cosilo.learners.trainee import Trainee
from cosilo.learners.training import Training
from cosilo.learners.training_loop import batches, finite

import torch  # isort: skip


def distil(
    student: Trainee, data: Labelled, training: Training, *, average_from: int, average_every: int, seed: int
) -> None:
    """Train a student in place towards the rows of data.y, which are probabilities.

    From step `average_from` on, every `average_every` steps, its parameters enter a running mean, which is
    what it has in the end (stochastic weight averaging). With fewer steps it keeps its last parameters.
    """
    parameters = [p for p in student.module.parameters() if p.requires_grad]
    mean, counted, steps = [torch.zeros_like(p) for p in parameters], 0, 0
    order = torch.Generator().manual_seed(seed % 2**63)
    for epoch in range(training.epochs):
        student.module.train()
        total = torch.zeros((), device=data.x.device)
        for x, targets, _ in batches(data, training.batch, order):
            gradient = soft_cross_entropy(student.outputs(x), targets)
            student.step(gradient, training.rate(epoch))
            total += gradient.sum()
            steps += 1
            if steps >= average_from and (steps - average_from) % average_every == 0:
                counted += 1
                for held, parameter in zip(mean, parameters, strict=True):
                    held += (parameter.detach() - held) / counted
        finite(total, "loss", epoch, training, student.name)
    if counted:
        with torch.no_grad():
            for held, parameter in zip(mean, parameters, strict=True):
                parameter.copy_(held)
