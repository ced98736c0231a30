"""What a tracker gets of a run: parameters, metrics by round and silo, the report; comparisons as parents."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from cosilo.data.extra import import_extra
from cosilo.errors import RunError
from cosilo.report import write_comparison, write_report
from cosilo.report.formatting import dotted
from cosilo.runs.comparison import Comparison
from cosilo.runs.run import RunDirectory

Tracker = Literal["mlflow", "tensorboard", "wandb"]


def track_run(run: RunDirectory, tracker: Tracker) -> str:
    """Hand a finished run to a tracker; returns where it is.

    MLflow is found by its own settings (MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME); TensorBoard's files are
    in the run's folder. So are those of Weights & Biases, which is offline unless WANDB_MODE says otherwise.
    """
    if tracker == "tensorboard":
        return str(_tensorboard(run))
    if tracker == "wandb":
        return str(_wandb(run, run.folder.resolve().name))
    mlflow = _mlflow()
    with _told(mlflow):
        _mlflow_run(mlflow, run, run.folder.resolve().name)
    return str(mlflow.get_tracking_uri())


def track_comparison(comparison: Comparison, tracker: Tracker) -> str:
    """Hand a comparison to a tracker: a parent run with the report, in it one for each method and seed."""
    if tracker == "tensorboard":
        for run in comparison.runs.values():
            _tensorboard(run)
        return str(comparison.folder)
    if tracker == "wandb":
        for (name, seed), run in comparison.runs.items():
            _wandb(run, f"{name}-seed{seed}", group=comparison.folder.resolve().name)
        return str(comparison.folder)
    mlflow = _mlflow()
    with _told(mlflow), mlflow.start_run(run_name=comparison.folder.resolve().name):
        mlflow.log_params({"recipe": comparison.source, "seeds": str(list(comparison.seeds))})
        mlflow.log_artifact(str(write_comparison(comparison)))
        for (name, seed), run in comparison.runs.items():
            _mlflow_run(mlflow, run, f"{name}-seed{seed}", nested=True)
    return str(mlflow.get_tracking_uri())


def parameters(run: RunDirectory) -> dict[str, Any]:
    """The method's parameters and what the run depends on besides."""
    about = run.about
    others = {"seed": about["seed"], "silos": len(about["silos"]), "pool_size": about.get("pool_size", 0)}
    return {**dict(dotted({"method": about["method"]})), **others}


def metrics(run: RunDirectory) -> Iterator[tuple[str, float, int]]:
    """Name, value and step of every score: by silo, and the mean; a step is a round, local training is 0."""
    result: Mapping[str, Any] = run.result
    stages = list(result["scores"])
    for place, stage in enumerate(stages):
        scores = {name: one["accuracy"] for name, one in result["scores"][stage].items()}
        for name, accuracy in scores.items():
            yield f"accuracy/{name}", accuracy, place
        if scores:
            yield "accuracy_mean", sum(scores.values()) / len(scores), place
    for name, value in run.relative_accuracy().items():
        yield f"relative_accuracy/{name}", value, max(len(stages) - 1, 0)
    for name in run.about["silos"]:
        yield f"bytes_sent/{name}", float(run.bytes_sent(name)), max(len(stages) - 1, 0)


class _told:
    """Turns what MLflow raises into one line that says where it was."""

    def __init__(self, mlflow: Any) -> None:
        self._mlflow = mlflow

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is not None and type(error).__module__.startswith(("mlflow", "requests", "urllib3")):
            why = " ".join(str(error).split())[:200]
            where = self._mlflow.get_tracking_uri()
            raise RunError(f"MLflow at {where}: {why}; the run itself is finished and kept") from None


def _mlflow() -> Any:
    return import_extra("mlflow", "tracking with MLflow", "tracking")


def _mlflow_run(mlflow: Any, run: RunDirectory, name: str, *, nested: bool = False) -> None:
    with mlflow.start_run(run_name=name, nested=nested, tags={"cosilo.method": run.method}):
        mlflow.log_params(parameters(run))
        for key, value, step in metrics(run):
            mlflow.log_metric(key, value, step=step)
        mlflow.log_artifact(str(write_report(run)))


def _tensorboard(run: RunDirectory) -> Path:
    summary = import_extra("tensorboard.summary", "tracking with TensorBoard", "tracking")
    folder = run.folder / "tensorboard"
    writer = summary.Writer(str(folder))
    for key, value, step in metrics(run):
        writer.add_scalar(key, value, step)
    writer.close()
    return folder


def _wandb(run: RunDirectory, name: str, group: str | None = None) -> Path:
    wandb = import_extra("wandb", "tracking with Weights & Biases", "wandb")
    steps: dict[int, dict[str, float]] = defaultdict(dict)
    for key, value, step in metrics(run):
        steps[step][key] = value
    one = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "cosilo"),
        name=name,
        group=group,
        config=parameters(run),
        dir=str(run.folder),
        mode=os.environ.get("WANDB_MODE", "offline"),  # nothing leaves the machine unless somebody said so
        settings=wandb.Settings(silent=True),
    )
    for step, values in sorted(steps.items()):
        one.log(values, step=step)
    report = write_report(run).resolve()
    one.save(str(report), base_path=str(report.parent), policy="now")
    one.finish()
    return run.folder / "wandb"
