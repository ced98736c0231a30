"""The networks of the papers, by the name a recipe uses. Each is a builder for `Network`.

What a paper does not say (padding, widths) is said at the builder, with the reason for the choice.
"""

import re
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import LearnerError
from cosilo.learners import tensors  # noqa: F401 - says it in one line if torch is missing
from cosilo.text import guess, listing

import torch  # isort: skip
from torch import Tensor, nn  # isort: skip

#: The widths that CoFED draws from.
COFED_FILTERS = (20, 24, 32, 40, 48, 56, 80, 96)


class BodyHead(nn.Module):
    """A network in two parts: the body makes features, the head (one linear layer) makes classes of them.

    Silos with different tasks can share a body; the head has one row for each class of one task.

    >>> network = mlp((4,), 3, hidden=[5])
    >>> [name for name, _ in network.named_parameters()]
    ['body.dense1.weight', 'body.dense1.bias', 'head.weight', 'head.bias']
    """

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """One row of outputs per instance."""
        answer: Tensor = self.head(self.body(x))
        return answer


def mlp(input_shape: tuple[int, ...], n_classes: int, *, hidden: Sequence[int] = (200, 200)) -> BodyHead:
    """Dense layers on flattened instances of any shape: 784-200-200-10 on MNIST (FML)."""
    if not input_shape or min(input_shape) < 1:
        raise LearnerError(
            f"mlp: got instances of shape {tuple(input_shape)}; wants at least one number each"
        )
    return _classifier("mlp", {}, hidden, input_shape, n_classes)


def lenet5(input_shape: tuple[int, ...], n_classes: int) -> BodyHead:
    """LeNet-5 with ReLU and max-pooling (FML, Tempo): 2 conv 5×5 of 6 and 16 channels, dense 120 and 84.

    It is made for 32×32; smaller images get a border of two zeros, which makes 32×32 of MNIST's 28×28.
    """
    channels = _channels("lenet5", input_shape, least=12)
    border = 2 if min(input_shape[1:]) < 32 else 0
    layers = _conv(1, channels, 6, kernel=5, padding=border) | _conv(2, 6, 16, kernel=5)
    return _classifier("lenet5", layers, (120, 84), input_shape, n_classes)


def cnn1(input_shape: tuple[int, ...], n_classes: int, *, hidden: int = 64) -> BodyHead:
    """CNN1 of FML: 2 conv 3×3 of 6 and 16 channels, each with 2×2 max-pooling and ReLU, and 2 dense layers.

    The paper gives neither padding nor the width between the dense layers; the CNN in the authors' code has
    no padding and 64.
    """
    layers = _conv(1, _channels("cnn1", input_shape, least=10), 6) | _conv(2, 6, 16)
    return _classifier("cnn1", layers, (hidden,), input_shape, n_classes)


def cnn2(input_shape: tuple[int, ...], n_classes: int) -> BodyHead:
    """CNN2 of FML: 3 conv 3×3 of 128 channels, each with 2×2 max-pooling and ReLU, and 1 dense layer.

    Its body is the global network of the paper's experiment with different tasks. No padding, as in `cnn1`.
    """
    channels = _channels("cnn2", input_shape, least=22)
    layers = _conv(1, channels, 128) | _conv(2, 128, 128) | _conv(3, 128, 128)
    return _classifier("cnn2", layers, (), input_shape, n_classes)


def cnn(input_shape: tuple[int, ...], n_classes: int, *, hidden: int = 128) -> BodyHead:
    """The CNN of DoFed-SPP: 2 conv and 2 linear layers.

    The paper gives no sizes but "approximately 2.1MB". Conv 3×3 with padding of 32 and 64 channels, each with
    2×2 max-pooling, and 128 between the linear layers are 2.08 MiB of weights on CIFAR-10, 2.12 on CIFAR-100.
    """
    channels = _channels("cnn", input_shape, least=4)
    layers = _conv(1, channels, 32, padding=1) | _conv(2, 32, 64, padding=1)
    return _classifier("cnn", layers, (hidden,), input_shape, n_classes)


