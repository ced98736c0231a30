"""A run that waits for the administrator of a silo: what it would do, and the answer.

An approval is given for one contract and for the limits as they stood when it was read: for nothing else. So
it is void when the silo's limits change, and a job with another contract finds none.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cosilo.errors import Refused, RunError
from cosilo.runs.durable_files import read_json, write_json

#: In the silo's folder of a run: what was asked, and what was answered.
_REQUEST, _ANSWER = "request.json", "approval.json"
_POLL = 1.0


@dataclass(frozen=True)
class Subject:
    """The subject of an approval: the hash of a contract, and a digest of the silo's limits."""

    contract: str
    limits: str


@dataclass(frozen=True)
class Request:
    """The question to an administrator: the subject, and the run in words."""

    subject: Subject
    words: tuple[str, ...]


def is_approved(folder: Path, subject: Subject) -> bool:
    """Return whether somebody said yes to this subject; raise if the answer was no.

    A refusal holds for the contract, whatever became of the limits since.
    """
    if not (folder / _ANSWER).exists():
        return False
    answer = read_json(folder / _ANSWER)
    if answer.get("contract") != subject.contract:
        return False
    if answer.get("approved") is not True:
        raise Refused("the silo's administrator refused the run")
    return bool(answer.get("limits") == subject.limits)


def wait_for(folder: Path, subject: Subject, words: Sequence[str], account: Sequence[str] = ()) -> None:
    """Wait until somebody has said yes to this subject; raise if it was no.

    `account` is how the silo's privacy account stands now, which the run itself changes.
    """
    if is_approved(folder, subject):
        return
    write_json(folder / _REQUEST, {**asdict(subject), "words": list(words), "account": list(account)})
    while not is_approved(folder, subject):
        time.sleep(_POLL)


def request(folder: Path) -> Request:
    """Return what is asked of the administrator."""
    if not (folder / _REQUEST).exists():
        raise RunError(f'{folder}: nothing waits for approval; runs do with approve = "ask" in [allow]')
    found: dict[str, Any] = read_json(folder / _REQUEST)
    if "contract" not in found:
        raise RunError(f"{folder}: its request is of an earlier version of cosilo; submit a new run")
    words = (str(line) for line in (*found["words"], *found["account"]))
    return Request(Subject(found["contract"], found["limits"]), tuple(words))


def answer(folder: Path, subject: Subject, approved: bool) -> None:
    """Say yes or no to what was read; raise if something else waits by now."""
    if request(folder).subject != subject:
        raise RunError(
            f"{folder}: another contract or other limits wait for approval than those you read; "
            "nothing was answered: read it again"
        )
    write_json(folder / _ANSWER, {**asdict(subject), "approved": approved, "at": round(time.time(), 3)})


def waiting(runs: Path) -> list[str]:
    """Return the names of the runs that wait for an answer."""
    return sorted(path.parent.name for path in runs.glob(f"*/{_REQUEST}") if _waits(path.parent))


def _waits(folder: Path) -> bool:
    try:
        return not is_approved(folder, request(folder).subject)
    except Refused:
        return False
    except RunError:  # damaged, or of an earlier version: `cosilo approve KIT RUN` says which
        return True
