"""A silo's own record of a run: its model, its notes, its last reply, and the audit log of all that left."""

import shutil
from collections.abc import Collection
from copy import deepcopy
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cosilo.errors import BadMessage, Refused, RunError
from cosilo.learners.base import Learner
from cosilo.learners.untrained import save_untrained
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import Measure, Score, Stage
from cosilo.protocol.wire import decode, encode
from cosilo.runs.audit import AuditLog
from cosilo.runs.durable_files import (
    WORTH_KEEPING,
    digest,
    digest_of_file,
    explain_write_errors,
    new_folder,
    read_json,
    write,
    write_json,
)
from cosilo.runs.kept_models import keep_local, link_model, number_of
from cosilo.text import differences, listing

#: The parts of a silo's identity that are hashes.
HASHES = ("training data", "test data", "joint test data", "target", "unlabelled target", "pool")


class SiloRecord:
    """The folder of one silo.

    ```
    replies/00004-0f3c…-91ab…   the reply to the last ask, as it went out; checksums of it and of the ask
    states/00003/   state.json notes.safetensors model/ after the last step that changed something
    audit.jsonl   scores.json   log.txt   identity.json   silo.json   template.skops
    local/   the model after local training (kept_models)
    ```

    A step is completed when its reply is there; a state that was written just before a crash, and has no
    reply, does not count.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._replies, self._states = folder / "replies", folder / "states"
        with explain_write_errors(folder):
            self._replies.mkdir(parents=True, exist_ok=True)
            self._states.mkdir(exist_ok=True)
            folder.chmod(0o700)  # models, notes and logs are for the silo's owner only
            for leftover in self._replies.glob("*.part"):
                leftover.unlink()
        kept = {number: path for path in self._replies.iterdir() if (number := number_of(path))}
        #: The last completed ask, 0 if there is none, and the file with its reply.
        self._last = max(kept, default=0)
        self.kept = kept.get(self._last)
        #: The last completed ask that changed the silo.
        self._changed = max((n for n in _numbers(self._states) if n <= self._last), default=0)
        self.audit = AuditLog(folder / "audit.jsonl")
        #: Where what came of a training lies on disk, by the number that the learner gave it.
        self._saved: dict[int, Path] = {}
        self._tidy()

    def _tidy(self) -> None:
        """Clean up after a crash: old replies, and a state that was written but has no reply."""
        for path in self._replies.iterdir():
            if number_of(path) and path != self.kept:
                path.unlink()
        for path in self._states.iterdir():
            if path.name == f"{self._changed:05d}":
                continue
            if path.name.isdigit() and int(path.name) in self.audit.answered and int(path.name) > self._last:
                lost = self._replies / path.name
                raise RunError(f"{lost}: is missing, though it was sent; restore it or start a new run")
            shutil.rmtree(path)

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

    def check_newest(self, answered: int) -> None:
        """Raise if the coordinator has an answer from here that this record knows nothing of."""
        if answered > self._last:
            raise Refused(
                f"its record ends with ask {self._last}, and it has answered ask {answered}: "
                "an older copy was put back; restore the newer one or start a new run"
            )

    def reply(self, number: int, step: str, body: bytes) -> bytes | None:
        """The reply to an ask that was answered before, or None."""
        if number > self._last:
            return None
        if number < self._last:
            raise BadMessage(f"ask {number} is over: this silo has already done ask {self._last}")
        assert self.kept is not None  # a reply is what makes an ask the last
        try:
            reply = self.kept.read_bytes()
        except FileNotFoundError as error:
            raise RunError(f"{self.kept}: is damaged ({type(error).__name__}); start a new run") from None
        told = self.kept.name.split("-")[1:]
        if told[:1] != [_short(digest(reply))]:
            raise RunError(f"{self.kept}: is damaged (its checksum differs); start a new run")
        if told[1:] != [_asked(step, body)]:
            raise BadMessage(f"ask {number} came a second time with different content")
        return reply

    def complete(
        self, number: int, step: str, body: bytes, reply: bytes, whole: str, silo: Participant
    ) -> None:
        """Keep a reply, whose digest is `whole`, and, if the step changed the silo, its new state: both or
        neither.
        """
        if silo.changed:
            with new_folder(self._states / f"{number:05d}") as folder:
                self.save_state(silo, folder)
            self._saved = {
                trained: self._states / f"{number:05d}" / name
                for name, learner in _models(silo).items()
                if (trained := getattr(learner, "training_number_", None)) is not None
            }
            if silo.trained_alone:
                keep_local(self.folder, self._states / f"{number:05d}" / "model")
                silo.trained_alone = False
        path = self._replies / f"{number:05d}-{_short(whole)}-{_asked(step, body)}"
        write(path, reply, over=self._replies / "old")
        before, self._last, self.kept = (self.kept, self._changed), number, path
        if silo.changed:
            write_json(self.folder / "scores.json", _scores(silo))
            self._changed, silo.changed = number, False
        self._drop(*before)

    def _drop(self, reply: Path | None, state: int) -> None:
        # The coordinator journals ask n−1 before it sends ask n: older replies will not be asked for again.
        if reply is not None:
            if reply.stat().st_size >= WORTH_KEEPING:
                reply.replace(self._replies / "old")  # a large reply to come is written over it
            else:
                reply.unlink()
        if state and state != self._changed:
            shutil.rmtree(self._states / f"{state:05d}")

    # ------------------------------------------------------------------ state

    def _state(self) -> Path | None:
        return self._states / f"{self._changed:05d}" if self._changed else None

    def save_state(self, silo: Participant, folder: Path) -> None:
        """Write the model, the notes and the scores of a silo into a folder."""
        (folder / "model").mkdir()
        for name, learner in _models(silo).items():
            earlier = self._saved.get(getattr(learner, "training_number_", None) or 0)
            if earlier is not None and earlier.exists():
                link_model(earlier, folder / name)  # such as the local model, beside what was offered
                continue
            (folder / name).mkdir(exist_ok=True)
            learner.save(folder / name)
        (folder / "notes.safetensors").write_bytes(encode(silo.notes))
        files = {path: digest_of_file(folder / path) for path in _files(folder)}
        state = {"trained": silo.trained, "scores": _scores(silo), "files": files}
        write_json(folder / "state.json", state, indent=None)

    def restore(self, silo: Participant, model: bool = True) -> None:
        """Bring the silo to the state after its last completed step; `model`: with what it has learnt."""
        folder = self._state()
        silo.forget()
        if folder is None:
            return
        state = read_json(folder / "state.json")
        _check_files(folder, state, model)
        try:
            notes = decode((folder / "notes.safetensors").read_bytes(), own=True)
            silo.recall(state["trained"], notes, _read_scores(state["scores"]))
        except (KeyError, TypeError, ValueError, AttributeError, BadMessage, FileNotFoundError) as error:
            raise RunError(f"{folder}: is damaged ({type(error).__name__}); start a new run") from None
        if model and silo.trained and silo.learner is not None:
            silo.learner.load(folder / "model")
            for name in ("trial", "spare"):
                if (folder / name).exists():
                    other = deepcopy(silo.learner)
                    other.load(folder / name)
                    setattr(silo, name, other)

    def log(self, text: str) -> None:
        """Log what only the silo's owner may read: the learner's warnings, full tracebacks of failures."""
        with explain_write_errors(self.folder), (self.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(text.rstrip() + "\n")


def _models(silo: Participant) -> dict[str, Learner]:
    """What a silo has learnt, by the folder that it is kept in."""
    found = {"model": silo.learner if silo.trained else None, "trial": silo.trial, "spare": silo.spare}
    return {name: learner for name, learner in found.items() if learner is not None}


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


def _numbers(folder: Path) -> list[int]:
    """The numbers of the asks in a folder; what a crash left unfinished is not among them."""
    return [number for path in folder.iterdir() if (number := number_of(path))]


def _files(folder: Path) -> list[str]:
    """All files of a state but `state.json`."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "state.json")
    return sorted(str(path.relative_to(folder)) for path in found)


def _check_files(folder: Path, state: Any, model: bool) -> None:
    """Raise if a file of a state is not as it was written; those of models only if they are needed."""
    told = state.get("files") if isinstance(state, dict) else None
    for name, whole in (told or {}).items():
        path = folder / name
        if (model or name == "notes.safetensors") and not (path.exists() and digest_of_file(path) == whole):
            raise RunError(f"{path}: is damaged (its checksum differs); restore it or start a new run")


def _asked(step: str, body: bytes) -> str:
    """A checksum of an ask."""
    return _short(digest(step.encode(), digest_of(body).encode()))


def _short(whole: str) -> str:
    """As much of a digest as shows damage."""
    return whole[:16]


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


def _read_scores(found: dict[str, Any]) -> dict[Stage, dict[Measure, Score]]:
    return {
        Stage.parse(stage): {Measure(measure): Score(**score) for measure, score in scores.items()}
        for stage, scores in found.items()
    }
