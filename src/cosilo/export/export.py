"""A silo's model as a folder: the model in its library's own format, what goes in and comes out, a card.

```
README.md              the model card              predict.py       labels new files; needs no cosilo
model.json             classes, form of the data   code/            the owner's own classes, if there are any
model.skops | .txt | .ubj | .cbm | .pt2            preprocessing.skops   what comes before the classifier
model.safetensors      the weights of a network    model.onnx       where skl2onnx or torch can
requirements.txt       what predict.py needs, in the versions that the model was made with
```
"""

import importlib.metadata
import shutil
from pathlib import Path
from typing import Any

from cosilo.errors import LearnerError, RunError
from cosilo.export.card import write_card
from cosilo.export.facts import Origin
from cosilo.learners.estimator import Estimator
from cosilo.runs.durable_files import new_folder, write_json
from cosilo.silo.model import Model
from cosilo.silo.predicting import output_codes


def export_model(model: Model, origin: Origin, folder: Path) -> str | None:
    """Write a model into a new folder; returns why there is no ONNX, if there is none."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise RunError(f"{folder}: {what}; choose another folder")
    if folder.exists():
        folder.rmdir()
    with new_folder(folder) as made:
        about, words = _write(model, made)
        from cosilo.export.onnx import write_onnx

        without = write_onnx(model, made)
        write_json(made / "model.json", about)
        # Not a module of ours: it is one of the folder that it lies in.
        shutil.copy(Path(__file__).with_name("predict.txt"), made / "predict.py")
        (made / "requirements.txt").write_text("\n".join(_requirements(about)) + "\n", encoding="utf-8")
        write_card(model, about, words, origin, without, made / "README.md")
    return without


def _write(model: Model, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Write the model itself; what `model.json` says, and the preprocessing in words."""
    learner: Any = model.learner
    if isinstance(learner, Estimator):
        from cosilo.export.estimators import steps_of, write_estimator

        found, words = write_estimator(learner, folder), steps_of(learner)
    elif learner.has_weights:
        from cosilo.export.networks import preparation_of, write_network

        found, words = write_network(learner, folder), preparation_of(learner)
    else:
        raise LearnerError(f"{learner.name}: is neither an estimator nor a network, and cannot be exported")
    labels = model.as_given(range(len(model.task))).tolist()  # type: ignore[arg-type]
    codes = output_codes(model)
    by_output = dict(enumerate(labels)) if codes is None else dict(zip(codes.tolist(), labels, strict=True))
    narrowed = len(model.among) < len(model.task) and learner.has_probabilities
    return {
        "silo": model.name,
        "model": model.which,
        "learner": learner.name,
        **found,
        "by": "probabilities" if narrowed else found["by"],
        "classes": model.classes.tolist(),
        "outputs": [by_output.get(place) for place in found["outputs"]],
        "has_probabilities": learner.has_probabilities,
        "instances": model.instances,
        "text": (model.about["origin"] or {}).get("text"),
    }, words


def _requirements(about: dict[str, Any]) -> list[str]:
    """The packages that `predict.py` needs, as they are here."""
    needed = ["numpy", "pandas"]
    if about["kind"] == "network":
        needed += ["torch"]
    else:
        needed += ["scikit-learn", "skops"]
        needed += {"model.txt": ["lightgbm"], "model.ubj": ["xgboost"], "model.cbm": ["catboost"]}.get(
            about["file"], []
        )
    return [f"{name}=={importlib.metadata.version(name).partition('+')[0]}" for name in needed]
