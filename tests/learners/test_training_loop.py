import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from cosilo.errors import LearnerError
from cosilo.learners import Network, Training
from cosilo.learners.base import balanced_weights
from cosilo.learners.losses import cross_entropy
from cosilo.learners.tensors import Labelled, as_module_input, as_tensor, outputs
from cosilo.learners.trainee import Trainee
from cosilo.learners.training_loop import augmented, batch_sizes, train
from cosilo.learners.zoo import mlp

# ---------------------------------------------------------------------- tensors


def test_bytes_stay_bytes_and_are_not_copied():
    images = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    tensor = as_tensor(images, "Net")
    assert tensor.dtype == torch.uint8
    images[0, 0, 0, 0] = 99
    assert tensor[0, 0, 0, 0] == 99


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.bool_, np.float32])
def test_other_numbers_become_single_precision(kind):
    tensor = as_tensor(np.array([[0, 1]], dtype=kind), "Net")
    assert tensor.dtype == torch.float32
    assert tensor.tolist() == [[0, 1]]


def test_mapped_and_backward_arrays_are_taken_without_a_warning():
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_tensor(array[::-1], "Net")[0].tolist() == [4, 5]
        assert as_tensor(array, "Net").shape == (3, 2)


def test_frames_of_numbers_and_nothing_else():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]})
    assert as_tensor(frame, "Net").tolist() == [[1, 1, 0.5], [2, 0, 1.5]]
    with pytest.raises(LearnerError, match=r"^Net wants numbers; column 'job' is"):
        as_tensor(frame.assign(job=["cook", "nurse"]), "Net")
    with pytest.raises(LearnerError, match=r"^Net wants numbers; got text: say how words become numbers"):
        as_tensor(np.array(["a text"], dtype=object), "Net")


def test_what_a_module_sees():
    scaled = as_module_input(torch.tensor([[0, 255], [51, 204]], dtype=torch.uint8))
    # 51/127.5 − 1 = −0.6 and 204/127.5 − 1 = 0.6
    assert scaled.numpy() == pytest.approx(np.array([[-1, 1], [-0.6, 0.6]]), abs=1e-6)
    assert as_module_input(torch.zeros(5, 7, 8)).shape == (5, 1, 7, 8)
    colour = torch.arange(5 * 7 * 8 * 3).reshape(5, 7, 8, 3)
    seen = as_module_input(colour.float())
    assert seen.shape == (5, 3, 7, 8)
    assert seen[1, 2, 3, 4] == colour[1, 3, 4, 2]
    assert seen.is_contiguous(memory_format=torch.channels_last)
    assert as_module_input(colour.byte()).is_contiguous(memory_format=torch.channels_last)
    plain = torch.rand(3, 4)
    assert as_module_input(plain) is plain


def test_scaling_leaves_the_stored_bytes_alone():
    stored = torch.full((2, 2), 255, dtype=torch.uint8)
    as_module_input(stored)
    assert (stored == 255).all()


def test_outputs_are_checked():
    x = torch.zeros(3, 2)
    assert outputs(nn.Linear(2, 4), x, 4, "Net").shape == (3, 4)
    line = r"^Net\.forward returned shape \(3, 4\); wants a tensor of shape \(3, 5\)$"
    with pytest.raises(LearnerError, match=line):
        outputs(nn.Linear(2, 4), x, 5, "Net")
    with pytest.raises(LearnerError, match=r"^Net\.forward returned tuple; wants"):
        outputs(nn.LSTM(2, 4), x, 4, "Net")
    with pytest.raises(LearnerError, match=r"^Net\.forward raised RuntimeError$"):
        outputs(nn.Linear(3, 4), x, 4, "Net")


# ---------------------------------------------------------------------- the loop


@given(st.integers(1, 500), st.integers(1, 60))
def test_batches_cover_the_set_and_none_is_alone(n, batch):
    sizes = batch_sizes(n, batch)
    assert sum(sizes) == n
    assert all(size == batch for size in sizes[:-1])
    assert sizes[-1] <= batch + 1
    if batch > 1 and n > 1:
        assert 1 not in sizes


