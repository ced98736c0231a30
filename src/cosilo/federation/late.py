"""A silo that comes when a run is over: it labels, gets what was elected, and trains; the others rest."""

from collections.abc import Sequence
from typing import Any

from cosilo.coordination.coordinator import Silos
from cosilo.coordination.run_loop import late_contract
from cosilo.engines.local.in_process import InProcess
from cosilo.errors import ConfigError
from cosilo.methods import METHODS
from cosilo.methods.base import Method
from cosilo.methods.cofed import Vote
from cosilo.protocol.carrier import Carrier
from cosilo.protocol.events import Observer
from cosilo.runs.durable_files import read_json, write_json
from cosilo.runs.events import EventLog
from cosilo.runs.journal import Journal
from cosilo.runs.locks import locked
from cosilo.runs.run import RunDirectory
from cosilo.silo.silo import Silo


def add_silo(run: RunDirectory, silo: Silo, observers: Sequence[Observer] = ()) -> None:
    """Let a silo gain from a finished run on this machine; what was interrupted goes on where it stopped.

    Its asks come after those of the run, and its scores are added to the run's result.
    """
    check_is_new(run, silo.name)
    if (run.folder / "federation.json").exists():
        raise ConfigError(
            f"{run.folder}: is between organisations, where the silo joins with its kit first; then "
            f"`cosilo add {run.folder} {silo.name}` at the coordinator"
        )
    with EventLog(run.folder / "events.jsonl") as events:
        welcome(run, silo.name, InProcess([silo]), [events, *observers])


def check_is_new(run: RunDirectory, name: str) -> None:
    """Raise unless the run is finished and has no such silo."""
    run.need_finished()
    if name in run.about["silos"]:
        raise ConfigError(f"{run.folder}: has a silo {name!r} already; give the new one another name")


def welcome(run: RunDirectory, name: str, carrier: Carrier, watching: Sequence[Observer]) -> None:
    """Let one more silo gain from a finished run, whatever takes asks to it."""
    about, method = run.about, method_of(run)
    with locked(run.folder):
        journal = Journal(run.folder / "journal")
        after = about.get("late", {}).get(name, journal.last_number)
        run.set_status("finished", late={**about.get("late", {}), name: after})
        contract = late_contract(run, method, name)
        names = [*about["silos"], name]
        silos = Silos(names, method, carrier, journal, watching, seed=about["seed"], contract=contract)
        told = run.last_replies("hello")
        others = {other: told[other] for other in about["silos"]}

        def said(step: str) -> dict[str, Any]:
            return {other: reply for other, reply in run.last_replies(step).items() if other != name}

        carrier.open(method, contract, run.folder / "silos")
        try:
            silos.meet_late(name, others, after, about["pool"], about["pool_size"])
            method.welcome(silos, name, said)
        finally:
            carrier.close()
        tasks = {name: list(silos.tasks[name].classes)}
        write_json(run.folder / "result.json", _with(read_json(run.folder / "result.json"), silos, tasks))
        run.set_status("finished", silos=[*about["silos"], name])


def method_of(run: RunDirectory) -> Method:
    """The method of a run, with its parameters."""
    parameters = {key: value for key, value in run.about["method"].items() if key != "use"}
    if run.method not in METHODS:
        raise ConfigError(f"{run.folder}: {run.method} is a method of your own, which only its recipe knows")
    return METHODS[run.method](**parameters)


def _with(result: dict[str, Any], silos: Silos, tasks: dict[str, list[str]]) -> dict[str, Any]:
    """A run's result, and what came of the late silo."""
    found = silos.result()
    result["tasks"] |= tasks
    result["failures"] += found["failures"]
    for part in ("scores", "control", "offered", "labelling"):
        for stage, scores in found.get(part, {}).items():
            result.setdefault(part, {}).setdefault(stage, {}).update(scores)
    if found.get("voting") and result.get("voting"):
        # All ballots stand in the last vote; what the others were given is what they were given then.
        before, now = Vote.model_validate(result["voting"][-1]), Vote.model_validate(found["voting"][-1])
        both = {
            "received": before.received | now.received,
            "own_votes": before.own_votes | now.own_votes,
            "decisions": before.decisions | now.decisions,
        }
        result["voting"][-1] = now.model_copy(update=both).model_dump(mode="json")
    return result
