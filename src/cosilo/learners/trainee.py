"""A network in training: outputs for a batch, then one step down the gradient that a loss has at them.

Losses hand over their gradient at the outputs (`losses`); what is left is to carry it back through the
network and to take a step. Plain dense networks do both without a graph: for them that is half of the time.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import LearnerError
from cosilo.learners.losses import cross_entropy
from cosilo.learners.tensors import outputs
from cosilo.learners.training import Training
from cosilo.learners.zoo import BodyHead

import torch  # isort: skip
from torch import Tensor, nn  # isort: skip
from torch.optim.adam import adam  # isort: skip
from torch.optim.adamw import adamw  # isort: skip
from torch.optim.sgd import sgd  # isort: skip

OptimiserState = Mapping[str, NDArray[Any]]

#: The gradient of a loss at outputs, given what they should have been and perhaps a weight for each instance;
#: then, where several networks train together, the outputs of the others.
Loss: TypeAlias = Callable[..., Tensor]
#: Changes the gradients of parameters in place before a step; gets both by name, and tracks no gradients.
Correction: TypeAlias = Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], None]
#: What happens after a step, with its number (the first is 1) and the parameters by name.
AfterStep: TypeAlias = Callable[[int, Mapping[str, Tensor]], None]


class Optimiser:
    """The steps of a training's optimiser, with a state that can be saved and passed on.

    These are torch's own step functions. Its optimiser objects do the same with more Python around every
    step, and load a compiler, which takes a second and a half, before the first.
    """

    def __init__(
        self, training: Training, parameters: list[Tensor], state: OptimiserState | None = None
    ) -> None:
        self._training = training
        self._parameters = list(parameters)
        moments = {"sgd": ["momentum"] if training.momentum else []}.get(
            training.optimiser, ["mean", "square"]
        )
        self._moments = {kind: [torch.zeros_like(p) for p in parameters] for kind in moments}
        self._steps = 0
        if state:
            self._take_over(state)
        # Adam needs a separate counter for every parameter.
        counted = [] if training.optimiser == "sgd" else parameters
        self._counters = [torch.tensor(float(self._steps), device=p.device) for p in counted]

    def _take_over(self, state: OptimiserState) -> None:
        for kind, tensors in self._moments.items():
            for place, tensor in enumerate(tensors):
                name = f"{kind}.{place}"
                if name not in state or state[name].shape != tuple(tensor.shape):
                    raise LearnerError(f"the state of the optimiser does not fit the network: {name!r}")
                tensor.copy_(torch.from_numpy(np.asarray(state[name])))
        self._steps = int(state["steps"])

    def state(self) -> dict[str, NDArray[Any]]:
        """Moments and the number of steps, to continue from."""
        found: dict[str, NDArray[Any]] = {
            f"{kind}.{place}": tensor.cpu().numpy().copy()
            for kind, tensors in self._moments.items()
            for place, tensor in enumerate(tensors)
        }
        return found | {"steps": np.array(self._steps)}

    @torch.no_grad()
    def step(self, gradients: list[Tensor], rate: float) -> None:
        """One step with this learning rate."""
        common: dict[str, Any] = {"lr": rate, "weight_decay": self._training.weight_decay, "maximize": False}
        common |= {"fused": True, "foreach": False}
        self._steps += 1
        if self._training.optimiser == "sgd":
            momentum: list[Any] = self._moments.get("momentum") or [None] * len(gradients)
            rest: dict[str, Any] = {"momentum": self._training.momentum, "dampening": 0.0, "nesterov": False}
            sgd(self._parameters, gradients, momentum, **common, **rest)
            return
        step = adam if self._training.optimiser == "adam" else adamw
        mean, square = self._moments["mean"], self._moments["square"]
        rest = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False}
        step(self._parameters, gradients, mean, square, [], self._counters, **common, **rest)


class Trainee:
    """A module with its optimiser, its loss, and what a method does before and after each step."""

    def __init__(
        self,
        module: nn.Module,
        training: Training,
        n_classes: int,
        name: str,
        *,
        loss: Loss = cross_entropy,
        correction: Correction | None = None,
        after_step: AfterStep | None = None,
        state: OptimiserState | None = None,
    ) -> None:
        self.module = module
        self.n_classes = n_classes
        self.name = name
        self.loss = loss
        self._named: dict[str, Tensor] = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self._parameters = list(self._named.values())
        if not self._parameters:
            raise LearnerError(f"{name}: has no parameters to train")
        self.optimiser = Optimiser(training, self._parameters, state)
        self._correction, self._after_step, self._steps = correction, after_step, 0
        plain = training.optimiser == "sgd" and not (training.momentum or training.weight_decay)
        self._in_bf16 = training.precision == "bf16"
        self._layers = None if self._in_bf16 else dense_layers(module)
        self._at_once = plain and correction is None and self._layers is not None
        #: Whether a step has no graph, and nobody else has a part in it.
        self.leaves_nothing = self._at_once and after_step is None
        self._passed: list[Tensor] = []  # what went into each layer, or the outputs with their graph

    def outputs(self, batch: Tensor) -> Tensor:
        """One row per instance; `step` then goes back from here."""
        if self._layers is None:
            if self._in_bf16:
                with torch.autocast(batch.device.type, torch.bfloat16):
                    answer = outputs(self.module, batch, self.n_classes, self.name)
                answer = answer.float()  # the loss is taken in single precision
            else:
                answer = outputs(self.module, batch, self.n_classes, self.name)
            self._passed = [answer]
            return answer.detach()
        self._passed = passed = [batch.flatten(1)]
        for layer in self._layers[:-1]:
            passed.append(torch.addmm(layer.bias, passed[-1], layer.turned).relu_())
        last = self._layers[-1]
        return torch.addmm(last.bias, passed[-1], last.turned)

    def step(self, gradient: Tensor, rate: float) -> None:
        """Carry the gradient at the outputs back through the network, and take a step."""
        if self._at_once:
            self._step_at_once(gradient, rate)
        else:
            self.optimiser.step(self._gradients(gradient), rate)
        if self._after_step is not None:
            self._steps += 1
            with torch.no_grad():
                self._after_step(self._steps, self._named)

    def _gradients(self, gradient: Tensor) -> list[Tensor]:
        """Of each parameter, corrected."""
        if self._layers is None:
            found = torch.autograd.grad(self._passed, self._parameters, [gradient], materialize_grads=True)
            pairs = zip(found, self._parameters, strict=True)
            # The step functions walk through memory: parameter and gradient have to lie in the same order.
            gradients = [g if g.stride() == p.stride() else torch.empty_like(p).copy_(g) for g, p in pairs]
        else:
            gradients = self._dense_gradients(gradient)
        if self._correction is not None:
            if len({g.data_ptr() for g in gradients}) < len(gradients):
                gradients = [g.clone() for g in gradients]  # that of a + b is one tensor for both
            with torch.no_grad():
                self._correction(dict(zip(self._named, gradients, strict=True)), self._named)
        return gradients

    def _dense_gradients(self, gradient: Tensor) -> list[Tensor]:
        assert self._layers is not None
        found: list[Tensor] = []
        for place in reversed(range(len(self._layers))):
            layer, passed = self._layers[place], self._passed[place]
            found = [gradient.t() @ passed, gradient.sum(0), *found]
            if place:
                gradient = _through_relu(gradient @ layer.weight, passed)
        return found

    def _step_at_once(self, gradient: Tensor, rate: float) -> None:
        """Plain SGD needs no gradient of the weights in memory: the product is subtracted where they lie."""
        assert self._layers is not None
        for place in reversed(range(len(self._layers))):
            layer, passed = self._layers[place], self._passed[place]
            before = _through_relu(gradient @ layer.weight, passed) if place else gradient
            layer.weight.addmm_(gradient.t(), passed, alpha=-rate)
            layer.bias.add_(gradient.sum(0), alpha=-rate)
            gradient = before


def _through_relu(gradient: Tensor, passed: Tensor) -> Tensor:
    """The gradient before a ReLU, of that after it: as torch's own graph computes it."""
    before: Tensor = torch.ops.aten.threshold_backward(gradient, passed, 0)
    return before


