"""The same model in ONNX, where skl2onnx or torch can; an extra (`export`)."""

import importlib.util
import logging
import warnings
from pathlib import Path
from typing import Any

from cosilo.data.instances import example, is_frame
from cosilo.errors import with_extra
from cosilo.learners.base import Learner
from cosilo.silo.model import Model


def write_onnx(model: Model, folder: Path) -> str | None:
    """Write `model.onnx`; None, or why there is none."""
    network = model.learner.has_weights
    missing = [name for name in (["onnxscript"] if network else ["skl2onnx"]) if not _installed(name)]
    if missing:
        return f"it needs {missing[0]}: {with_extra('export')}"
    if "text" in model.instances and not network:
        return "ONNX takes texts apart in another way than scikit-learn"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (_network if network else _estimator)(model, folder / "model.onnx")
    except Exception as error:
        (folder / "model.onnx").unlink(missing_ok=True)
        return f"{type(error).__name__} for {model.learner.name}"
    return None


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _estimator(model: Model, path: Path) -> None:
    from pandas.api.types import is_numeric_dtype
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    learner: Any = model.learner
    form = example(model.instances)
    if is_frame(form):
        kinds = {
            str(name): FloatTensorType([None, 1])
            if is_numeric_dtype(form[name])
            else StringTensorType([None, 1])
            for name in form.columns
        }
        inputs = list(kinds.items())
    else:
        width = 1
        for size in model.instances["shape"]:
            width *= size
        inputs = [("X", FloatTensorType([None, width]))]
    fitted = learner.fitted()
    options = {id(fitted): {"zipmap": False}} if learner.has_probabilities else None
    made = to_onnx(fitted, initial_types=inputs, options=options)
    path.write_bytes(made.SerializeToString())


def _network(model: Model, path: Path) -> None:
    import torch

    from cosilo.export.networks import program

    learner: Learner = model.learner
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch's exporter tells of every pass
    try:
        torch.onnx.export(program(learner), dynamo=True, verbose=False).save(path)  # type: ignore[union-attr,arg-type]
    finally:
        logging.disable(level)
