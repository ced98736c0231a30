"""A run that waits for the administrator of a silo: what it would do, and the answer."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosilo.errors import Refused, RunError
from cosilo.runs.durable_files import read_json, write_json

#: In the silo's folder of a run: what was asked, and what was answered.
_REQUEST, _ANSWER = "request.json", "approval.json"
_POLL = 1.0


def wait_for(folder: Path, words: list[str], account: Sequence[str] = ()) -> None:
    """Wait until somebody has said yes to a run; raise if it was no. An answer holds for the whole run.

    `account` is how the silo's privacy account stands now, which the run itself changes.
    """
    if not (folder / _REQUEST).exists() or read_json(folder / _REQUEST)["words"] != words:
        (folder / _ANSWER).unlink(missing_ok=True)  # it was for something else
        write_json(folder / _REQUEST, {"words": words, "account": list(account)})
    while not (folder / _ANSWER).exists():
        time.sleep(_POLL)
    if read_json(folder / _ANSWER).get("approved") is not True:
        raise Refused("the silo's administrator refused the run")


def request(folder: Path) -> list[str]:
    """What a run would do, in words."""
    if not (folder / _REQUEST).exists():
        raise RunError(f'{folder}: nothing waits for approval; runs do with approve = "ask" in [allow]')
    found: dict[str, Any] = read_json(folder / _REQUEST)
    return [str(line) for line in (*found["words"], *found["account"])]


def answer(folder: Path, approved: bool) -> None:
    """Say yes or no to a run."""
    write_json(folder / _ANSWER, {"approved": approved, "at": round(time.time(), 3)})


def waiting(runs: Path) -> list[str]:
    """The runs that wait for an answer."""
    return sorted(
        path.parent.name for path in runs.glob(f"*/{_REQUEST}") if not (path.parent / _ANSWER).exists()
    )
