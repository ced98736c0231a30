import inspect
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cosilo.errors import LearnerError
from cosilo.learners import Network, Training
from cosilo.learners.base import seeded
from cosilo.learners.zoo import COFED_FILTERS, ZOO, cofed_cnn, find, hash_tokens, mlp, text

IMAGE_NETWORKS = [name for name in ZOO if name != "text"]
MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
#: The smallest images each takes (mlp takes anything).
LEAST = {"mlp": 4, "lenet5": 12, "cnn1": 10, "cnn2": 22, "cnn": 4, "cofed_cnn": 18, "resnet18": 8}


def count(network):
    return sum(p.numel() for p in network.parameters())


def small(name):
    """The smallest instances a network takes, and what the builder is called with."""
    return (5,) if name == "text" else (2, LEAST[name], LEAST[name] + 1)


# ---------------------------------------------------------------------- sizes by hand


@pytest.mark.parametrize(
    ("name", "shape", "k", "options", "parameters"),
    [
        # 784·200 + 200 = 157,000; 200·200 + 200 = 40,200; 200·10 + 10 = 2,010
        ("mlp", MNIST, 10, {}, 199_210),
        # 4·3 + 3 = 15; 3·2 + 2 = 8
        ("mlp", (4,), 2, {"hidden": [3]}, 23),
        # softmax regression: 4·2 + 2
        ("mlp", (4,), 2, {"hidden": []}, 10),
        # 25·6 + 6 = 156; 6·25·16 + 16 = 2,416; 28 → 28 → 14 → 10 → 5, so 16·5·5 = 400 features:
        # 400·120 + 120 = 48,120; 120·84 + 84 = 10,164; 84·10 + 10 = 850
        ("lenet5", MNIST, 10, {}, 61_706),
        # three channels: 3·25·6 + 6 = 456, 300 more; 32 → 28 → 14 → 10 → 5, so the rest is the same
        ("lenet5", CIFAR, 10, {}, 62_006),
        # 84·90 = 7,560 and 90 biases more
        ("lenet5", CIFAR, 100, {}, 62_006 + 7_650),
        # 3·9·6 + 6 = 168; 6·9·16 + 16 = 880; 32 → 30 → 15 → 13 → 6, so 16·36 = 576 features:
        # 576·64 + 64 = 36,928; 64·10 + 10 = 650
        ("cnn1", CIFAR, 10, {}, 38_626),
        # 576·120 + 120 = 69,240; 120·10 + 10 = 1,210
        ("cnn1", CIFAR, 10, {"hidden": 120}, 168 + 880 + 69_240 + 1_210),
        # 3·9·128 + 128 = 3,584; twice 128·9·128 + 128 = 147,584; 32 → 30 → 15 → 13 → 6 → 4 → 2, so
        # 128·4 = 512 features: 512·10 + 10 = 5,130
        ("cnn2", CIFAR, 10, {}, 303_882),
        # 3·9·32 + 32 = 896; 32·9·64 + 64 = 18,496; 32 → 16 → 8, so 64·64 = 4,096 features:
        # 4,096·128 + 128 = 524,416; 128·10 + 10 = 1,290
        ("cnn", CIFAR, 10, {}, 545_098),
        # 3·9·24 + 2·24 = 696; 24·9·40 + 2·40 = 8,720; 40·7 = 280 without bias
        ("cofed_cnn", CIFAR, 7, {"filters": [24, 40]}, 9_696),
        # the same two blocks; 40·9·56 + 2·56 = 20,272; 56·7 = 392
        ("cofed_cnn", CIFAR, 7, {"filters": (24, 40, 56)}, 696 + 8_720 + 20_272 + 392),
        # stem 3·9·64 + 128 = 1,856
        # stage 1: 4·(64·9·64 + 128) = 147,968
        # stage 2: 64·9·128 + 3·128·9·128 + 4·256 + shortcut (64·128 + 256) = 525,568
        # stage 3: 128·9·256 + 3·256·9·256 + 4·512 + (128·256 + 512) = 2,099,712
        # stage 4: 256·9·512 + 3·512·9·512 + 4·1,024 + (256·512 + 1,024) = 8,393,728
        # head 512·10 + 10 = 5,130
        ("resnet18", CIFAR, 10, {}, 11_173_962),
        # one channel: 2·9·64 = 1,152 fewer
        ("resnet18", MNIST, 10, {}, 11_173_962 - 1_152),
        # 1,000·16 + 16·14 + 14
        ("text", (20,), 14, {"vocabulary_size": 1000, "dim": 16}, 16_238),
        # 32,768·64 + 64·14 + 14
        ("text", (20,), 14, {}, 2_098_062),
    ],
)
def test_parameters_by_hand(name, shape, k, options, parameters):
    assert count(ZOO[name](shape, k, **options)) == parameters


