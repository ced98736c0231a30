"""The models in a silo's record, beside each other: the local one, what the run ended with, a continued one.

```
local/                   the model after local training
states/00007/model/      what the run ended with; spare/ beside it is what it decided against
continued/00001/         the same after training on with more data
use.json                 which one predicts, if the owner said so
```

Reading does not touch the record: a run may still be at work in it.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from cosilo.errors import BadMessage, RunError
from cosilo.protocol.message import Fields
from cosilo.protocol.wire import decode
from cosilo.runs.durable_files import explain_write_errors, new_folder, read_json, write_json
from cosilo.text import guess, listing

#: What an owner may choose.
KEPT = ("local", "federated", "continued")


def last_state(record: Path) -> Path | None:
    """The folder of the state after the last completed step that changed the silo."""
    last = max(_numbers(record / "replies"), default=0)
    changed = max((number for number in _numbers(record / "states") if number <= last), default=0)
    return record / "states" / f"{changed:05d}" if changed else None


def model_bytes(record: Path) -> int:
    """The size of the model on disk: what sending it once would have cost."""
    state = last_state(record)
    files = (state / "model").rglob("*") if state else ()
    return sum(file.stat().st_size for file in files if file.is_file())


def last_continued(record: Path) -> Path | None:
    """The folder of what came of the last training with more data."""
    number = max(_numbers(record / "continued"), default=0)
    return record / "continued" / f"{number:05d}" if number else None


def keep_local(record: Path, model: Path) -> None:
    """Keep a model as the local one; what was kept before is replaced."""
    shutil.rmtree(record / "local", ignore_errors=True)
    with new_folder(record / "local") as folder, explain_write_errors(record):
        link_model(model, folder)


def link_model(model: Path, folder: Path) -> None:
    """Give a model on disk a second place; its files are written once and never changed."""
    shutil.copytree(model, folder, dirs_exist_ok=True, copy_function=_link)


def notes_of(state: Path) -> Fields:
    """What a method left beside the model of a state."""
    path = state / "notes.safetensors"
    try:
        return Fields(decode(path.read_bytes()))
    except (BadMessage, OSError) as error:
        raise RunError(f"{path}: is damaged ({type(error).__name__}); start a new run") from None


def chosen(record: Path) -> str | None:
    """Which model predicts, if the owner said so."""
    path = record / "use.json"
    return check_kept(str(read_json(path).get("model"))) if path.exists() else None


def choose(record: Path, which: str) -> None:
    """Say which model predicts from now on."""
    write_json(record / "use.json", {"model": check_kept(which)})


def check_kept(which: str) -> str:
    """The name of a model, or an error."""
    if which not in KEPT:
        raise RunError(f"model {which!r}: there is no such model{guess(which, KEPT)}; wants {listing(KEPT)}")
    return which


def number_of(path: Path) -> int:
    """The ask that the name of a reply or a state begins with; 0: it is neither, or a crash cut it short."""
    number = path.name.partition("-")[0]
    return int(number) if number.isdigit() and not path.name.endswith(".part") else 0


def _numbers(folder: Path) -> list[int]:
    return [number for path in folder.glob("*") if (number := number_of(path))]


def _link(source: str, target: str) -> str:
    """The same file under another name."""
    with suppress(OSError):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))