class Slope(nn.Module):
    """One parameter: the outputs of x are (0, w·x)."""

    def __init__(self, w=0.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w))
        self.batches = []

    def forward(self, x):
        if self.training:
            self.batches.append(x[:, 0].tolist())
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


X4 = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
Y4 = np.array([0, 0, 0, 1])
STEP = Training(optimiser="sgd", momentum=0, lr=0.1, schedule="constant", epochs=1, batch=4)


def trained(training, weights=None, held=None, module=None, y=Y4, seed=0):
    module = module or Slope()
    train([Trainee(module, training, 2, "Slope")], Labelled.of(X4, y, weights), training, held, seed=seed)
    return module


def test_one_balanced_step_by_hand():
    # At w = 0 both classes have p = ½, so ∂loss/∂w is ½·x for class 0 and −½·x for class 1.
    # Weights 1/3 and 1, scaled to mean 1: 2/3 and 2.
    # Mean gradient: (2/3·½·(1 + 2 + 3) − 2·½·4) / 4 = (2 − 4) / 4 = −½;  w = 0 − 0.1·(−½) = 0.05.
    module = trained(STEP, balanced_weights(Y4, 2))
    assert module.w.item() == pytest.approx(0.05)


def test_weights_are_of_the_whole_set_not_of_the_batch():
    module = trained(STEP.model_copy(update={"batch": 2}), balanced_weights(Y4, 2))
    w = 0.0
    for batch in module.batches:
        x = np.array(batch)
        p = 1 / (1 + np.exp(-w * x))
        weight, truth = np.where(x == 4, 2, 2 / 3), x == 4
        w -= 0.1 * np.mean(weight * (p - truth) * x)  # divided by the 2 instances, not by their weights
    assert module.w.item() == pytest.approx(w)


def test_one_plain_step_by_hand():
    # (½·(1 + 2 + 3) − ½·4) / 4 = ¼;  w = −0.025.
    assert trained(STEP).w.item() == pytest.approx(-0.025)


def test_weight_decay_momentum_and_schedule_reach_the_optimiser():
    # Decay adds 0.5·w to the gradient: w = 1 − 0.1·(g + 0.5). At w = 1 class 1 has p = σ(x), so
    # g = (p₁·1 + p₂·2 + p₃·3 − (1 − p₄)·4) / 4.
    p = 1 / (1 + np.exp(-np.arange(1, 5)))
    g = (p[0] + 2 * p[1] + 3 * p[2] - 4 * (1 - p[3])) / 4
    module = trained(STEP.model_copy(update={"weight_decay": 0.5}), module=Slope(1.0))
    assert module.w.item() == pytest.approx(1 - 0.1 * (g + 0.5), rel=1e-5)
    two = STEP.model_copy(update={"epochs": 2})
    still = trained(two.model_copy(update={"schedule": "exponential", "decay": 1e-9}))
    assert still.w.item() == pytest.approx(-0.025)  # the second epoch has almost no learning rate
    assert trained(two.model_copy(update={"momentum": 0.9})).w != trained(two).w


@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_the_first_step_of_adam_is_the_learning_rate(optimiser):
    module = trained(STEP.model_copy(update={"optimiser": optimiser}))
    assert module.w.item() == pytest.approx(-0.1, rel=1e-4)