def cofed_cnn(
    input_shape: tuple[int, ...], n_classes: int, *, filters: Sequence[int] | None = None
) -> BodyHead:
    """One of CoFED's random CNNs: 2 or 3 blocks of conv 3×3, batch norm, ReLU; pooling after blocks 1 and 2.

    Without `filters` (such as `[24, 40]`) their number and widths are drawn from torch's global random state,
    which `Network` seeds: another seed, another architecture. As in the authors' code, widths are drawn with
    replacement and sorted (the paper's Table 1 has a 32-32), and the dense layer has no bias.
    """
    if filters is None:
        # 18 for either draw: whether a silo's images are large enough must not depend on its luck.
        channels = _channels("cofed_cnn", input_shape, least=18)
        drawn = torch.randint(len(COFED_FILTERS), (int(torch.randint(2, 4, ())),), device="cpu")
        filters = [COFED_FILTERS[place] for place in sorted(drawn.tolist())]
    else:
        _sizes("cofed_cnn", "filters", filters, least=2, most=3)
        channels = _channels("cofed_cnn", input_shape, least=10 if len(filters) == 2 else 18)
    layers: dict[str, nn.Module] = {}
    for place, width in enumerate(filters, 1):
        layers |= _conv(place, channels, width, norm=True, pool=place < 3)
        channels = width
    layers["average"] = nn.AdaptiveAvgPool2d(1)
    return _classifier("cofed_cnn", layers, (), input_shape, n_classes, bias=False)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch norm, added to their input (He et al., 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(outputs)))

    def forward(self, x: Tensor) -> Tensor:
        """Features with `outputs` channels."""
        change = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return torch.relu(change + self.shortcut(x))


def resnet18(input_shape: tuple[int, ...], n_classes: int) -> BodyHead:
    """ResNet-18 for 32×32 images (Tempo): a 3×3 stem without pooling, then 4 × 2 basic blocks."""
    channels = _channels("resnet18", input_shape, least=8)
    layers: dict[str, nn.Module] = {
        "conv": nn.Conv2d(channels, 64, 3, padding=1, bias=False),
        "norm": nn.BatchNorm2d(64),
        "relu": nn.ReLU(),
    }
    for stage, (inputs, outputs) in enumerate([(64, 64), (64, 128), (128, 256), (256, 512)], 1):
        first = BasicBlock(inputs, outputs, stride=1 if stage == 1 else 2)
        second = BasicBlock(outputs, outputs, stride=1)
        layers[f"stage{stage}"] = nn.Sequential(OrderedDict(block1=first, block2=second))
    layers["average"] = nn.AdaptiveAvgPool2d(1)
    return _classifier("resnet18", layers, (), input_shape, n_classes)


# ---------------------------------------------------------------------- text


class MeanOfTokens(nn.Module):
    """The mean of the vectors of an instance's tokens; 0 is no token."""

    def __init__(self, vocabulary_size: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocabulary_size, dim, mode="mean", padding_idx=0)

    def forward(self, x: Tensor) -> Tensor:
        """One vector per instance."""
        ids, most = x.long(), self.embedding.num_embeddings - 1
        # Also false for bytes, which Network takes for pixels and scales. Exports have no such check.
        exporting = torch.compiler.is_compiling()
        if not exporting and not bool(((ids == x) & (ids >= 0) & (ids <= most)).all()):
            raise LearnerError(
                f"text: got other numbers than token ids; wants 0 … {most}, as hash_tokens makes"
            )
        features: Tensor = self.embedding(ids)
        return features


def text(
    input_shape: tuple[int, ...], n_classes: int, *, vocabulary_size: int = 2**15, dim: int = 64
) -> BodyHead:
    """EmbeddingBag and one linear layer on token ids (DoFed-SPP); `hash_tokens` makes ids of texts.

    64 is the dimension of the tutorial that the paper cites; its 51 MB are then about 200,000 tokens.
    """
    if len(input_shape) != 1 or input_shape[0] < 1:
        raise LearnerError(f"text: got instances of shape {tuple(input_shape)}; wants rows of token ids")
    _sizes("text", "vocabulary_size and dim", (vocabulary_size, dim))
    if vocabulary_size > 2**24:
        # Network passes float32, which cannot represent every whole number above 2**24.
        raise LearnerError(f"text: vocabulary_size is {vocabulary_size}; wants at most {2**24}")
    return BodyHead(MeanOfTokens(vocabulary_size, dim), nn.Linear(dim, n_classes))