def test_the_cnn_of_dofed_spp_is_as_large_as_the_paper_says():
    for k in (10, 100):
        assert count(ZOO["cnn"](CIFAR, k)) * 4 / 2**20 == pytest.approx(2.1, abs=0.05)
    assert count(text((20,), 14, vocabulary_size=200_000)) * 4 / 1e6 == pytest.approx(51, abs=0.5)


# ---------------------------------------------------------------------- form


@pytest.mark.parametrize("name", ZOO)
def test_a_network_is_a_body_and_a_linear_head(name):
    shapes = [(30,)] if name == "text" else [MNIST, CIFAR, small(name)]
    for shape, k in zip(shapes, (2, 10, 62), strict=False):
        network = ZOO[name](shape, k).eval()
        x = torch.randint(9, (3, *shape)).float()
        with torch.no_grad():
            answer = network(x)
            assert answer.shape == (3, k)
            assert torch.equal(answer, network.head(network.body(x)))
        assert isinstance(network.head, nn.Linear)
        assert network.head.out_features == k
        assert {part for part, _ in network.named_children()} == {"body", "head"}


@pytest.mark.parametrize("name", ZOO)
def test_two_tasks_can_share_a_body(name):
    options = {"filters": [20, 32]} if name == "cofed_cnn" else {}
    first, second = (ZOO[name](small(name), k, **options) for k in (2, 5))
    second.body.load_state_dict(first.body.state_dict())
    x = torch.ones(2, *small(name))
    assert torch.equal(first.eval().body(x), second.eval().body(x))


@pytest.mark.parametrize("name", ZOO)
def test_a_new_network_is_ready_to_train_and_its_statistics_are_untouched(name):
    network = ZOO[name](small(name), 3)
    assert all(module.training for module in network.modules())
    assert all(p.requires_grad for p in network.parameters())
    assert not any(isinstance(module, nn.modules.lazy.LazyModuleMixin) for module in network.modules())
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert bool(norms) == (name in ("cofed_cnn", "resnet18"))
    assert len(list(network.buffers())) == sum(len(list(norm.buffers())) for norm in norms)
    for norm in norms:
        assert norm.num_batches_tracked == 0
        assert torch.equal(norm.running_mean, torch.zeros_like(norm.running_mean))
        assert torch.equal(norm.running_var, torch.ones_like(norm.running_var))


def names(network):
    """The names of a state in order, weights and biases in one."""
    return list(dict.fromkeys(key.rpartition(".")[0] for key in network.state_dict()))


