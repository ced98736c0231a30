"""Folders of runs: a new one, that of an unfinished run, all in a folder."""

import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from cosilo.errors import RunError
from cosilo.runs.durable_files import explain_write_errors, read_json, write_json
from cosilo.runs.run import RunDirectory
from cosilo.text import differences


def begin(
    folder: Path, settings: Mapping[str, Any], recipe: Mapping[str, Any] | None, whole: Path | None = None
) -> RunDirectory:
    """Open the run directory for these settings: a new one, or that of an unfinished run.

    `whole` is the folder that its owner has a say in, if not this one.
    """
    path = folder / "run.json"
    if path.exists():
        run = RunDirectory(folder)
        other = instead(whole or folder)
        before = {key: run.about.get(key) for key in settings}
        late = run.about.get("late", {})  # came when it was over
        before["silos"] = [name for name in run.about["silos"] if name not in late]
        before["cosilo"] = settings.get("cosilo")  # another release may continue: see `protocol`
        if "protocol" not in run.about:  # of an earlier version, which took no note of it
            before["protocol"] = settings.get("protocol")
        for key, was, now in differences(before, dict(settings)):
            raise RunError(f"{folder}: was begun with {key} = {was!r}, now it is {now!r}; {other}")
        return run
    own = {
        ".lock",
        "recipe.json",
        "federation.json",
        "recipe.json.part",
        "run.json.part",
    }  # a crash may leave
    if folder.exists() and any(entry.name not in own for entry in folder.iterdir()):
        raise RunError(f"{folder}: is not empty and not a run; choose another directory")
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if recipe is not None:
        write_json(folder / "recipe.json", recipe)
    created = datetime.now().astimezone().isoformat(timespec="seconds")
    salt = token_hex(16)  # for digests in the contract (`cosilo.protocol.contract`)
    write_json(path, {"salt": salt, **settings, "created": created, "status": "running"})
    return RunDirectory(folder)


def start_over(folder: Path) -> None:
    """Nothing was computed when silos and method did not fit together; only the logs are worth keeping."""
    for each in (folder, *folder.glob("silos/*"), *folder.glob("silos/*/members/*")):
        shutil.rmtree(each / "journal", ignore_errors=True)
        for name in ("asks.jsonl", "step.json", "identity.json"):
            (each / name).unlink(missing_ok=True)
        contract = each / "contract.json"
        if contract.exists():
            known = read_json(contract)
            known.pop("refused", None)
            write_json(contract, known)
        for state in each.glob("state-*"):  # what no state names goes when the record is opened
            state.unlink()


def instead(folder: Path) -> str:
    """What to do where a folder holds another run."""
    number = 2
    while (other := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return f"choose another folder, such as {other}, or delete this one"


def new_folder_name(parent: Path, method: str) -> Path:
    """A free name for a run: date, method, number."""
    stem = f"{datetime.now():%Y-%m-%d}-{method}"
    number = 1
    while (parent / f"{stem}-{number}").exists():
        number += 1
    return parent / f"{stem}-{number}"


def runs_in(parent: Path, tell: Callable[[str], None] | None = None) -> list[RunDirectory]:
    """All runs in a folder, the oldest first; `tell` is called with what is wrong with damaged ones."""
    found = []
    for path in sorted(parent.glob("*/run.json")):
        try:
            found.append(RunDirectory(path.parent))
        except RunError as error:
            if tell is not None:
                tell(f"left out: {error}")
    return sorted(found, key=lambda run: str(run.about["created"]))
