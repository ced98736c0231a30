"""DP-SGD for dense networks: sample records, clip what each of them says, add noise, take a step.

M. Abadi et al., "Deep Learning with Differential Privacy", 2016. Here a network is layers of weights and
biases; a softmax regression has one. The gradient of one record in a layer is the outer product of what goes
in and the error that comes back, so its norm is a product of norms, and no record's gradient is ever made:

    ‖gᵢ‖² = Σₗ (‖aₗ‖² + 1) ‖δₗ‖²

What does not touch a record is free: rates and averages depend on the number of records, which is counted
with noise, and the last half of all weights is averaged.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosilo.privacy import entropy
from cosilo.privacy.accounting import Schedule

Floats = NDArray[np.float64]
#: Weights and biases of each layer.
Layers = list[tuple[Floats, Floats]]

MOMENTUM = 0.9
#: The norm that a record's gradient is clipped to.
CLIP = 1.0
#: The rate for a thousand records; with fewer there is more noise in a step, and it has to be shorter.
RATE, LEAST_RATE, MOST_RATE = 1.5, 0.1, 5.0


def noisy_count(n: int, noise: float) -> float:
    """How many records there are, with noise; at least ten."""
    return max(10.0, n + noise * float(entropy.normal(1)[0]))


def train(
    X: Floats,
    y: NDArray[np.integer],
    n_classes: int,
    noise: float,
    schedule: Schedule,
    count: float,
    hidden: int = 0,
) -> Layers:
    """The layers of a network that was trained privately on features X and codes y.

    `noise` is a multiple of the clipping norm, `count` the noisy number of records.
    """
    layers = _start(X.shape[1], n_classes, hidden)
    targets = np.eye(n_classes)[y]
    rate = min(max(RATE * count / 1000, LEAST_RATE), MOST_RATE)
    velocity = [(np.zeros_like(W), np.zeros_like(b)) for W, b in layers]
    total = [(np.zeros_like(W), np.zeros_like(b)) for W, b in layers]
    half = schedule.steps // 2
    for number in range(schedule.steps):
        drawn = np.flatnonzero(entropy.uniform(len(X)) < schedule.sampling)
        sums = clipped_sums(layers, X[drawn], targets[drawn], CLIP)
        share = 1 / (CLIP * schedule.sampling * count)
        for place, (W, b) in enumerate(layers):
            dW, db = (part + noise * CLIP * entropy.normal(*part.shape) for part in sums[place])
            vW, vb = velocity[place]
            velocity[place] = vW, vb = MOMENTUM * vW + share * dW, MOMENTUM * vb + share * db
            layers[place] = W - rate * vW, b - rate * vb
        if number >= half:
            total = [(tW + W, tb + b) for (tW, tb), (W, b) in zip(total, layers, strict=True)]
    return [(tW / (schedule.steps - half), tb / (schedule.steps - half)) for tW, tb in total]


def clipped_sums(layers: Layers, X: Floats, targets: Floats, clip: float) -> Layers:
    """The sum of the records' gradients of the cross-entropy, each clipped to a norm over all layers."""
    inputs, errors = _through(layers, X, targets)
    squared = sum(
        ((a * a).sum(axis=1) + 1) * (e * e).sum(axis=1) for a, e in zip(inputs, errors, strict=True)
    )
    scale = np.minimum(1.0, clip / np.maximum(np.sqrt(squared), 1e-12))[:, None]
    return [(a.T @ (e * scale), (e * scale).sum(axis=0)) for a, e in zip(inputs, errors, strict=True)]


def chances(layers: Layers, X: Floats) -> Floats:
    """How likely each class is, one row for each instance."""
    return _softmax(_forward(layers, X)[-1])


def _through(layers: Layers, X: Floats, targets: Floats) -> tuple[Sequence[Floats], Sequence[Floats]]:
    """What goes into each layer, and the error that comes back to it."""
    *inputs, outputs = _forward(layers, X)
    errors = [_softmax(outputs) - targets]
    for (W, _), inside in zip(layers[:0:-1], inputs[:0:-1], strict=True):
        errors.insert(0, (errors[0] @ W.T) * (inside > 0))
    return inputs, errors


def _forward(layers: Layers, X: Floats) -> list[Floats]:
    """What goes into each layer, and what comes out of the last one."""
    found = [X]
    for place, (W, b) in enumerate(layers):
        out = found[-1] @ W + b
        found.append(out if place == len(layers) - 1 else np.maximum(out, 0))
    return found


def _softmax(outputs: Floats) -> Floats:
    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    found: Floats = raised / raised.sum(axis=1, keepdims=True)
    return found


def _start(width: int, n_classes: int, hidden: int) -> Layers:
    """The last layer begins with zeros: every class is as likely as any other."""
    last = np.zeros((hidden or width, n_classes)), np.zeros(n_classes)
    if not hidden:
        return [last]
    return [(entropy.normal(width, hidden) * np.sqrt(2 / width), np.zeros(hidden)), last]