def test_names_are_stable():
    """Saved models and messages between silos are keyed by these names."""
    assert names(mlp((4,), 2)) == ["body.dense1", "body.dense2", "head"]
    two = ["body.conv1", "body.conv2"]
    assert names(ZOO["lenet5"](CIFAR, 2)) == [*two, "body.dense1", "body.dense2", "head"]
    assert names(ZOO["cnn1"](CIFAR, 2)) == names(ZOO["cnn"](CIFAR, 2)) == [*two, "body.dense1", "head"]
    assert names(ZOO["cnn2"](CIFAR, 2)) == [*two, "body.conv3", "head"]
    blocks = ["body.conv1", "body.norm1", "body.conv2", "body.norm2"]
    assert names(cofed_cnn(CIFAR, 2, filters=[1, 2])) == [*blocks, "head"]
    assert names(cofed_cnn(CIFAR, 2, filters=[1, 2, 3])) == [*blocks, "body.conv3", "body.norm3", "head"]
    assert names(text((9,), 2)) == ["body.embedding", "head"]
    expected = ["body.conv", "body.norm"]
    for stage in (1, 2, 3, 4):
        for block in (1, 2):
            inside = ["conv1", "norm1", "conv2", "norm2"]
            inside += ["shortcut.conv", "shortcut.norm"] if stage > 1 and block == 1 else []
            expected += [f"body.stage{stage}.block{block}.{one}" for one in inside]
    assert names(ZOO["resnet18"](CIFAR, 2)) == [*expected, "head"]


def test_a_residual_block_by_hand():
    block = ZOO["resnet18"](CIFAR, 2).eval().body.stage1.block1
    x = torch.randn(2, 64, 4, 4)
    nn.init.zeros_(block.norm2.weight)  # the change is now 0: what is left is the way round
    assert torch.equal(block(x), x.relu())
    nn.init.constant_(block.norm2.bias, 3.0)
    assert torch.allclose(block(x), (x + 3).relu())


# ---------------------------------------------------------------------- drawn architectures


def widths(network):
    return [layer.out_channels for layer in network.body if isinstance(layer, nn.Conv2d)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_cofed_draws_from_its_family(seed):
    with seeded(seed):
        network = cofed_cnn((1, 18, 18), 4)
    drawn = widths(network)
    assert len(drawn) in (2, 3)
    assert set(drawn) <= set(COFED_FILTERS)
    assert drawn == sorted(drawn)
    assert network.head.in_features == drawn[-1]
    layers = [type(layer).__name__ for layer in network.body]
    block = ["Conv2d", "BatchNorm2d", "MaxPool2d", "ReLU"]
    third = ["Conv2d", "BatchNorm2d", "ReLU"] if len(drawn) == 3 else []
    assert layers == [*block, *block, *third, "AdaptiveAvgPool2d", "Flatten"]
    with seeded(seed):
        again = cofed_cnn((1, 18, 18), 4)
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), again.parameters(), strict=True))


def test_cofed_draws_everything_there_is():
    torch.manual_seed(0)
    seen = [tuple(widths(cofed_cnn((1, 18, 18), 2))) for _ in range(200)]
    assert {len(one) for one in seen} == {2, 3}
    assert 60 < sum(len(one) == 2 for one in seen) < 140
    assert {width for one in seen for width in one} == set(COFED_FILTERS)
    assert any(len(set(one)) < len(one) for one in seen)  # Table 1 of the paper has 32-32
    assert len(set(seen)) > 60


def test_given_filters_draw_nothing():
    torch.manual_seed(3)
    expected = nn.Conv2d(3, 24, 3, bias=False).weight
    torch.manual_seed(3)
    assert torch.equal(cofed_cnn(CIFAR, 2, filters=[24, 40]).body.conv1.weight, expected)


# ---------------------------------------------------------------------- as learners