class Dense(NamedTuple):
    """The parameters of a linear layer, at hand: a module looks each of them up by its name.

    They share the module's memory, and no graph is made of what is done with them.
    """

    weight: Tensor
    bias: Tensor
    #: The weight with rows and columns changed over, in the same memory.
    turned: Tensor


def dense_layers(module: nn.Module) -> list[Dense] | None:
    """The linear layers of a network that is nothing but those with ReLU between them, else None.

    >>> len(dense_layers(nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))) or [])
    2
    >>> dense_layers(nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.Linear(3, 2)))
    """
    leaves = []
    for part in module.modules():
        if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks:
            return None
        if type(part) not in (BodyHead, nn.Sequential):
            leaves.append(part)
    if leaves and type(leaves[0]) is nn.Flatten and (leaves[0].start_dim, leaves[0].end_dim) == (1, -1):
        leaves = leaves[1:]
    layers = [part for part in leaves if type(part) is nn.Linear]
    in_turn = [part for layer in layers for part in (layer, nn.ReLU)][:-1]
    same = len(leaves) == len(in_turn) and all(
        leaf is part or type(leaf) is part for leaf, part in zip(leaves, in_turn, strict=True)
    )
    trainable = all(p.requires_grad for p in module.parameters())
    if not layers or not same or not trainable or any(layer.bias is None for layer in layers):
        return None
    pairs = [(layer.weight.detach(), layer.bias.detach()) for layer in layers]
    return [Dense(weight, bias, weight.t()) for weight, bias in pairs]