def test_every_epoch_sees_everything_in_another_order():
    module = trained(STEP.model_copy(update={"epochs": 4, "batch": 2}))
    epochs = [module.batches[i] + module.batches[i + 1] for i in range(0, 8, 2)]
    assert all(sorted(epoch) == [1, 2, 3, 4] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    again = trained(STEP.model_copy(update={"epochs": 4, "batch": 2}))
    assert again.batches == module.batches
    other = trained(STEP.model_copy(update={"epochs": 4, "batch": 2}), seed=1)
    assert other.batches != module.batches


def test_batches_are_never_larger_than_the_set():
    assert len(trained(STEP.model_copy(update={"batch": 1000})).batches) == 1
    assert [len(b) for b in trained(STEP.model_copy(update={"batch": 3})).batches] == [4]


def test_early_stopping_goes_back_to_the_best_weights():
    # Validation wants the opposite of training: every epoch makes it worse, so the first is the best.
    held = Labelled.of(X4, 1 - Y4)
    training = STEP.model_copy(update={"epochs": 50, "patience": 2})
    stopped = trained(training, held=held, y=np.array([1, 1, 1, 1]))
    assert len(stopped.batches) == 1 + 2
    first = trained(STEP, y=np.array([1, 1, 1, 1]))
    assert torch.equal(stopped.w, first.w)


def test_early_stopping_that_never_stops_keeps_the_last():
    y = np.array([1, 1, 1, 1])
    training = STEP.model_copy(update={"epochs": 5, "patience": 1})
    assert torch.equal(trained(training, held=Labelled.of(X4, y), y=y).w, trained(training, y=y).w)


def test_early_stopping_restores_batch_norm_too():
    def run(training, held):
        torch.manual_seed(0)
        module = nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 2))
        train([Trainee(module, training, 2, "Net")], Labelled.of(X4, Y4), training, held, seed=0)
        return module.state_dict()

    stopped = run(STEP.model_copy(update={"epochs": 9, "patience": 3}), Labelled.of(X4, 1 - Y4))
    first = run(STEP, None)
    assert stopped["0.num_batches_tracked"] == 1
    assert all(torch.equal(stopped[key], first[key]) for key in first)


def test_a_loss_that_is_no_number_names_the_epoch():
    class Exploding(Slope):
        def forward(self, x):
            answer = super().forward(x)
            return answer * float("nan") if len(self.batches) > 2 and self.training else answer

    line = r"^Slope: loss became NaN in epoch 3; lower lr, now 0\.1$"
    with pytest.raises(LearnerError, match=line):
        trained(STEP.model_copy(update={"epochs": 5}), module=Exploding())

    class Infinite(Slope):
        def forward(self, x):
            answer = super().forward(x)
            return answer if self.training else answer - torch.tensor([0.0, torch.inf])

    held = Labelled.of(X4, Y4)
    with pytest.raises(LearnerError, match="validation loss became infinite in epoch 1"):
        trained(STEP.model_copy(update={"patience": 1}), held=held, module=Infinite())


def test_frozen_parameters_stay():
    module = nn.Sequential(nn.Linear(1, 3), nn.Linear(3, 2))
    module[0].requires_grad_(False)
    before = module[0].weight.clone(), module[1].weight.clone()
    train([Trainee(module, STEP, 2, "Net")], Labelled.of(X4, Y4), STEP, seed=0)
    assert torch.equal(module[0].weight, before[0])
    assert not torch.equal(module[1].weight, before[1])


# ---------------------------------------------------------------------- what methods put into it


def test_networks_that_train_together_see_the_same_batches_and_each_other_before_they_move():
    """Each is drawn to the other's outputs: by hand, both from where the step began."""
    seen = []

    def towards(outputs, codes, weight, other):
        seen.append((outputs[:, 1].tolist(), other[:, 1].tolist()))
        return (outputs - other) / len(outputs)

    first, second = Slope(1.0), Slope(3.0)
    pair = [Trainee(module, STEP, 2, "Slope", loss=towards) for module in (first, second)]
    train(pair, Labelled.of(X4, Y4), STEP, seed=0)
    assert first.batches == second.batches
    assert seen[0] == seen[1][::-1]
    # The gradient of w is the mean of (w − w′)·x²: 7.5·(w − w′).
    assert first.w.item() == pytest.approx(1 + 0.1 * 7.5 * 2)
    assert second.w.item() == pytest.approx(3 - 0.1 * 7.5 * 2)


def test_early_stopping_looks_at_the_first_network_and_takes_all_back():
    training = STEP.model_copy(update={"epochs": 50, "patience": 2})
    up = np.array([1, 1, 1, 1])

    def alone(outputs, codes, weight, *others):
        return cross_entropy(outputs, codes, weight)

    def run(training, held):
        modules = Slope(), Slope(0.5)
        pair = [Trainee(module, training, 2, "Slope", loss=alone) for module in modules]
        train(pair, Labelled.of(X4, up), training, held, seed=0)
        return [module.w.item() for module in modules]

    assert run(training, Labelled.of(X4, 1 - up)) == run(STEP, None)  # the first epoch was the best