def problem(name, n=40, seed=0):
    """Bright images and dark ones, with noise; texts about two things."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    if name == "text":
        words = np.array([["goal", "match", "team"], ["atom", "proton", "mass"]])
        common = np.array(["the", "of", "a", "and"])
        texts = [" ".join([*rng.choice(words[code], 2), *rng.choice(common, 3)]) for code in y]
        return hash_tokens(texts, length=8), y
    noise = rng.integers(0, 120, size=(n, *small(name)[1:], small(name)[0]))
    return (noise + 100 * y[:, None, None, None]).astype(np.uint8), y


QUICK = Training(epochs=5, batch=10, lr=0.01, device="cpu")


@pytest.mark.parametrize("name", ZOO)
def test_every_network_learns_and_is_saved_and_loaded_bit_by_bit(name, tmp_path):
    X, y = problem(name, n=4 if name == "resnet18" else 40)  # batch norm 20 times over needs long to settle
    net = Network(ZOO[name], QUICK)
    assert net.name == name
    net.fit(X, y, n_classes=2, seed=5)
    other, codes = problem(name, n=len(X), seed=1)
    if name != "resnet18":
        assert (net.predict(other) == codes).mean() >= 0.95
    net.save(tmp_path)
    loaded = Network(find(name), QUICK)
    loaded.load(tmp_path)
    first, second = net.module_.state_dict(), loaded.module_.state_dict()
    assert list(first) == list(second)
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert np.array_equal(net.predict_proba(other), loaded.predict_proba(other))


def test_each_silo_draws_its_own_network():
    X, y = problem("cofed_cnn", n=4)
    found = set()
    for seed in range(6):
        net = Network(cofed_cnn, Training(epochs=1, device="cpu"))
        net.fit(X, y, n_classes=2, seed=seed)
        found.add(tuple(widths(net.module_)))
    assert len(found) > 3


# ---------------------------------------------------------------------- text


def token(word, size):
    return 1 + zlib.crc32(word.encode("utf-8")) % (size - 1)


def test_hashing_by_hand():
    assert zlib.crc32(b"abc") == 0x352441C2  # 891,568,578; by 99: 8+91+56+85+78 = 318 leaves 21
    ids = hash_tokens(["ABC abc-abc", "x_1 Été ß", "..."], size=100, length=4)
    assert ids.dtype == np.int32
    x, one, summer, sharp = (token(word, 100) for word in ("x", "1", "été", "ß"))
    assert ids.tolist() == [[22, 22, 22, 0], [x, one, summer, sharp], [0, 0, 0, 0]]
    assert hash_tokens(["a b c d e"], size=100, length=2).tolist() == [[token("a", 100), token("b", 100)]]
    assert hash_tokens([]).shape == (0, 100)
    assert hash_tokens(np.array(["a"], dtype=object)).shape == (1, 100)


@given(st.lists(st.text(), max_size=4), st.integers(2, 50), st.integers(1, 5))
def test_ids_are_tokens_then_padding(texts, size, length):
    ids = hash_tokens(texts, size, length)
    assert ids.shape == (len(texts), length)
    assert ((ids >= 0) & (ids < size)).all()
    assert (np.diff((ids == 0).astype(int), axis=1) >= 0).all()


def test_padding_does_not_count():
    network = text((4,), 2, vocabulary_size=10, dim=3).eval()
    vectors = network.body.embedding.weight
    rows = torch.tensor([[3.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    features = network.body(rows)
    assert torch.allclose(features[0], (vectors[3] + vectors[5]) / 2)
    assert torch.equal(features[1], torch.zeros(3))
    assert torch.equal(network(rows), network(rows.long()))


@pytest.mark.parametrize("wrong", [-1.0, 10.0, 0.5, float("nan"), float("inf")])
def test_numbers_that_are_no_ids(wrong):
    network = text((2,), 2, vocabulary_size=10)
    network(torch.tensor([[9.0, 0.0]]))
    with pytest.raises(LearnerError, match=r"^text: got other numbers than token ids; wants 0 … 9, as hash"):
        network(torch.tensor([[1.0, wrong]]))


def test_the_largest_ids_survive_float32():
    network = text((1,), 2, vocabulary_size=2**24, dim=1)
    last = torch.tensor([[2**24 - 1]])
    assert torch.equal(network.body(last.float()), network.body.embedding.weight[-1:])
    with pytest.raises(LearnerError, match=r"^text: vocabulary_size is 16777217; wants at most 16777216$"):
        text((1,), 2, vocabulary_size=2**24 + 1)


def test_bytes_are_no_ids():
    """Network scales bytes to [−1, 1]; ids that came as bytes must not be learnt from."""
    X, y = problem("text")
    with pytest.raises(LearnerError, match="token ids"):
        Network(text, Training(device="cpu")).fit((X % 256).astype(np.uint8), y, n_classes=2, seed=1)


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", [name for name in LEAST if name != "mlp"])
def test_images_that_are_too_small_or_none(name):
    least = LEAST[name]
    line = rf"^{name}: got instances of shape \(.*\); wants images \(channels, height, width\) of "
    for shape in [(1, least - 1, 99), (1, 99, least - 1), (0, 99, 99), (784,), (28, 28), (1, 1, 28, 28), ()]:
        with pytest.raises(LearnerError, match=rf"{line}{least}×{least} or more$") as caught:
            ZOO[name](shape, 2)
        assert str(shape) in str(caught.value)


def test_two_blocks_take_smaller_images_than_three():
    cofed_cnn((1, 10, 10), 2, filters=[2, 3])
    with pytest.raises(LearnerError, match=r"\(1, 9, 9\); wants .* of 10×10 or more$"):
        cofed_cnn((1, 9, 9), 2, filters=[2, 3])
    with pytest.raises(LearnerError, match=r"\(1, 17, 17\); wants .* of 18×18 or more$"):
        cofed_cnn((1, 17, 17), 2, filters=[2, 3, 4])


@pytest.mark.parametrize("shape", [(), (0,), (1, 0, 3)])
def test_instances_that_are_nothing(shape):
    with pytest.raises(LearnerError, match=r"^mlp: got instances of shape .*; wants at least one number"):
        mlp(shape, 2)


@pytest.mark.parametrize("shape", [(), (0,), (1, 28, 28)])
def test_instances_that_are_no_rows(shape):
    with pytest.raises(LearnerError, match=r"^text: got instances of shape .*; wants rows of token ids$"):
        text(shape, 2)


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("mlp", {"hidden": 200}, "mlp: hidden is 200; wants whole numbers above 0"),
        ("mlp", {"hidden": [0]}, "mlp: hidden is [0]; wants whole numbers above 0"),
        ("mlp", {"hidden": [2.5]}, "mlp: hidden is [2.5]; wants whole numbers above 0"),
        ("cnn1", {"hidden": 0}, "cnn1: hidden is (0,); wants whole numbers above 0"),
        ("cofed_cnn", {"filters": [24]}, "cofed_cnn: filters is [24]; wants 2 or 3 whole numbers above 0"),
        ("cofed_cnn", {"filters": "ab"}, "cofed_cnn: filters is 'ab'; wants 2 or 3 whole numbers above 0"),
        ("cofed_cnn", {"filters": [1] * 4}, "filters is [1, 1, 1, 1]; wants 2 or 3 whole numbers above 0"),
    ],
)
def test_options_out_of_range(name, options, line):
    with pytest.raises(LearnerError) as caught:
        ZOO[name](CIFAR, 2, **options)
    assert str(caught.value).endswith(line)


def test_options_that_there_are_not():
    for name, builder in ZOO.items():
        with pytest.raises(TypeError):
            builder(small(name), 2, colour="red")
    with pytest.raises(LearnerError, match=r"^text: vocabulary_size and dim is \(0, 64\); wants whole"):
        text((3,), 2, vocabulary_size=0)


@pytest.mark.parametrize("arguments", [("abc",), (["abc"], 1), (["abc"], 9, 0)])
def test_hashing_of_what_cannot_be_hashed(arguments):
    with pytest.raises(
        LearnerError, match=r"^hash_tokens: got .*; wants a list of texts, size > 1 and length"
    ):
        hash_tokens(*arguments)


def test_networks_are_found_by_name():
    for name, builder in ZOO.items():
        assert find(name) is builder
        assert builder.__name__ == name
        assert list(inspect.signature(builder).parameters)[:2] == ["input_shape", "n_classes"]
    with pytest.raises(
        LearnerError, match=r"^there is no network 'lenet' \(did you mean 'lenet5'\?\); there are mlp, "
    ):
        find("lenet")


def test_errors_reach_the_user_of_a_network():
    X, y = problem("cnn1")
    with pytest.raises(LearnerError, match=r"^cnn2: got instances of shape \(2, 10, 11\); wants images"):
        Network(ZOO["cnn2"], Training(device="cpu")).fit(X, y, n_classes=2, seed=1)
