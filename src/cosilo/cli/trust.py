"""Commands for the administrator of a silo: what it was asked and what left it, and yes or no to a run."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cosilo.cli.printing import new_table, say, show
from cosilo.errors import ConfigError, RunError
from cosilo.text import guess

Place = Annotated[Path, typer.Argument(metavar="KIT", help="A silo's kit; for audit also a run directory.")]


def audit(
    place: Place,
    name: Annotated[
        str | None, typer.Argument(metavar="RUN", help="The run; of a run directory, the silo.")
    ] = None,
) -> None:
    """Show all that was asked of a silo and all that left it in a run, and check that the log is whole."""
    from cosilo.privacy.account_text import account_lines, without_guarantee
    from cosilo.runs.audit import broken_at, unlogged
    from cosilo.runs.durable_files import read_lines

    if _is_elsewhere(place, name):
        _show_last_seal(place, name or "")
        return
    path = _log(place, name)
    entries = read_lines(path)
    table = new_table("time", "way", "ask", "step", "bytes", "what (and its kind)", right=["bytes"])
    day = ""
    for entry in entries:
        at = datetime.fromtimestamp(entry.get("at", 0))  # 0: of a version whose logs had no times
        if day != (day := f"{at:%Y-%m-%d}"):
            table.add_row(day)
        way = "in" if entry.get("way") == "in" else "out"
        cells = (str(entry["ask"]), entry["step"], f"{entry.get('bytes', 0):,}", _what(entry))
        table.add_row(f"{at:%H:%M:%S}", way, *cells)
    show(table)
    say(f"every field by its name and form, with digests: {path}")
    left = [entry for entry in entries if entry.get("way", "out") == "out" and not entry.get("again")]
    say(f"left: {sum(entry.get('bytes', 0) for entry in left)} bytes in {len(left)} messages")
    kinds = {field["kind"] for entry in left for field in entry.get("fields", {}).values()}
    for line in account_lines(path.parent) or [without_guarantee(sorted(kinds))]:
        say(f"privacy: {line}")
    if entries and not any(entry.keys() & {"chain", "digest"} for entry in entries):
        say(
            "the log is of a version of cosilo without a chain of hashes: nobody can tell whether it is whole"
        )
        return
    broken = broken_at(entries)
    if broken is not None:
        raise RunError(f"{path}: line {broken} is not as it was written, or a line before it is missing")
    if (last := unlogged(path, entries)) is not None:
        raise RunError(f"{path}: has no line about the reply to ask {last}, which left: its end is missing")
    if entries and "chain" in entries[-1]:
        say(f"the log is whole: {len(entries)} lines, the last has the hash {entries[-1]['chain'][:16]}")
    _show_contract(path.parent, entries)


def _show_contract(record: Path, entries: list[dict[str, Any]]) -> None:
    """Show the contract of a record, and how far the coordinator's signatures anchor its log."""
    from cosilo.coordination.agreement import contract_in
    from cosilo.protocol.seal import Seal
    from cosilo.runs.durable_files import read_json

    contract = contract_in(record)
    if contract is None:
        say("the record has no contract: an earlier version of cosilo began the run")
        return
    say(contract.in_words())
    seals = [seal for entry in entries if (seal := Seal.read(entry.get("seal"))) is not None]
    certificate = record / "coordinator.crt"
    if not certificate.exists():
        say("seals are not signed: the silos of this run have one owner")
        return
    from cosilo.engines.flare.signing import verify

    known, silo = certificate.read_text(encoding="utf-8"), read_json(record / "silo.json")["name"]
    anchored = 0
    for seal in seals:
        statement = seal.statement(record.name, contract.hash, str(silo))
        line = entries[seal.length - 1] if 0 < seal.length <= len(entries) else {}
        if line.get("chain") != seal.head or not verify(known, statement, seal.coordinator):
            raise RunError(
                f"{record / 'audit.jsonl'}: what the coordinator signed after request {seal.number} is not "
                f"what line {seal.length} says: the log was rewritten; compare it with the coordinator's"
            )
        anchored = max(anchored, seal.length)
    say(f"signed by the coordinator: {anchored} of {len(entries)} lines, with {len(seals)} seals")


def _is_elsewhere(place: Path, name: str | None) -> bool:
    """Return whether a silo of a run directory keeps its audit log itself."""
    if name is None or not (place / "federation.json").exists():
        return False
    return not (place / "silos" / name).is_dir()


def _show_last_seal(place: Path, name: str) -> None:
    """Show what a silo last stated of its audit log, for its administrator to compare."""
    from cosilo.runs.run import RunDirectory

    run = RunDirectory(place)
    run.known(name)
    seal = run.last_seals().get(name)
    if seal is None:
        raise RunError(f"{place}: has no seal of silo {name!r}: it has answered nothing yet")
    say(f"contract: {run.contract_line}")
    say(f"silo {name!r} keeps its audit log itself; what it last stated of it, with request {seal.number}:")
    say(f"{seal.length} lines before that answer, the last of them has the hash {seal.head}")
    say("compare that with `cosilo audit KIT RUN` at the silo")


def approve(
    kit: Annotated[Path, typer.Argument(metavar="KIT", help="A silo's kit.")],
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run that waits.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Let it run without asking here.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Refuse it.")] = False,
) -> None:
    """Read what a run would send, to whom and how often, and let it run or refuse it."""
    from cosilo.runs import approval

    runs = _runs(kit)
    if run is None:
        say("\n".join(f"waits: {one}" for one in approval.waiting(runs)) or "no run waits for approval")
        return
    folder = _run(runs, run)
    asked = approval.request(folder)
    for line in asked.words:
        say(line)
    approved = not refuse and (yes or typer.confirm("Let it run?"))
    approval.answer(folder, asked.subject, approved)
    say(f"{run}: {'may run' if approved else 'is refused'}")


def _what(entry: dict[str, Any]) -> str:
    if "failure" in entry:
        return str(entry["failure"])
    again = " (again)" if entry.get("again") else ""
    fields = entry.get("fields", {})
    lines = [f"{one['about']} ({one['kind']})" for one in fields.values()]
    return "\n".join(lines) + again


def _log(place: Path, name: str | None) -> Path:
    """The audit log that is meant: of a silo in a run directory, or of a run in a silo's kit."""
    if (place / "run.json").exists():
        from cosilo.runs.run import RunDirectory

        run = RunDirectory(place)
        silos = [str(one) for one in run.about["silos"]]
        if name is None or not run.audit_path(name).parent.is_dir():
            got = f"no silo {name!r}{guess(name, silos)}" if name else "no silo"
            raise ConfigError(f"{place}: got {got}; wants one of {', '.join(silos)}")
        return run.audit_path(name)
    if not (place / "startup").is_dir():
        raise ConfigError(f"{place}: is neither a run directory nor a silo's kit; `cosilo runs` lists runs")
    return _run(_runs(place), name or "") / "audit.jsonl"


def _runs(kit: Path) -> Path:
    from cosilo.engines.flare.kit_settings import read_kit_settings

    return Path(read_kit_settings(kit).runs)


def _run(runs: Path, name: str) -> Path:
    there = sorted(path.name for path in runs.glob("*") if path.is_dir())
    if name not in there:
        got = f"no run {name!r}{guess(name, there)}" if name else "no run"
        wants = f"one of {', '.join(there)}" if there else "a run, and there was none yet"
        raise ConfigError(f"{runs}: got {got}; wants {wants}")
    return runs / name