@pytest.mark.parametrize("hidden", [[], [5]])
def test_a_correction_changes_gradients_by_name_before_the_step(hidden):
    """Without any gradient nothing moves; with that of one parameter only that one does."""
    torch.manual_seed(0)
    module = mlp((1,), 2, hidden=hidden)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}

    def only_the_last_bias(gradients, parameters):
        assert gradients.keys() == parameters.keys() == before.keys()
        for name, gradient in gradients.items():
            assert gradient.shape == parameters[name].shape
            gradient.zero_()
        gradients["head.bias"] += 2.0

    train([Trainee(module, STEP, 2, "mlp", correction=only_the_last_bias)], Labelled.of(X4, Y4), STEP, seed=0)
    for name, parameter in module.named_parameters():
        moved = -0.1 * 2.0 if name == "head.bias" else 0.0
        assert torch.allclose(parameter, before[name] + moved)


def test_parameters_that_share_a_gradient_are_each_corrected_once():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.tensor([0.0])) for _ in range(2))

        def forward(self, x):
            return torch.cat([torch.zeros_like(x), (self.a + self.b) * x], dim=1)

    def one_more(gradients, parameters):
        for gradient in gradients.values():
            gradient += 1

    module = Sum()
    train([Trainee(module, STEP, 2, "Sum", correction=one_more)], Labelled.of(X4, Y4), STEP, seed=0)
    # As in `test_one_plain_step_by_hand` the gradient is ¼.
    assert [module.a.item(), module.b.item()] == pytest.approx([-0.125, -0.125])


@pytest.mark.parametrize("module", [Slope(), mlp((1,), 2, hidden=[3])], ids=["graph", "dense"])
def test_what_comes_after_a_step_sees_its_number_and_the_new_parameters(module):
    training = STEP.model_copy(update={"epochs": 3, "batch": 2})
    numbers, values = [], []

    def note(step, parameters):
        numbers.append(step)
        values.append(torch.cat([p.flatten() for p in parameters.values()]))

    train([Trainee(module, training, 2, "Net", after_step=note)], Labelled.of(X4, Y4), training, seed=0)
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert len({tuple(value.tolist()) for value in values}) == 6
    assert torch.equal(values[-1], torch.cat([p.detach().flatten() for p in module.parameters()]))


# ---------------------------------------------------------------------- augmentation and passes


def test_shifted_images_repeat_their_edge_and_flips_are_mirrors():
    image = torch.arange(64.0).reshape(1, 8, 8, 1)
    seen = augmented(image, torch.zeros(400, dtype=torch.long), ["flip", "shift"], torch.Generator())
    wanted = []
    for down in (-1, 0, 1):  # an eighth of eight
        for right in (-1, 0, 1):
            rows = np.clip(np.arange(8) + down, 0, 7)
            columns = np.clip(np.arange(8) + right, 0, 7)
            for columns_ in (columns, 7 - columns):
                wanted.append(image[0, :, :, 0].numpy()[np.ix_(rows, columns_)].tobytes())
    found = {one[:, :, 0].numpy().tobytes() for one in seen}
    assert found <= set(wanted)
    assert len(found) > 12  # of the 18 that there are


def test_augmentation_keeps_form_and_type():
    images = torch.randint(0, 255, (5, 16, 16, 3), dtype=torch.uint8)
    found = augmented(images, torch.tensor([4, 2]), ["flip"], torch.Generator().manual_seed(1))
    assert (found.shape, found.dtype) == ((2, 16, 16, 3), torch.uint8)
    for one, index in zip(found, (4, 2), strict=True):
        assert (one == images[index]).all() or (one == images[index].flip(1)).all()


def test_augmentation_is_for_images():
    network = Network(lambda shape, k: nn.Linear(shape[0], k), Training(augment=["flip"], epochs=1))
    with pytest.raises(LearnerError, match=r"augment = \['flip'\] wants images; got numbers of shape \(2,\)"):
        network.fit(np.zeros((4, 2)), np.array([0, 1, 0, 1]), n_classes=2, seed=0)


def test_as_many_epochs_as_come_nearest_to_the_passes():
    assert [Training(passes=100).on(n).epochs for n in (100, 60, 70, 1000)] == [1, 2, 1, 1]
    assert Training(epochs=7).on(3).epochs == 7
