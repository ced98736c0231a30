"""The model card of an exported model."""

from pathlib import Path
from typing import Any

from cosilo.export.facts import Origin
from cosilo.learners.estimator import Estimator
from cosilo.silo.model import Model


def write_card(
    model: Model,
    about: dict[str, Any],
    words: list[str],
    origin: Origin,
    without_onnx: str | None,
    path: Path,
) -> None:
    """Write a model card for people, in the form that skops gives it."""
    from skops.card import Card

    learner, fitted = model.learner, model.learner.fitted()
    estimator = isinstance(learner, Estimator)
    card = Card(fitted if estimator else learner.name, template=None, model_diagram=False)
    classes = ", ".join(map(str, about["classes"]))
    card.add(
        **{
            f"{learner.name} of silo {model.name}": (
                f"The {model.which} model of silo `{model.name}`, exported by cosilo. It tells these classes "
                f"apart: {classes}."
            ),
            "Input": _input(about["instances"], about["text"]),
            "Preprocessing": (
                "\n".join(f"- {line}" for line in words) if words else "None: it takes its input as it is."
            )
            + "\n\nAs code: `prepare` in `predict.py`.",
            "Use": (
                "`python predict.py new.csv labels.csv`, or in Python `from predict import predict`. "
                "`requirements.txt` has what it takes; cosilo is not needed."
            ),
            "Files": _files(about, without_onnx),
        }
    )
    if estimator and hasattr(fitted, "get_params"):
        card.add_hyperparams(section="Hyperparameters")
    elif not estimator:
        card.add(Layers=f"```\n{fitted}\n```")
    card.add(**{"Where it comes from": _table(origin.federation)})
    if origin.scores:
        card.add(Evaluation=_table(origin.metrics) + "\n\nTaken at the silo, on test data of its own.")
    card.add(
        Limits=(
            "It was judged on data of its own silo only. In a federation it may have learnt from labels or "
            "weights of others, whose data nobody here has seen."
        )
    )
    card.save(path)


def _table(rows: dict[str, str]) -> str:
    lines = [f"| {name} | {value.replace('|', '/')} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


def _input(instances: dict[str, Any], text: str | None) -> str:
    if "columns" in instances:
        return "A table with these columns: " + ", ".join(
            f"`{name}` ({kind})" for name, kind in instances["columns"]
        )
    if "text" in instances:
        return f"Texts{f', in the column `{text}`' if text else ''}."
    return f"Arrays of {instances['type']}, each of shape {tuple(instances['shape'])}."


def _files(about: dict[str, Any], without_onnx: str | None) -> str:
    lines = [f"- `{about['file']}`: the model", "- `model.json`: classes, and what goes in"]
    if about["kind"] == "network":
        lines.append(
            "- `model.safetensors`: its weights alone; `model.pt2` has the layers too (`torch.export.load`)"
        )
    if about["preprocessed"]:
        lines.append("- `preprocessing.skops`: what comes before the classifier")
    lines.append(
        "- `model.onnx`: the same in ONNX, which computes in float32: close to a tie its label can differ"
        + ("; it takes what `prepare` makes" if about["kind"] == "network" else "")
        if without_onnx is None
        else f"- no ONNX: {without_onnx}"
    )
    return "\n".join(lines)
