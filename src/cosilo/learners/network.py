"""The adapter for torch modules: a training around an `nn.Module`."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, blocks, form, is_frame, take
from cosilo.data.missing import columns_with_holes
from cosilo.errors import LearnerError
from cosilo.learners.base import (
    Codes,
    balanced_targets,
    balanced_weights,
    black_box,
    columns_as_learnt,
    columns_of,
    read_card,
    seeded,
    untrained,
    write_card,
)
from cosilo.learners.tensors import PREDICT_BATCH, Labelled, as_module_input, as_tensor, outputs
from cosilo.learners.tokens import Tokens, token_ids
from cosilo.learners.trainee import AfterStep, Correction, Loss, OptimiserState, Trainee
from cosilo.learners.training import Training
from cosilo.learners.training_loop import train
from cosilo.text import listing

# if torch is missing, tensors has already raised a one-line error
import torch  # isort: skip
from cosilo.learners import losses, module_weights  # isort: skip
from cosilo.learners.devices import carried, device_of, emulates_bf16, moved, turn_on  # isort: skip
from torch import Tensor, nn  # isort: skip
from torch.nn.functional import cross_entropy  # isort: skip

#: Builds a network for instances of a shape (without the first axis; images: channels, height, width).
Builder: TypeAlias = Callable[[tuple[int, ...], int], nn.Module]


class Network:
    """A torch module as a learner.

    Images are (n, height, width) or (n, height, width, channels) and reach the module with channels first;
    bytes (uint8) are scaled to [−1, 1], everything else becomes float32 as it is.

    Parameters
    ----------
    module : nn.Module or callable
        A module whose weights are where every cold training starts, or a builder
        `(input_shape, n_classes) -> nn.Module` that is called with the seed set.
    training : Training, default Training()
        How it is trained.
    update : Training, default None
        How it is trained on what other silos taught; None: as `training`, with batches of 1000 and a
        class-weighted loss.
    choices : list of dict, default ()
        What to try instead: each is `training` with some settings changed. The one with the smallest loss on
        held-out data is taken; an update likewise has `update_choices`.
    update_choices : list of dict, default ()
        What to try instead of `update`.
    tokens : int, list of str, mapping or callable, default None
        Instances are then texts, and the module gets rows of whole numbers, 0 where there is no token: with
        an int the ids of hashed words (`zoo.hash_tokens`), with words or a mapping from words to ids those of
        a vocabulary, and with a callable whatever it returns for a list of texts (`tokens.token_ids`).

    Examples
    --------
    >>> net = Network(lambda shape, k: nn.Linear(shape[0], k), Training(lr=0.1))
    >>> net.fit(np.array([[-1.0], [1.0]]), np.array([0, 1]), n_classes=2, seed=1)
    >>> net.predict(np.array([[-2.0], [2.0]]))
    array([0, 1])
    """

    can_warm_start = True
    warm_starts_by_default = True
    has_probabilities = True
    has_weights = True
    can_weigh = True

    def __init__(
        self,
        module: nn.Module | Builder,
        training: Training | None = None,
        update: Training | None = None,
        *,
        choices: Sequence[Mapping[str, object]] = (),
        update_choices: Sequence[Mapping[str, object]] = (),
        tokens: Tokens | None = None,
    ) -> None:
        if not callable(module):
            raise LearnerError(f"got {type(module).__name__}; wants an nn.Module or (shape, classes) -> one")
        is_module = isinstance(module, nn.Module)
        self.name: str = type(module).__name__ if is_module else getattr(module, "__name__", "Network")
        self.module = module
        self.training = training or Training()
        self.tokens = tokens
        self.update = update or self.training.but(batch=1000, balanced=True)
        self.weighs_by_itself = self.update.balanced
        self.changes = {False: choices, True: update_choices}
        candidates = [*self._choices(False), *self._choices(True)]
        self.wants_validation = len(candidates) > 2 or any(one.patience is not None for one in candidates)
        #: How the last training ended up: settings with which the same comes out without a look at held data.
        self.trained_as_: Training
        self.module_: nn.Module | None = None
        self.n_classes_: int
        self.seed_: int
        self.input_shape_: tuple[int, ...]
        self.bytes_: bool
        self.columns_: list[Any] | None

    def fit(
        self,
        X: Instances,
        y: Codes | NDArray[np.floating[Any]],
        *,
        n_classes: int | None = None,
        seed: int | None = None,
        update: bool = False,
        warm: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
        validation: tuple[Instances, Codes | NDArray[np.floating[Any]]] | None = None,
        training: Training | None = None,
    ) -> None:
        """Train from the template's weights, or with `warm` from the ones learnt before.

        As the last step of a pipeline it is given neither the classes nor a seed: it then has those that
        occur, and draws the seed from numpy's global state.

        `y` are codes, or soft targets: for each instance how much of every class it is. `training` stands in
        for the network's own. With validation data, of several choices the one with the smallest loss on it
        is taken.
        """
        soft = y.ndim == 2
        if n_classes is None:
            n_classes = y.shape[1] if soft else int(y.max()) + 1
        if seed is None:
            seed = int(np.random.randint(2**31))  # noqa: NPY002 - a step seeds the global state
        choices = [training] if training is not None else self._choices(update)
        if warm:
            self.fitted()
            shape, is_bytes = _form(self._tensor(take(X, slice(0, 2)), self.columns_))
            if (shape, is_bytes, n_classes) != (self.input_shape_, self.bytes_, self.n_classes_):
                raise LearnerError(
                    f"{self.name}: warm fit on {_words(shape, is_bytes)} and {n_classes} classes, but it has "
                    f"learnt {_words(self.input_shape_, self.bytes_)} and {self.n_classes_}; set warm=False"
                )
        found: list[tuple[float, Network]] = []
        for choice in choices if validation is not None else choices[:1]:
            network = copy.copy(self)  # a fit that fails leaves what was learnt before
            if not warm:
                network.begin(take(X, slice(0, 2)), n_classes=n_classes, seed=seed)
            elif len(choices) > 1:
                network.module_ = copy.deepcopy(self.module_)
            network.train(
                X,
                balanced_targets(y) if soft and choice.balanced else y,
                seed=seed,
                training=choice,
                loss=losses.soft_cross_entropy if soft else losses.cross_entropy,
                sample_weight=sample_weight,
                validation=validation,
            )
            loss = math.inf if validation is None or len(choices) == 1 else network.loss(*validation)
            found.append((loss, network))
        vars(self).update(vars(min(found, key=lambda pair: pair[0])[1]))

    def _choices(self, update: bool) -> list[Training]:
        base = self.update if update else self.training
        return [base, *(base.but(**change) for change in self.changes[update])]

    def train(
        self,
        X: Instances,
        y: Codes | NDArray[np.floating[Any]],
        *,
        seed: int,
        training: Training,
        loss: Loss = losses.cross_entropy,
        correction: Correction | None = None,
        after_step: AfterStep | None = None,
        peers: "Sequence[tuple[Network, Loss]]" = (),
        sample_weight: NDArray[np.float64] | None = None,
        validation: tuple[Instances, Codes | NDArray[np.floating[Any]]] | None = None,
        state: OptimiserState | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Continue from the present weights; returns the optimiser's state, to pass as `state` next time.

        `y` are codes, or whatever float targets the loss compares outputs with. Peers train on the same
        batches, each with a loss of its own and a new optimiser; every loss gets the others' outputs too.
        """
        if training.patience is None:
            validation = None
        elif validation is None or len(validation[1]) == 0:
            raise LearnerError(
                f"{self.name}: patience={training.patience} wants a validation set; without one "
                "set it to None"
            )
        if sample_weight is None and training.balanced and y.dtype.kind != "f":
            sample_weight = balanced_weights(np.asarray(y, dtype=np.int64), self.n_classes_)
        if training.augment and len(self.input_shape_) != 3:
            raise LearnerError(
                f"{self.name}: augment = {list(training.augment)} wants images; "
                f"got {_words(self.input_shape_, self.bytes_)}"
            )
        device, held = device_of(training.device), None
        data = Labelled.of(self._tensor(X, self.columns_), y, sample_weight)
        if validation is not None:
            held = Labelled.of(self._tensor(validation[0], self.columns_), validation[1])
        with seeded(seed), black_box(self.name, "fit"), ExitStack() as stack:
            stack.enter_context(turn_on(device))
            mine = Trainee(
                moved(self.fitted(), device),
                training,
                self.n_classes_,
                self.name,
                loss=loss,
                correction=correction,
                after_step=after_step,
                state=state,
            )
            others = (
                Trainee(moved(peer.fitted(), device), training, peer.n_classes_, peer.name, loss=its)
                for peer, its in peers
            )
            trainees = [mine, *others]
            for trainee in trainees:
                stack.enter_context(_whole(trainee.module))
            there = None if held is None else held.to(device)
            _, epochs = train(trainees, data.to(device), training, there, seed=seed)
        as_it_was = training.epochs == epochs and training.passes is None and training.patience is None
        self.trained_as_ = training if as_it_was else training.but(epochs=epochs, passes=None, patience=None)
        for trainee in trainees:
            trainee.module.eval()
        return mine.optimiser.state()

    def begin(self, X: Instances, *, n_classes: int, seed: int) -> None:
        """Build the network for instances like X, untrained."""
        columns = columns_of(X)
        shape, is_bytes = _form(self._tensor(X, columns))
        with seeded(seed):
            self.module_ = self._built(shape, n_classes).eval()
        self.n_classes_, self.seed_ = int(n_classes), int(seed)
        self.input_shape_, self.bytes_, self.columns_ = shape, is_bytes, columns

    def weights(self) -> dict[str, NDArray[Any]]:
        """Copies of all parameters and buffers, by name."""
        return module_weights.read(self.fitted())

    def set_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Take over parameters and buffers; names and shapes have to be the network's own."""
        module_weights.take_over(self.fitted(), weights, self.name)

    def predict(self, X: Instances) -> Codes:
        """One code per instance: the largest output."""
        return np.asarray(self._outputs(X).argmax(1), dtype=np.int64)

    def predict_proba(self, X: Instances) -> NDArray[np.float64]:
        """The softmax of the outputs, shape (n, n_classes)."""
        return np.asarray(self._outputs(X).double().softmax(1), dtype=np.float64)

    def logits(self, X: Instances) -> NDArray[np.float32]:
        """The outputs as they are, shape (n, n_classes)."""
        return np.asarray(self._outputs(X), dtype=np.float32)

    def loss(self, X: Instances, y: Codes | NDArray[np.floating[Any]]) -> float:
        """The mean cross-entropy on examples, whose classes are codes or soft targets."""
        kind = np.float64 if y.dtype.kind == "f" else np.int64
        outputs, right = self._outputs(X).double(), torch.from_numpy(np.asarray(y, dtype=kind))
        return float(cross_entropy(outputs, right))

    def fitted(self) -> nn.Module:
        """The module with its trained weights."""
        if self.module_ is None:
            raise untrained(self.name)
        return self.module_

    def save(self, folder: Path) -> None:
        """Write the weights and buffers as safetensors."""
        module = self.fitted()
        card = {"n_classes": self.n_classes_, "seed": self.seed_, "bytes": self.bytes_}
        lists = {"input_shape": list(self.input_shape_), "columns": self.columns_}
        write_card(folder, self.name, card | lists)
        module_weights.save(module, folder / "model.safetensors", self.name)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote into a module built as it was for training."""
        fields = {"n_classes": int, "seed": int, "bytes": bool, "input_shape": list}
        card = read_card(folder, self.name, fields)
        shape = tuple(card["input_shape"])
        with seeded(card["seed"]):
            module = self._built(shape, card["n_classes"])
        module_weights.load(module, folder / "model.safetensors", self.name)
        self.module_ = module.to(device_of(self.training.device)).eval()
        self.input_shape_, self.n_classes_, self.seed_ = shape, card["n_classes"], card["seed"]
        self.bytes_, self.columns_ = card["bytes"], card.get("columns")

    def preload(self) -> None:
        """Nothing to do: everything is imported."""

    def notes(self) -> list[str]:
        """Whether it is to be trained in what the processor here is slow in."""
        asked = [*self._choices(False), *self._choices(True)]
        if not any(one.precision == "bf16" and emulates_bf16(device_of(one.device)) for one in asked):
            return []
        return [
            'precision = "bf16": the processor here has no instructions for it, and training takes several '
            'times as long as with "single"'
        ]

    @property
    def classes_(self) -> Codes:
        """The codes it was trained with, as scikit-learn asks a classifier for them."""
        self.fitted()
        return np.arange(self.n_classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return self.module_ is not None

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know of the last step of a pipeline."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )

    def _tensor(self, X: Instances, columns: list[Any] | None) -> Tensor:
        if self.tokens is not None:
            if is_frame(X) or X.dtype.kind != "O":
                raise LearnerError(f"{self.name} wants texts; got {form(X)}")
            return torch.from_numpy(token_ids(X, self.tokens, self.name))
        return as_tensor(columns_as_learnt(X, columns, self.name), self.name)

    def _built(self, shape: tuple[int, ...], n_classes: int) -> nn.Module:
        """A module before its first training; a pass of zeros shows its outputs and wakes lazy layers."""
        if isinstance(self.module, nn.Module):
            module = copy.deepcopy(self.module)
        else:
            with black_box(self.name, "build"):
                module = self.module(shape, n_classes)
            if not isinstance(module, nn.Module):
                raise LearnerError(f"{self.name} built a {type(module).__name__}; wants an nn.Module")
        with torch.no_grad():
            kind = torch.float32 if self.tokens is None else torch.long
            outputs(module.cpu().eval(), torch.zeros(2, *shape, dtype=kind), n_classes, self.name)
        # Channels last in memory is what convolutions run fastest on; numbers and names stay as they are.
        return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def _outputs(self, X: Instances) -> Tensor:
        module, x = self.fitted(), self._tensor(X, self.columns_)
        if _form(x) != (self.input_shape_, self.bytes_):
            raise LearnerError(
                f"{self.name}: asked about {_words(*_form(x))}, but it has learnt "
                f"{_words(self.input_shape_, self.bytes_)}"
            )
        device = next((p.device for p in module.parameters()), torch.device("cpu"))
        parts = [torch.zeros(0, self.n_classes_)]
        with seeded(self.seed_), turn_on(device), torch.inference_mode():
            for block in blocks(len(x), PREDICT_BATCH):
                batch = as_module_input(carried(x[block], device))
                parts.append(outputs(module, batch, self.n_classes_, self.name).cpu())
        answer = torch.cat(parts)
        if not torch.isfinite(answer).all():
            holes = columns_with_holes(X)
            why = (
                f"{listing(holes, 6)} {'have' if holes[1:] else 'has'} missing values"
                if holes
                else "lower lr"
            )
            raise LearnerError(f"{self.name}: outputs are not finite; {why}")
        return answer


@contextmanager
def _whole(module: nn.Module) -> Iterator[None]:
    """A training that fails leaves the module as it was."""
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    try:
        yield
    except BaseException:
        module.load_state_dict(before)
        module.eval()
        raise


def _form(x: Tensor) -> tuple[tuple[int, ...], bool]:
    """What the module sees of one instance, and whether it was bytes: these are scaled, others are not."""
    return tuple(as_module_input(x[:0]).shape[1:]), x.dtype == torch.uint8


def _words(shape: tuple[int, ...], is_bytes: bool) -> str:
    return f"{'bytes' if is_bytes else 'numbers'} of shape {shape}"
