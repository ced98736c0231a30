"""What a run says about where a model comes from."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosilo.report.formatting import percent, ratio, size
from cosilo.runs.durable_files import read_json
from cosilo.runs.run import RunDirectory
from cosilo.runs.silo_runs import read_silo_run
from cosilo.text import listing


@dataclass(frozen=True)
class Origin:
    """Where a model comes from: lines about the federation, and the model's own scores."""

    #: By name of the fact.
    federation: dict[str, str]
    #: Accuracy on the silo's test data, by stage; each with the number of instances.
    scores: dict[str, tuple[float, int]] = field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, str]:
        """The scores in words."""
        return {
            f"accuracy, {stage}": f"{percent(accuracy)} of {instances} test instances"
            for stage, (accuracy, instances) in self.scores.items()
        }


def origin_of(record: Path, silo: str, run: RunDirectory | None = None) -> Origin:
    """From a silo's record, and the whole run where that is at hand."""
    about = read_json(record / "silo.json")
    facts: dict[str, str] = {"silo": silo, "method": about["method"]}
    kept = read_silo_run(record)
    scores = {
        stage: (one["own"]["accuracy"], one["own"]["instances"])
        for stage, one in kept.scores.items()
        if stage in ("local", "federated") and "own" in one
    }
    what = listing(kept.kinds) if kept.kinds else "nothing but its classes"
    facts["left the silo"] = f"{size(kept.bytes_left)}: {what}"
    if run is not None:
        facts |= _of_run(run, silo)
    return Origin(facts, scores)


def _of_run(run: RunDirectory, silo: str) -> dict[str, str]:
    about: dict[str, Any] = run.about
    parameters = {key: value for key, value in about["method"].items() if key != "use"}
    facts = {
        "run": f"{run.folder.resolve().name}, begun {about['created']}, seed {about['seed']}",
        "parameters": ", ".join(f"{key} = {value}" for key, value in parameters.items()) or "none",
        "partners": str(len(about["silos"]) - 1),
        "pool": f"{about['pool_size']} public instances" if about.get("pool_size") else "none",
        "cosilo": str(about.get("cosilo", "unknown")),
    }
    relative = run.relative_accuracy()
    if silo in relative:
        facts["relative accuracy"] = f"{ratio(relative[silo])} (federated / local)"
    return facts