def hash_tokens(texts: Iterable[str], size: int = 2**15, length: int = 100) -> NDArray[np.int32]:
    """Rows of token ids for `text`: the first `length` words of each text, 0 where there are fewer.

    Words are runs of letters and digits in lower case. A word's id is its CRC-32 folded into 1 … size − 1,
    so that all silos have the same vocabulary without having to agree on one.

    >>> hash_tokens(["Alan Turing", "turing, of Bletchley!", ""], size=1000, length=3)
    array([[494, 634,   0],
           [634, 153, 673],
           [  0,   0,   0]], dtype=int32)
    """
    if isinstance(texts, str) or size < 2 or length < 1:
        got = f"{type(texts).__name__}, size={size}, length={length}"
        raise LearnerError(f"hash_tokens: got {got}; wants a list of texts, size > 1 and length > 0")
    rows = [re.findall(r"[^\W_]+", one.lower())[:length] for one in texts]
    ids = np.zeros((len(rows), length), dtype=np.int32)
    for row, words in zip(ids, rows, strict=True):
        row[: len(words)] = [1 + zlib.crc32(word.encode()) % (size - 1) for word in words]
    return ids


# ---------------------------------------------------------------------- by name

#: All builders by name. Options are given by keyword.
ZOO: dict[str, Callable[..., BodyHead]] = {
    "mlp": mlp,
    "lenet5": lenet5,
    "cnn1": cnn1,
    "cnn2": cnn2,
    "cnn": cnn,
    "cofed_cnn": cofed_cnn,
    "resnet18": resnet18,
    "text": text,
}


def find(name: str) -> Callable[..., BodyHead]:
    """The builder with this name."""
    if name not in ZOO:
        raise LearnerError(f"there is no network {name!r}{guess(name, list(ZOO))}; there are {listing(ZOO)}")
    return ZOO[name]


# ---------------------------------------------------------------------- parts


def _conv(
    place: int,
    inputs: int,
    outputs: int,
    *,
    kernel: int = 3,
    padding: int = 0,
    norm: bool = False,
    pool: bool = True,
) -> dict[str, nn.Module]:
    """The named layers of one convolutional block."""
    layers: dict[str, nn.Module | None] = {
        # Batch norm takes the mean away, and with it what a bias would have added.
        "conv": nn.Conv2d(inputs, outputs, kernel, padding=padding, bias=not norm),
        "norm": nn.BatchNorm2d(outputs) if norm else None,
        # The largest of four and ReLU can change places, outputs and gradients stay the same to the last bit;
        # this way round ReLU has a quarter of the work.
        "pool": nn.MaxPool2d(2) if pool else None,
        "relu": nn.ReLU(inplace=True),
    }
    return {f"{name}{place}": layer for name, layer in layers.items() if layer is not None}


def _classifier(
    name: str,
    layers: Mapping[str, nn.Module],
    hidden: Sequence[int],
    input_shape: tuple[int, ...],
    n_classes: int,
    *,
    bias: bool = True,
) -> BodyHead:
    """The layers, flattened, then dense layers with ReLU, then the head."""
    _sizes(name, "hidden", hidden)
    body = nn.Sequential(OrderedDict(layers))
    body.add_module("flatten", nn.Flatten())
    with torch.no_grad():  # in eval mode a pass leaves the statistics of batch norm as they are
        width = body.eval()(torch.zeros(1, *input_shape)).shape[1]
    for place, size in enumerate(hidden, 1):
        body.add_module(f"dense{place}", nn.Linear(width, size))
        body.add_module(f"dense{place}_relu", nn.ReLU())
        width = size
    return BodyHead(body.train(), nn.Linear(width, n_classes, bias=bias))


def _channels(name: str, input_shape: tuple[int, ...], least: int) -> int:
    """The number of channels of images that are large enough."""
    if len(input_shape) != 3 or input_shape[0] < 1 or min(input_shape[1:]) < least:
        wanted = f"images (channels, height, width) of {least}×{least} or more"
        raise LearnerError(f"{name}: got instances of shape {tuple(input_shape)}; wants {wanted}")
    return input_shape[0]


def _sizes(name: str, option: str, values: Sequence[int], least: int = 0, most: int | None = None) -> None:
    numbers = isinstance(values, list | tuple) and all(type(v) is int and v > 0 for v in values)
    if not numbers or len(values) < least or (most is not None and len(values) > most):
        many = f"{least} or {most} " if most else ""
        raise LearnerError(f"{name}: {option} is {values!r}; wants {many}whole numbers above 0")
