import copy

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from cosilo.errors import LearnerError
from cosilo.learners import Network, Training
from cosilo.learners.base import balanced_weights

rng = np.random.default_rng(0)
X = rng.normal(size=(61, 4)).astype(np.float32)
y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)
IMAGES = rng.integers(0, 256, size=(31, 6, 6, 3), dtype=np.uint8)
CODES = (IMAGES[:, :3].mean(axis=(1, 2, 3)) > 127).astype(np.int64)
QUICK = Training(epochs=3, batch=20, lr=0.01, device="cpu")


def dense(shape, k):
    return nn.Sequential(nn.Linear(shape[0], 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, k))


def convolutional(shape, k):
    return nn.Sequential(
        nn.Conv2d(shape[0], 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(k)
    )


def fitted(module=dense, training=QUICK, X=X, y=y, n_classes=3, seed=1, update_training=None, **options):
    net = Network(module, training, update_training)
    net.fit(X, y, n_classes=n_classes, seed=seed, **options)
    return net


def state(net):
    return {key: value.clone() for key, value in net.module_.state_dict().items()}


def equal(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


# ---------------------------------------------------------------------- what is taken


def test_abilities_and_default_recipes():
    net = Network(dense)
    assert net.can_warm_start
    assert net.warm_starts_by_default
    assert net.has_probabilities
    assert net.can_weigh
    assert net.weighs_by_itself
    assert not net.wants_validation
    assert net.training == Training()
    assert net.update == Training(batch=1000, balanced=True)
    assert Network(dense, Training(lr=0.5)).update.lr == 0.5
    assert Network(dense, Training(patience=2)).wants_validation
    assert Network(dense, update=Training(patience=2)).wants_validation
    assert not Network(dense, update=Training()).weighs_by_itself


def test_names():
    assert Network(nn.Linear(1, 2)).name == "Linear"
    assert Network(dense).name == "dense"


def test_things_that_are_no_networks():
    with pytest.raises(LearnerError, match=r"got int; wants an nn.Module or"):
        Network(3)

    def builder(shape, k):
        return {}

    with pytest.raises(LearnerError, match=r"^builder built a dict; wants an nn.Module$"):
        fitted(builder)

    def leaky(shape, k):
        raise ValueError("patient 4711")

    with pytest.raises(LearnerError, match=r"^leaky\.build raised ValueError$"):
        fitted(leaky)


def test_a_class_is_a_builder():
    class Net(nn.Linear):
        def __init__(self, shape, k):
            super().__init__(shape[0], k)

    assert isinstance(fitted(Net).module_, Net)


def test_builders_get_the_shape_a_module_sees():
    seen = []

    def builder(shape, k):
        seen.append((shape, k))
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(k))

    fitted(builder)
    fitted(builder, X=X.reshape(61, 2, 2))
    fitted(builder, X=IMAGES, y=CODES, n_classes=2)
    assert seen == [((4,), 3), ((1, 2, 2), 3), ((3, 6, 6), 2)]


def test_text_and_words_are_refused():
    with pytest.raises(LearnerError, match="dense wants numbers; got text"):
        fitted(X=np.array(["a"] * 61, dtype=object))


# ---------------------------------------------------------------------- seeds


@pytest.mark.parametrize(("module", "data"), [(dense, (X, y, 3)), (convolutional, (IMAGES, CODES, 2))])
def test_the_seed_decides_every_bit(module, data):
    points, codes, k = data
    first = state(fitted(module, X=points, y=codes, n_classes=k))
    torch.rand(3)
    assert equal(first, state(fitted(module, X=points, y=codes, n_classes=k)))
    assert not equal(first, state(fitted(module, X=points, y=codes, n_classes=k, seed=2)))


def test_the_global_random_states_are_left_alone():
    torch.manual_seed(4)
    np.random.seed(4)  # noqa: NPY002
    expected = torch.rand(1), np.random.random()  # noqa: NPY002
    torch.manual_seed(4)
    np.random.seed(4)  # noqa: NPY002
    fitted().predict(X)
    assert (torch.rand(1), np.random.random()) == expected  # noqa: NPY002


def test_a_template_is_where_every_cold_training_starts_and_stays_as_it_is():
    template = dense((4,), 3)
    before = copy.deepcopy(template.state_dict())
    net = fitted(template)
    first = state(net)
    assert equal(before, template.state_dict())
    net.fit(X, y, n_classes=3, seed=1)
    assert equal(first, state(net))
    still = fitted(template, QUICK.model_copy(update={"lr": 1e-30}))
    assert all(torch.allclose(before[key], value) for key, value in state(still).items())


# ---------------------------------------------------------------------- training


def test_it_learns():
    net = fitted(training=QUICK.model_copy(update={"epochs": 60}))
    assert (net.predict(X) == y).mean() > 0.9


def test_warm_goes_on_and_cold_begins_again():
    net = fitted()
    first = state(net)
    net.fit(X, y, n_classes=3, seed=1, warm=True)
    warm = state(net)
    assert not equal(first, warm)
    tiny = Network(dense, QUICK.model_copy(update={"lr": 1e-30}))
    tiny.module_, tiny.seed_, tiny.columns_ = net.module_, 1, None
    tiny.n_classes_, tiny.input_shape_, tiny.bytes_ = 3, (4,), False
    tiny.fit(X, y, n_classes=3, seed=5, warm=True)
    assert all(torch.allclose(warm[key], value) for key, value in state(tiny).items())
    net.fit(X, y, n_classes=3, seed=1)
    assert equal(first, state(net))


def test_update_training_has_its_own_recipe():
    update = QUICK.model_copy(update={"epochs": 1, "lr": 1e-30})
    net = fitted(update_training=update)
    first = state(net)
    net.fit(X, y, n_classes=3, seed=1, update=True, warm=True)
    assert all(torch.allclose(first[key], value) for key, value in state(net).items())


def test_balance_is_the_recipes_unless_somebody_says_otherwise():
    ones, weights = np.ones(len(y)), balanced_weights(y, 3)
    plain, weighed = state(fitted(sample_weight=ones)), state(fitted(sample_weight=weights))
    assert not equal(plain, weighed)
    assert equal(state(fitted()), plain)
    assert equal(state(fitted(training=QUICK.model_copy(update={"balanced": True}))), weighed)
    batch = QUICK.model_copy(update={"batch": 1000})
    updated = state(fitted(training=QUICK, update=True))
    assert equal(updated, state(fitted(training=batch, sample_weight=weights)))
    assert not equal(updated, state(fitted(training=QUICK, update=True, sample_weight=ones)))


def test_one_instance_left_over_does_not_stop_batch_normalisation():
    assert len(IMAGES) % 10 == 1
    fitted(convolutional, QUICK.model_copy(update={"batch": 10}), IMAGES, CODES, 2)


def test_early_stopping_wants_a_validation_set():
    patient = QUICK.model_copy(update={"patience": 1})
    for validation in (None, (X[:0], y[:0])):
        with pytest.raises(LearnerError, match="dense: patience=1 wants a validation set"):
            fitted(training=patient, validation=validation)
    fitted(training=patient, validation=(X[:9], y[:9]))


def test_early_stopping_restores_the_best_through_fit():
    patient = QUICK.model_copy(update={"patience": 2, "epochs": 30})
    opposite = (X, 2 - y)
    stopped = fitted(training=patient, validation=opposite)
    ends = [state(fitted(training=QUICK.model_copy(update={"epochs": e}))) for e in range(1, 31)]
    assert sum(equal(state(stopped), end) for end in ends) == 1
    assert not equal(state(stopped), ends[-1])


def test_a_fit_that_fails_keeps_what_was_learnt():
    net = fitted()
    before = state(net)
    net.training = QUICK.model_copy(update={"lr": 1e30, "optimiser": "sgd", "epochs": 30})
    with pytest.raises(LearnerError, match=r"dense: loss became (NaN|infinite) in epoch \d+; lower lr"):
        net.fit(X, y, n_classes=3, seed=1, warm=True)
    assert equal(before, state(net))


def test_outputs_of_a_wrong_shape():
    line = r"^Linear\.forward returned shape \(2, 2\); wants a tensor of shape \(2, 3\)$"
    with pytest.raises(LearnerError, match=line):
        fitted(nn.Linear(4, 2))


def test_errors_do_not_quote_the_data():
    class Leaky(nn.Linear):
        def forward(self, x):
            if self.training:
                raise ValueError(f"cannot use {x}")
            return super().forward(x)

    with pytest.raises(LearnerError) as caught:
        fitted(Leaky(4, 3))
    assert str(caught.value) == "Leaky.forward raised ValueError"
    assert "tensor" in str(caught.value.__cause__)


# ---------------------------------------------------------------------- questions


def test_probabilities():
    net = fitted()
    chances = net.predict_proba(X)
    assert chances.dtype == np.float64
    assert chances.shape == (61, 3)
    assert chances.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert np.array_equal(chances.argmax(axis=1), net.predict(X))
    with torch.no_grad():
        by_hand = net.module_(torch.from_numpy(X)).double().exp()
    assert chances == pytest.approx((by_hand / by_hand.sum(1, keepdim=True)).numpy())


def test_predictions_do_not_depend_on_the_batch(monkeypatch):
    net = fitted(convolutional, X=IMAGES, y=CODES, n_classes=2)
    whole = net.predict_proba(IMAGES)
    monkeypatch.setattr("cosilo.learners.network.PREDICT_BATCH", 7)
    assert net.predict_proba(IMAGES) == pytest.approx(whole, abs=1e-6)


def test_nothing_asked_nothing_answered():
    net = fitted()
    assert net.predict(X[:0]).shape == (0,)
    assert net.predict(X[:0]).dtype == np.int64
    assert net.predict_proba(X[:0]).shape == (0, 3)


def test_questions_before_training(tmp_path):
    net = Network(dense)
    for question in (net.predict, net.predict_proba):
        with pytest.raises(LearnerError, match="dense has learnt nothing yet"):
            question(X)
    with pytest.raises(LearnerError, match="dense has learnt nothing yet"):
        net.save(tmp_path)
    with pytest.raises(LearnerError, match="dense has learnt nothing yet"):
        net.fit(X, y, n_classes=3, seed=1, warm=True)


def test_other_instances_than_were_learnt():
    net = fitted()
    with pytest.raises(
        LearnerError, match=r"asked about numbers of shape \(3,\), but it has learnt .*\(4,\)$"
    ):
        net.predict(X[:, :3])
    with pytest.raises(LearnerError, match=r"warm fit on numbers of shape \(3,\) and 3 classes, but it has"):
        net.fit(X[:, :3], y, n_classes=3, seed=1, warm=True)
    with pytest.raises(LearnerError, match=r"and 4 classes, but it has learnt .* and 3; set warm=False"):
        net.fit(X, y, n_classes=4, seed=1, warm=True)


def test_bytes_and_numbers_do_not_mix():
    """Bytes are scaled and numbers are not: joined with numbers, an image is 127 times too bright."""
    net = fitted(convolutional, X=IMAGES, y=CODES, n_classes=2)
    with pytest.raises(
        LearnerError, match=r"asked about numbers of shape \(3, 6, 6\), but it has learnt bytes"
    ):
        net.predict(IMAGES.astype(np.float64))


def test_outputs_that_are_no_numbers():
    net = fitted()
    with torch.no_grad():
        net.module_[0].weight.fill_(torch.nan)
    with pytest.raises(LearnerError, match="dense: outputs are not finite"):
        net.predict(X)


def test_columns_are_learnt_by_name(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    net = fitted(X=frame)
    assert np.array_equal(net.predict_proba(frame), fitted().predict_proba(X))
    net.save(tmp_path)
    loaded = Network(dense, QUICK)
    loaded.load(tmp_path)
    for one in (net, loaded):
        assert np.array_equal(one.predict_proba(frame[list("dcba")]), net.predict_proba(frame))
    net.fit(frame[list("dcba")], y, n_classes=3, seed=1, warm=True)
    loaded.fit(frame, y, n_classes=3, seed=1, warm=True)
    assert equal(state(net), state(loaded))


# ---------------------------------------------------------------------- on disk


class Tied(nn.Module):
    """Two names for one weight, which safetensors stores once."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.second(self.first(x).relu()))


def drawn(shape, k):
    """A builder that draws its architecture."""
    width = int(torch.randint(4, 400, ()))
    return nn.Sequential(nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, k))


@pytest.mark.parametrize(
    ("module", "data"),
    [
        (dense, (X, y, 3)),
        (dense((4,), 3), (X, y, 3)),
        (drawn, (X, y, 3)),
        (Tied(), (X, y, 3)),
        (convolutional, (IMAGES, CODES, 2)),
    ],
)
def test_loaded_networks_predict_and_go_on_with_the_same_bits(module, data, tmp_path):
    points, codes, k = data
    net = fitted(module, X=points, y=codes, n_classes=k)
    net.fit(points, codes, n_classes=k, seed=77, warm=True)
    net.save(tmp_path / "deep" / "folder")
    loaded = Network(module, QUICK)
    loaded.load(tmp_path / "deep" / "folder")
    assert equal(state(net), state(loaded))
    assert np.array_equal(loaded.predict_proba(points), net.predict_proba(points))
    for one in (net, loaded):
        one.fit(points, codes, n_classes=k, seed=78, warm=True)
    assert equal(state(net), state(loaded))


def test_weights_of_another_network_are_refused(tmp_path):
    fitted().save(tmp_path)

    def dense(shape, k):
        return nn.Linear(shape[0], k)

    with pytest.raises(
        LearnerError, match=r"model\.safetensors: RuntimeError; wants the weights of this dense$"
    ):
        Network(dense).load(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(LearnerError, match=r"model\.safetensors: FileNotFoundError; wants"):
        Network(dense).load(tmp_path)
    with pytest.raises(LearnerError, match=r"no learner.json"):
        Network(dense).load(tmp_path / "elsewhere")


def test_loading_leaves_the_global_random_states_alone(tmp_path):
    fitted().save(tmp_path)
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    Network(dense).load(tmp_path)
    assert torch.rand(1) == expected


# ---------------------------------------------------------------------- towards the outputs of others


def test_logits_are_what_softmax_is_taken_of():
    net = fitted(convolutional, X=IMAGES, y=CODES, n_classes=2)
    logits = net.logits(IMAGES)
    assert logits.dtype == np.float32
    assert logits.shape == (31, 2)
    chances = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum(1, keepdims=True)
    assert np.allclose(chances, net.predict_proba(IMAGES))
    with pytest.raises(LearnerError, match="has learnt nothing yet"):
        Network(dense).logits(X)


def mean_absolute_error(outputs, targets, weight):
    return (outputs - targets).sign() / outputs.numel()


def test_imitation_goes_on_from_what_was_learnt_and_is_the_same_by_its_seed():
    teacher, pupils = fitted(seed=5), [fitted() for _ in range(3)]
    start, targets = state(pupils[0]), teacher.logits(X)
    training = QUICK.model_copy(update={"epochs": 40})
    for pupil, seed in zip(pupils, (2, 2, 3), strict=True):
        before = np.abs(pupil.logits(X) - targets).mean()
        pupil.train(X, targets, seed=seed, training=training, loss=mean_absolute_error)
        assert np.abs(pupil.logits(X) - targets).mean() < 0.7 * before
        assert not pupil.module_.training
    assert equal(state(pupils[0]), state(pupils[1]))
    assert not equal(state(pupils[0]), state(pupils[2]))
    assert not equal(state(pupils[0]), start)


def test_an_imitation_that_fails_changes_nothing():
    net = fitted()
    before = state(net)
    with pytest.raises(LearnerError, match="loss became NaN in epoch 1; lower lr"):
        net.train(X, net.logits(X), seed=1, training=QUICK, loss=lambda o, *_: o * torch.nan)
    assert equal(state(net), before)
