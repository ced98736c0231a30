"""Steps against torch's optimiser objects, and dense networks against the graph of autograd."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from cosilo.errors import LearnerError  # noqa: E402
from cosilo.learners import Training, losses  # noqa: E402
from cosilo.learners.trainee import Optimiser, Trainee, dense_layers  # noqa: E402
from cosilo.learners.zoo import lenet5, mlp  # noqa: E402

RECIPES = {
    "sgd": Training(optimiser="sgd", momentum=0, lr=0.05),
    "momentum": Training(optimiser="sgd", momentum=0.9, weight_decay=0.01, lr=0.05),
    "adam": Training(optimiser="adam", weight_decay=0.01, lr=0.01),
    "adamw": Training(optimiser="adamw", weight_decay=0.01, lr=0.01),
}


def reference(training, parameters):
    if training.optimiser == "sgd":
        decay, momentum = training.weight_decay, training.momentum
        return torch.optim.SGD(parameters, lr=training.lr, momentum=momentum, weight_decay=decay)
    kind = torch.optim.Adam if training.optimiser == "adam" else torch.optim.AdamW
    return kind(parameters, lr=training.lr, weight_decay=training.weight_decay)


def batch(seed, shape):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(16, *shape, generator=rng), torch.randint(3, (16,), generator=rng)


def network(kind):
    torch.manual_seed(0)
    if kind == "dense":
        return mlp((20,), 3, hidden=[12, 7]), (20,)
    return lenet5((1, 14, 14), 3).to(memory_format=torch.channels_last), (1, 14, 14)


@pytest.mark.parametrize("kind", ["dense", "convolutional"])
@pytest.mark.parametrize("training", RECIPES.values(), ids=RECIPES)
def test_five_steps_are_those_of_torch(kind, training):
    ours, shape = network(kind)
    ours = ours.double()
    theirs = copy.deepcopy(ours).to(memory_format=torch.contiguous_format)
    optimiser = reference(training, theirs.parameters())
    trainee = Trainee(ours, training, 3, "Net")
    assert (dense_layers(ours) is not None) == (kind == "dense")
    for number in range(5):
        x, y = batch(number, shape)
        x = x.double()
        out = trainee.outputs(x)
        assert torch.allclose(out, theirs(x), atol=1e-10)
        trainee.step(losses.cross_entropy(out, y), training.lr)
        optimiser.zero_grad()
        nn.functional.cross_entropy(theirs(x), y).backward()
        optimiser.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-10)


@pytest.mark.parametrize("training", RECIPES.values(), ids=RECIPES)
def test_an_optimiser_goes_on_from_its_state_bit_for_bit(training):
    def steps(trainee, numbers):
        for number in numbers:
            x, y = batch(number, (20,))
            trainee.step(losses.cross_entropy(trainee.outputs(x), y), training.lr)

    whole = Trainee(network("dense")[0], training, 3, "Net")
    steps(whole, range(6))
    first = Trainee(network("dense")[0], training, 3, "Net")
    steps(first, range(3))
    state = {name: np.array(array) for name, array in first.optimiser.state().items()}
    second = Trainee(copy.deepcopy(first.module), training, 3, "Net", state=state)
    steps(second, range(3, 6))
    pairs = zip(whole.module.parameters(), second.module.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    forgetful = Trainee(copy.deepcopy(first.module), training, 3, "Net")
    steps(forgetful, range(3, 6))
    changed = not torch.equal(next(forgetful.module.parameters()), next(whole.module.parameters()))
    assert changed == (training != RECIPES["sgd"])  # without momentum there is nothing to forget


def test_a_state_of_another_network_is_refused():
    state = Optimiser(RECIPES["momentum"], list(nn.Linear(3, 2).parameters())).state()
    with pytest.raises(LearnerError, match="does not fit the network"):
        Optimiser(RECIPES["momentum"], list(nn.Linear(4, 2).parameters()), state)


def test_what_counts_as_dense():
    assert dense_layers(nn.Sequential(nn.Linear(3, 2))) is not None
    for other in (
        nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),  # no ReLU between
        nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 2, bias=False)),
        nn.Sequential(nn.Flatten(0), nn.Linear(3, 2)),
        nn.Sequential(),
    ):
        assert dense_layers(other) is None
    frozen = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    frozen[0].requires_grad_(False)
    assert dense_layers(frozen) is None

    class Twice(nn.Sequential):
        def forward(self, x):
            return 2 * super().forward(x)

    assert dense_layers(Twice(nn.Linear(3, 2))) is None


def test_nothing_to_train():
    with pytest.raises(LearnerError, match=r"^Net: has no parameters to train$"):
        Trainee(nn.Flatten(), Training(), 2, "Net")


def test_bf16_rounds_what_a_network_computes_and_nothing_else():
    rough, exact = (network("dense")[0] for _ in range(2))
    x, y = batch(0, (20,))
    training = RECIPES["momentum"].but(precision="bf16")
    trainee, other = Trainee(rough, training, 3, "Net"), Trainee(exact, RECIPES["momentum"], 3, "Net")
    out = trainee.outputs(x)
    with torch.autocast("cpu", torch.bfloat16):
        expected = copy.deepcopy(rough)(x)
    assert out.dtype == torch.float32
    assert torch.equal(out, expected.float())
    assert not torch.equal(out, other.outputs(x))
    trainee.step(losses.cross_entropy(out, y), training.lr)
    other.step(losses.cross_entropy(other.outputs(x), y), training.lr)
    for mine, theirs in zip(rough.parameters(), exact.parameters(), strict=True):
        assert mine.dtype == torch.float32
        assert torch.allclose(mine, theirs, atol=0.02 * training.lr)
        assert not torch.equal(mine.bfloat16().float(), mine)  # weights are not rounded
