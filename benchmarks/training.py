"""How near training steps and labelling come to what the processor can do: `python benchmarks/training.py`.

The peak is a practical one: what a product of two 1024 × 1024 matrices in single precision comes to on one
thread. Larger products and convolutions may exceed it a little, as ResNet-18's do. bf16, which night runs of
CIFAR train in, has another peak, and is not measured here.

A step is one of `Network.train`, as a silo takes it: batches of the paper's size, forwards, backwards, and
the optimiser. What counts as work are the multiplications and additions of convolutions and dense layers:
three times those of a pass forwards, but for the first layer, whose inputs need no gradient. Pooling, batch
norm and ReLU count as nothing, though they take a third of the time of CoFED's medium network. Labelling is
`Network.predict` on a pool: one pass forwards. Steps, labelling and products take turns, and processor time
is measured.

The other limit is memory: what layers read and write (inputs, outputs, weights; in training three times, back
and forth) ÷ what copying a large array comes to. Caches keep much of that, so it may be above one; far below
one, memory is not what a step waits for.

Of a step of a medium network (batch 50, Adam, mirrored images) convolutions take 56 %, batch norm 18, pooling
12, ReLU 4, and permuting, mirroring and scaling images 6; the loss, the optimiser and Python are below 2. So
a fused loss, fewer copies or data made ready ahead cannot win a tenth.

LeNet-5 has 6 and 16 channels where a vector has room for 16 numbers. The cases with 16 and 16 show what that
costs: nearly three times the work of convolutions in hardly more time.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread
from cosilo.learners import Network, Training, zoo

TURNS = 5


def lenet5_16(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """LeNet-5 with 16 channels after its first layer instead of 6: all vectors are full."""
    return nn.Sequential(
        nn.Conv2d(input_shape[0], 16, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
        nn.Conv2d(16, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, n_classes),
    )


#: The network, the shape of its instances, and the size of a batch.
CASES: dict[str, tuple[Callable[..., nn.Module], tuple[int, ...], int]] = {
    "cofed_small": (partial(zoo.cofed_cnn, filters=[20, 40]), (32, 32, 3), 50),
    "cofed_medium": (partial(zoo.cofed_cnn, filters=[32, 56, 80]), (32, 32, 3), 50),
    "cofed_large": (partial(zoo.cofed_cnn, filters=[48, 96, 96]), (32, 32, 3), 50),
    "lenet5": (zoo.lenet5, (28, 28), 128),
    "lenet5_tempo": (zoo.lenet5, (28, 28), 10),
    "lenet5_16": (lenet5_16, (28, 28), 128),
    "lenet5_16_tempo": (lenet5_16, (28, 28), 10),
    "cnn": (zoo.cnn, (32, 32, 3), 32),
    "mlp": (zoo.mlp, (28, 28), 128),
    "resnet18": (zoo.resnet18, (32, 32, 3), 32),
}


def work(module: nn.Module, shape: tuple[int, ...]) -> tuple[float, float]:
    """Additions and multiplications of one instance in a training step, and in a pass forwards."""
    found: list[float] = []

    def count(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if isinstance(layer, nn.Conv2d):
            height, width = layer.kernel_size
            found.append(2.0 * output[0].numel() * layer.in_channels * height * width)
        elif isinstance(layer, nn.Linear):
            found.append(2.0 * layer.in_features * layer.out_features)

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    with torch.no_grad():
        module(torch.zeros(2, *shape))
    for hook in hooks:
        hook.remove()
    return 3 * sum(found) - found[0], sum(found)


def traffic(module: nn.Module, shape: tuple[int, ...], batch: int) -> float:
    """Bytes that the layers read and write in a pass forwards, for one instance of a batch."""
    found: list[int] = []

    def count(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if not list(layer.children()):
            found.append(inputs[0][0].nbytes + output[0].nbytes)

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    with torch.no_grad():
        module(torch.zeros(2, *shape))
    for hook in hooks:
        hook.remove()
    return sum(found) + sum(p.nbytes for p in module.parameters()) / batch


def bandwidth() -> float:
    """Bytes a second that are read and written when a large array is copied."""
    one = torch.zeros(2**26)
    other = one.clone()
    start = time.process_time()
    other.copy_(one)
    return 2 * one.nbytes / (time.process_time() - start)


def peak() -> float:
    """Operations a second in products of matrices."""
    size, times = 1024, 5
    one, other = torch.randn(size, size), torch.randn(size, size)
    _ = one @ other
    start = time.process_time()
    for _ in range(times):
        one @ other
    return 2 * size**3 * times / (time.process_time() - start)


def main() -> None:
    threads = OneThread()
    keep_freed_memory()  # as in a worker of a run
    rng = np.random.default_rng(0)
    for name, (build, shape, batch) in CASES.items():
        instances = (2 if name == "resnet18" else 20) * batch
        X = rng.integers(0, 256, (instances, *shape), dtype=np.uint8)
        y = rng.integers(0, 7, instances)
        network = Network(build, Training(optimiser="sgd", lr=1e-3, batch=batch, epochs=1))
        network.fit(X, y, n_classes=7, seed=0)
        each, forwards = work(network.fitted(), network.input_shape_)
        moved = traffic(network.fitted(), network.input_shape_, batch)
        shares, speeds, label_shares, label_speeds, memory_shares = [], [], [], [], []
        for _ in range(TURNS):
            best, copied = peak(), bandwidth()
            start = time.process_time()
            network.fit(X, y, n_classes=7, seed=0, warm=True, training=network.training)
            seconds = time.process_time() - start
            shares.append(each * instances / seconds / best)
            speeds.append(instances / seconds)
            memory_shares.append(3 * moved * instances / seconds / copied)
            start = time.process_time()
            network.predict(X)
            seconds = time.process_time() - start
            label_shares.append(forwards * instances / seconds / best)
            label_speeds.append(instances / seconds)
        speed, label_speed = statistics.median(speeds), statistics.median(label_speeds)
        print(f"{name}: {each / 1e6:.1f} million operations a training step, {forwards / 1e6:.1f} to label")
        print(f"{name}: {speed:,.0f} instances a second in training, {label_speed:,.0f} in labelling")
        print(f"figure {name}_share_of_peak {statistics.median(shares):.3f}")
        print(f"figure {name}_share_of_memory {statistics.median(memory_shares):.3f}")
        print(f"figure {name}_labelling_share_of_peak {statistics.median(label_shares):.3f}", flush=True)
    threads.release()


if __name__ == "__main__":
    main()
