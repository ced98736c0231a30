"""A silo's own record of a run: its model, its notes, its last reply, and the audit log of all that left."""

import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cosilo.errors import BadMessage, OtherRecord, RunError
from cosilo.learners.base import Learner
from cosilo.learners.untrained import save_untrained
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import Score
from cosilo.protocol.wire import decode, encode
from cosilo.runs.audit import AuditLog
from cosilo.runs.durable_files import (
    checksum_of_file,
    explain_write_errors,
    new_folder,
    read_json,
    write,
    write_json,
)
from cosilo.runs.silo_state import LARGE, SPARE_FILE, SiloState, last_state, read_state
from cosilo.text import differences, listing

#: The file that the next large reply is written over.
_OLD_REPLY = "reply.old"
#: What the files and folders of steps are called, and what a crash leaves of one that was being written.
_STEPS = re.compile(r"(state|reply|model|trial|spare)-\d+(\.part)?")
#: The parts of a silo's identity that are hashes.
HASHES = ("training data", "test data", "joint test data", "target", "unlabelled target", "pool")


class SiloRecord:
    """The folder of one silo.

    ```
    state-00004   reply-00004   model-00003/ …   what it is after its last step, and its reply (silo_state)
    audit.jsonl   log.txt   identity.json   silo.json   template.skops
    ```

    A step is completed when its state is there; a model or a reply that was written just before a crash, and
    that no state names, does not count.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with explain_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)  # models, notes and logs are for the silo's owner only
        state = last_state(folder)
        #: After the last completed step, without notes and reply.
        self._state = None if state is None else state.without_content()
        self.audit = AuditLog(folder / "audit.jsonl")
        #: The folder of what came of a training, by the number that the learner gave it.
        self._saved: dict[int, str] = {}
        self._tidy()

    def _tidy(self) -> None:
        """Clean up after a crash: what no step completed, and what the last one replaced."""
        state = self._state
        named = {state.file_name, state.reply_name, *state.models.values()} if state else set()
        for path in self.folder.iterdir():
            if _STEPS.fullmatch(path.name) and path.name not in named:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def check_identity(self, silo: Participant, but: Collection[str] = ()) -> None:
        """Raise if the silo is not what it was when this record was begun; `but`: what may change."""
        path = self.folder / "identity.json"
        if not path.exists():
            write_json(path, silo.identity())
        elif changed := changes(self.folder, silo, but):
            raise RunError(f"{changed}; put it back or start a new run")

    def introduce(self, about: dict[str, Any], learner: Learner | None) -> None:
        """Write down, once, what its model can be used with when the silo's data is not at hand.

        A learner that no recipe describes is kept as it was before any training, if it can be.
        """
        path = self.folder / "silo.json"
        if path.exists():
            return
        if about.get("origin") is None and learner is not None:
            save_untrained(learner, self.folder)
        write_json(path, about)

    # ------------------------------------------------------------------ steps

    @property
    def _last(self) -> int:
        """The last completed ask, 0 if there is none."""
        return self._state.number if self._state else 0

    @property
    def kept(self) -> Path | None:
        """The file that has the last reply to itself, if the reply is large."""
        return self.folder / self._state.reply_name if self._state and self._state.large else None

    def check_newest(self, answered: int) -> None:
        """Raise if the coordinator has an answer from here that this record knows nothing of."""
        if answered > self._last:
            raise OtherRecord(
                f"its record ends with ask {self._last}, and it has answered ask {answered}: "
                "an older copy was put back; restore the newer one or start a new run"
            )

    def reply(self, number: int, step: str, body: bytes) -> bytes | None:
        """The reply to an ask that was answered before, or None."""
        if number > self._last:
            return None
        if number < self._last:
            raise BadMessage(f"ask {number} is over: this silo has already done ask {self._last}")
        state = read_state(self.folder / f"state-{number:05d}")
        if state.asked != _asked(step, body):
            raise BadMessage(f"ask {number} came a second time with different content")
        if self.kept is None:
            return state.content
        try:
            reply = self.kept.read_bytes()
        except FileNotFoundError:
            raise RunError(f"{self.kept}: is missing; restore it or start a new run") from None
        if sha256(reply).hexdigest() != state.reply:
            raise RunError(f"{self.kept}: is damaged (its checksum differs); start a new run")
        return reply

    def complete(
        self, number: int, step: str, body: bytes, reply: bytes, whole: str, silo: Participant
    ) -> None:
        """Keep a reply, whose digest is `whole`, and what the silo is now: both or neither."""
        before, large = self._state, len(reply) >= LARGE
        models, files = self._save_models(silo, number)
        state = SiloState(
            number,
            _asked(step, body),
            whole,
            large,
            _scores(silo),
            models,
            files,
            encode(silo.notes),
            b"" if large else reply,
        )
        if large:
            # The coordinator journals ask n−1 before it sends ask n: nobody asks for the last reply again.
            write(self.folder / state.reply_name, reply, over=self.kept or self.folder / _OLD_REPLY)
        state.write(self.folder)
        self._state, silo.changed = state.without_content(), False
        if before is not None:
            self._drop(before)

    def _drop(self, before: SiloState) -> None:
        """What the state before the last one named, and the last one does not."""
        assert self._state is not None
        (self.folder / before.file_name).replace(self.folder / SPARE_FILE)
        if before.large and not self._state.large:
            with suppress(FileNotFoundError):  # a crash cut short what was written over it
                (self.folder / before.reply_name).replace(self.folder / _OLD_REPLY)
        for name in {*before.models.values()} - {*self._state.models.values()}:
            shutil.rmtree(self.folder / name)

    # ------------------------------------------------------------------ state

    def _save_models(self, silo: Participant, number: int) -> tuple[dict[str, str], dict[str, str]]:
        """Write what the silo has learnt, if that changed: where it lies, and the checksums of the files."""
        before, files = (dict(self._state.models), dict(self._state.files)) if self._state else ({}, {})
        if not silo.changed:
            return before, files
        places = _write_models(silo, self.folder, number, self._saved)
        self._saved = {
            training: places[role]
            for role, learner in _models(silo).items()
            if (training := _training(learner)) is not None
        }
        if silo.trained_alone:
            before["local"], silo.trained_alone = places["model"], False
        if "local" in before:
            places["local"] = before["local"]
        new = set(places.values()) - {name.partition("/")[0] for name in files}
        files = {name: whole for name, whole in files.items() if name.partition("/")[0] in places.values()}
        return places, files | _checksums(self.folder, new)

    def save_state(self, silo: Participant, folder: Path, number: int) -> None:
        """Write what the silo is now into a folder beside what the run ended with."""
        places = _write_models(silo, folder, number, {})
        files = _checksums(folder, places.values())
        SiloState(number, "", "", False, _scores(silo), places, files, encode(silo.notes)).write(folder)

    def restore(self, silo: Participant, model: bool = True) -> None:
        """Bring the silo to the state after its last completed step; `model`: with what it has learnt."""
        silo.forget()
        if self._state is None:
            return
        path = self.folder / self._state.file_name
        state = read_state(path)
        try:
            silo.recall(state.trained, decode(state.notes, own=True), state.all_scores())
        except (KeyError, TypeError, ValueError, AttributeError, BadMessage) as error:
            raise RunError(f"{path}: is damaged ({type(error).__name__}); start a new run") from None
        if not model or silo.learner is None or not state.trained:
            return
        used = {role: place for role, place in state.models.items() if role != "local"}
        for name, whole in state.files.items():
            file = self.folder / name
            if name.partition("/")[0] in used.values() and not (
                file.exists() and checksum_of_file(file) == whole
            ):
                raise RunError(f"{file}: is damaged (its checksum differs); restore it or start a new run")
        silo.learner.load(self.folder / used.pop("model"))
        for role, place in used.items():
            other = deepcopy(silo.learner)
            other.load(self.folder / place)
            setattr(silo, role, other)

    def log(self, text: str) -> None:
        """Log what only the silo's owner may read: the learner's warnings, full tracebacks of failures."""
        with explain_write_errors(self.folder), (self.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(text.rstrip() + "\n")


def _models(silo: Participant) -> dict[str, Learner]:
    """What a silo has learnt, by what it is to it."""
    found = {"model": silo.learner if silo.trained else None, "trial": silo.trial, "spare": silo.spare}
    return {name: learner for name, learner in found.items() if learner is not None}


def _training(learner: Learner) -> int | None:
    """The number that a learner gave its training, if it counts them: copies of it have the same."""
    return getattr(learner, "training_number_", None)


def _write_models(silo: Participant, folder: Path, number: int, there: Mapping[int, str]) -> dict[str, str]:
    """Write what a silo has learnt, without what is there already; returns where each model lies."""
    places = {}
    for role, learner in _models(silo).items():
        training = _training(learner)
        if training is not None and training in there:  # such as the local model, beside what was offered
            places[role] = there[training]
            continue
        places[role] = f"{role}-{number:05d}"
        with new_folder(folder / places[role]) as new:
            learner.save(new)
    return places


def _checksums(folder: Path, places: Iterable[str]) -> dict[str, str]:
    """Of all files of these models."""
    return {
        str(path.relative_to(folder)): checksum_of_file(path)
        for place in sorted(places)
        for path in sorted((folder / place).rglob("*"))
        if path.is_file()
    }


def changes(folder: Path, silo: Participant, but: Collection[str] = ()) -> str | None:
    """What is not as it was when a silo's record was begun, in words; None: nothing, or there is no record.

    `but` are parts of its identity that may change.
    """
    path = folder / "identity.json"
    if not path.exists():
        return None
    before, now = (
        {key: value for key, value in one.items() if key not in but}
        for one in (read_json(path), silo.identity())
    )
    changed = [_change(*one) for one in differences(before, now)]
    if not changed:
        return None
    return f"silo {silo.name!r}: is not what it was when the run began: {listing(changed, 3)}"


def _change(key: str, before: object, now: object) -> str:
    """What changed, with both values unless these are hashes, which say nothing."""
    if key in HASHES:
        return key
    was, becomes = (text if len(text := repr(value)) <= 60 else f"{text[:59]}…" for value in (before, now))
    return f"{key} (was {was}, now {becomes})"


def _asked(step: str, body: bytes) -> str:
    """A checksum of an ask."""
    return sha256(f"{step}{digest_of(body)}".encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def digest_of(body: bytes) -> str:
    """Silos that share a process often get the same message one after another, such as the global weights."""
    return sha256(body).hexdigest()


def _scores(silo: Participant) -> dict[str, dict[str, dict[str, Any]]]:
    return {
        str(stage): {measure: _kept(score) for measure, score in scores.items()}
        for stage, scores in silo.scores.items()
    }


def _kept(score: Score) -> dict[str, Any]:
    kept = {"accuracy": score.accuracy, "instances": score.instances}
    return {**kept, "metrics": dict(score.metrics)} if score.metrics else kept
