"""The models in a silo's record, beside each other: the local one, what the run ended with, a continued one.

```
state-00009        names the folders of the model after local training, of what the run ended with, and of
model-00003/ …     what it decided against (silo_state)
continued/00001/   the same after training on with more data
use.json           which one predicts, if the owner said so
```

Reading does not touch the record: a run may still be at work in it.
"""

from pathlib import Path

from cosilo.errors import RunError
from cosilo.runs.durable_files import read_json, write_json
from cosilo.runs.silo_state import last_state
from cosilo.text import guess, listing

#: What an owner may choose.
KEPT = ("local", "federated", "continued")


def model_bytes(record: Path) -> int:
    """The size of the model on disk: what sending it once would have cost."""
    state = last_state(record)
    files = (record / state.models["model"]).rglob("*") if state and state.trained else ()
    return sum(file.stat().st_size for file in files if file.is_file())


def check_models(record: Path) -> None:
    """Raise unless all models in a record are as they were written."""
    continued = last_continued(record)
    for folder in (record, *([continued] if continued else [])):
        state = last_state(folder)
        if state is not None:
            state.check_files(folder)


def last_continued(record: Path) -> Path | None:
    """The folder of what came of the last training with more data."""
    return max((record / "continued").glob("[0-9]*[0-9]"), default=None)


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
