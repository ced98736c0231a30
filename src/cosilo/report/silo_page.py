"""The page of a silo's own record: its scores, its models and all that left it. It stays at the silo."""

from pathlib import Path
from typing import Any

from cosilo.report.run_page import environment
from cosilo.runs.durable_files import write
from cosilo.runs.kept_models import chosen, last_continued
from cosilo.runs.silo_runs import SiloRun
from cosilo.runs.silo_state import last_state
from cosilo.silo.guard import Decision, noted


def write_silo_page(run: SiloRun) -> Path:
    """Write `report.html` into the silo's record; one file that opens anywhere, offline."""
    path = run.folder / "report.html"
    page = environment().get_template("silo.html")
    text = page.render(
        run=run,
        about=run.about,
        scores=_scores(run.scores),
        fields=_fields(run),
        models=_models(run),
        decision=_decision(run),
        used=chosen(run.folder) or "what the run ended with",
        log=_read_log(run.folder / "log.txt"),
    )
    write(path, text.encode())
    return path


def _read_log(path: Path) -> str:
    """Return a text for people, whatever has become of its bytes; nothing if there is none."""
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def _scores(scores: dict[str, Any]) -> list[tuple[str, str, float, int, dict[str, float]]]:
    """Stage, measure, accuracy, instances, and every other metric that is one number."""
    return [
        (
            stage,
            measure,
            one["accuracy"],
            one["instances"],
            {name: value for name, value in one.get("metrics", {}).items() if isinstance(value, int | float)},
        )
        for stage, measures in scores.items()
        for measure, one in measures.items()
    ]


def _fields(run: SiloRun) -> list[tuple[int, str, str, str, str, int]]:
    """One row for each field that left: ask, step, field, kind, what it means, bytes."""
    return [
        (entry["ask"], entry["step"], name, field["kind"], field.get("about", ""), field.get("bytes", 0))
        for entry in run.left
        for name, field in entry.get("fields", {}).items()
    ]


def _decision(run: SiloRun) -> Decision | None:
    """What its own data said of the model that it was offered last."""
    state = last_state(run.folder)
    return None if state is None else noted(state.noted())


def _models(run: SiloRun) -> list[str]:
    state = last_state(run.folder)
    kept = ["local"] if state is not None and "local" in state.models else []
    kept += ["federated"] if run.about["method"] != "local" else []
    return [*kept, "continued"] if last_continued(run.folder) else kept
