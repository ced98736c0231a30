"""The training loop of networks: tensors in, trained modules out, no loader in between."""

import math
from collections.abc import Iterator, Sequence

from cosilo.data.instances import blocks
from cosilo.errors import LearnerError
from cosilo.learners.tensors import PREDICT_BATCH, Labelled, as_module_input, outputs
from cosilo.learners.trainee import Trainee
from cosilo.learners.training import Training

import torch  # isort: skip
from torch import Tensor  # isort: skip
from torch.nn.functional import cross_entropy  # isort: skip


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


#: Instances that are made ready at a time: one copy for many batches, and not one of the whole set.
_READY = 4096


def batches(
    data: Labelled, batch: int, order: torch.Generator, augment: Sequence[str] = ()
) -> Iterator[Labelled]:
    """The batches of one epoch, as a module sees them: one permutation, and slices of it."""
    sizes = batch_sizes(len(data.x), batch)
    shuffled = torch.randperm(len(data.x), generator=order).to(data.x.device)
    at_once = max(1, _READY // batch)
    start = 0
    for group in (sizes[i : i + at_once] for i in range(0, len(sizes), at_once)):
        index = shuffled[start : start + sum(group)]
        images = augmented(data.x, index, augment, order) if augment else data.x.index_select(0, index)
        x = torch.split(as_module_input(images), group)
        y = torch.split(data.y.index_select(0, index), group)
        if data.weight is None:
            weight: Sequence[Tensor | None] = [None] * len(group)
        else:
            weight = torch.split(data.weight.index_select(0, index), group)
        yield from map(Labelled, x, y, weight)
        start += sum(group)


def augmented(images: Tensor, index: Tensor, kinds: Sequence[str], order: torch.Generator) -> Tensor:
    """Some of the images as they are stored (n, height, width, …), each changed at random.

    >>> images = torch.arange(4.0).reshape(1, 1, 4)
    >>> augmented(images, torch.tensor([0, 0]), ["flip"], torch.Generator().manual_seed(0)).tolist()
    [[[3.0, 2.0, 1.0, 0.0]], [[0.0, 1.0, 2.0, 3.0]]]
    """
    height, width = images.shape[1:3]

    def moved(size: int) -> Tensor:
        most = size // 8 if "shift" in kinds else 0
        by = torch.randint(-most, most + 1, (len(index), 1), generator=order)
        return (torch.arange(size) + by).clamp_(0, size - 1)

    rows, columns = moved(height), moved(width)
    if "flip" in kinds:
        mirrored = torch.rand(len(index), 1, generator=order) < 0.5
        columns = torch.where(mirrored, width - 1 - columns, columns)
    device = images.device
    return images[index[:, None, None], rows[:, :, None].to(device), columns[:, None, :].to(device)]


def train(
    trainees: Sequence[Trainee],
    data: Labelled,
    training: Training,
    held: Labelled | None = None,
    *,
    seed: int,
) -> tuple[float, int]:
    """Train modules in place by one training, all on the same batches.

    All outputs are taken before any network moves, and each loss gets those of the others too, held still.
    With `held`, stop early by the first network's loss on that, and go back to its best epoch. Returns that
    loss and how many epochs it took to get there.
    """
    training = training.on(len(data.x))
    first, modules = trainees[0], [trainee.module for trainee in trainees]
    order = torch.Generator().manual_seed(seed % 2**63)
    best_loss, best_epoch = math.inf, 0
    best = [] if held is None else [module.state_dict() for module in modules]
    for epoch in range(training.epochs):
        for module in modules:
            module.train()
        rate = training.rate(epoch)
        # Where nothing is kept of a step but the weights, torch need not prepare for that.
        with torch.inference_mode(all(trainee.leaves_nothing for trainee in trainees)):
            # Asked for once per epoch: asking waits for the device.
            total = torch.zeros((), device=data.x.device)
            for x, y, weight in batches(data, training.batch, order, training.augment):
                answers = [trainee.outputs(x) for trainee in trainees]
                for place, trainee in enumerate(trainees):
                    others = answers[:place] + answers[place + 1 :]
                    gradient = trainee.loss(answers[place], y, weight, *others)
                    trainee.step(gradient, rate)
                    total += gradient.sum()
        _finite(total, "loss", epoch, training, first.name)
        if held is not None and training.patience is not None:
            mean = torch.tensor(_mean_loss(first, held))
            held_loss = _finite(mean, "validation loss", epoch, training, first.name)
            if held_loss < best_loss:
                best_loss, best_epoch = held_loss, epoch
                best = [
                    {key: value.detach().clone() for key, value in module.state_dict().items()}
                    for module in modules
                ]
            elif epoch - best_epoch >= training.patience:
                break
    if held is None:
        return best_loss, training.epochs
    for module, state in zip(modules, best, strict=True):
        module.load_state_dict(state)
    return best_loss, best_epoch + 1


@torch.no_grad()
def _mean_loss(trainee: Trainee, held: Labelled) -> float:
    trainee.module.eval()
    total = 0.0
    for block in blocks(len(held.x), PREDICT_BATCH):
        answer = outputs(trainee.module, as_module_input(held.x[block]), trainee.n_classes, trainee.name)
        total += cross_entropy(answer, held.y[block], reduction="sum").item()
    return total / len(held.x)


def _finite(total: Tensor, what: str, epoch: int, training: Training, name: str) -> float:
    """The number, or an error that says when training diverged."""
    loss = total.item()
    if math.isfinite(loss):
        return loss
    value = "NaN" if math.isnan(loss) else "infinite"
    raise LearnerError(f"{name}: {what} became {value} in epoch {epoch + 1}; lower lr, now {training.lr:g}")
