"""A silo's own record of a run: its model, its notes, its last reply, and the audit log of all that left."""

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

from cosilo.errors import BadMessage, RunError
from cosilo.message import decode, encode
from cosilo.runs.files import append_line, explained, mend_log, new_folder, read_json, read_lines, write_json
from cosilo.silo import Silo


class Record:
    """The folder of one silo. Every completed step is a folder in it that appeared whole.

    ```
    steps/00004/  ask.json reply.safetensors; after a change also state.json notes.safetensors model/
    audit.jsonl   scores.json   log.txt   data.json
    ```
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._steps = folder / "steps"
        with explained(folder):
            self._steps.mkdir(parents=True, exist_ok=True)
            for leftover in self._steps.glob("*.*"):  # a crash cut short how it came or went
                shutil.rmtree(leftover)
        self._audit = folder / "audit.jsonl"
        mend_log(self._audit)
        self._logged = {e["ask"] for e in read_lines(self._audit) if "failure" not in e}

    def same_data(self, silo: Silo) -> None:
        """Raise if the silo's data is not what it was when this record was begun."""
        path, now = self.folder / "data.json", {"fingerprint": silo.data.fingerprint()}
        if not path.exists():
            write_json(path, now)
        elif read_json(path) != now:
            raise RunError(
                f"silo {silo.name!r}: its data is not what it was when the run began; "
                "put it back or start a new run"
            )

    # ------------------------------------------------------------------ steps

    def _step(self, number: int) -> Path:
        return self._steps / f"{number:05d}"

    def _done(self) -> list[Path]:
        return sorted(path for path in self._steps.iterdir() if path.name.isdigit())

    def reply(self, number: int, step: str, body: bytes) -> bytes | None:
        """The reply to an ask that was answered before, or None."""
        folder = self._step(number)
        if not folder.exists():
            later = [path.name for path in self._done() if int(path.name) > number]
            if later:
                raise BadMessage(f"ask {number} is past: this silo has done ask {int(later[-1])}")
            return None
        if not _about(folder).items() >= _identity(step, body).items():
            raise BadMessage(f"ask {number} comes a second time with another content")
        path = folder / "reply.safetensors"
        try:
            reply = path.read_bytes()
            decode(reply)
        except (BadMessage, FileNotFoundError) as error:
            raise RunError(f"{path}: is damaged ({error}); start a new run") from None
        return reply

    def complete(self, number: int, step: str, body: bytes, reply: bytes, silo: Silo) -> None:
        """Keep a reply and, if the step changed the silo, its new state: both or neither."""
        with new_folder(self._step(number)) as folder:
            write_json(folder / "ask.json", {**_identity(step, body), "changed": silo.changed})
            (folder / "reply.safetensors").write_bytes(reply)
            if silo.changed:
                self._save(silo, folder)
        if silo.changed:
            write_json(self.folder / "scores.json", _scores(silo))
            silo.changed = False
        self._drop_old(number)

    def _drop_old(self, number: int) -> None:
        # The coordinator journals ask n−1 before it sends ask n: older replies will not be asked for again.
        state = self._state()
        for folder in self._done():
            if folder != state and folder != self._step(number):
                gone = folder.with_suffix(".gone")
                folder.rename(gone)  # first out of the way, whole: a crash must not leave half a step
                shutil.rmtree(gone)

    # ------------------------------------------------------------------ state

    def _state(self) -> Path | None:
        return next((path for path in reversed(self._done()) if _about(path).get("changed")), None)

    def _save(self, silo: Silo, folder: Path) -> None:
        (folder / "model").mkdir()
        if silo.trained:
            silo.learner.save(folder / "model")
        (folder / "notes.safetensors").write_bytes(encode(silo.notes))
        write_json(folder / "state.json", {"trained": silo.trained, "scores": _scores(silo)})

    def restore(self, silo: Silo) -> None:
        """Bring the silo to the state after its last completed step."""
        folder = self._state()
        silo.trained, silo.changed, silo.notes, silo.scores = False, False, {}, {}
        if folder is None:
            return
        state = read_json(folder / "state.json")
        try:
            silo.notes = decode((folder / "notes.safetensors").read_bytes())
            silo.scores = {stage: (s["accuracy"], s["instances"]) for stage, s in state["scores"].items()}
            silo.trained = state["trained"]
        except (KeyError, TypeError, AttributeError, BadMessage, FileNotFoundError) as error:
            raise RunError(f"{folder}: is damaged ({type(error).__name__}); start a new run") from None
        if silo.trained:
            silo.learner.load(folder / "model")

    def model_bytes(self) -> int:
        """What the model weighs on disk: what sending it once would have cost."""
        state = self._state()
        files = (state / "model").rglob("*") if state else ()
        return sum(file.stat().st_size for file in files if file.is_file())

    # ------------------------------------------------------------------ audit

    def audit(self, number: int, step: str, fields: dict[str, dict[str, Any]], size: int) -> None:
        """Log what leaves now. A reply that is sent again after a crash is logged again, as that."""
        entry = {"ask": number, "step": step, "fields": fields, "bytes": size}
        if number in self._logged:
            entry["again"] = True
        self._logged.add(number)
        append_line(self._audit, entry)

    def audit_failure(self, number: int, step: str, text: str) -> None:
        """Log the one line that leaves when a step was refused or failed."""
        append_line(self._audit, {"ask": number, "step": step, "fields": {}, "failure": text})

    def log(self, text: str) -> None:
        """Keep what only the silo's owner may read: warnings of the learner, the whole story of a failure."""
        with explained(self.folder), (self.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(text.rstrip() + "\n")


def _about(folder: Path) -> dict[str, Any]:
    about = read_json(folder / "ask.json")
    if not isinstance(about, dict):
        raise RunError(f"{folder / 'ask.json'}: is damaged; start a new run")
    return about


def _identity(step: str, body: bytes) -> dict[str, str]:
    return {"step": step, "content": sha256(body).hexdigest()}


def _scores(silo: Silo) -> dict[str, dict[str, float]]:
    return {stage: {"accuracy": a, "instances": n} for stage, (a, n) in silo.scores.items()}


def describe(message: Any, shares: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Field by field: kind, form and bytes, for audit logs and reports."""
    described = {}
    for field, value in message.items():
        if isinstance(value, dict):
            numbers = sum(array.size for array in value.values())
            form = f"{len(value)} arrays, {numbers} numbers"
            size = sum(int(array.nbytes) for array in value.values())
        elif hasattr(value, "nbytes"):
            form, size = f"{value.dtype}{list(value.shape)}", int(value.nbytes)
        else:
            form, size = type(value).__name__, len(json.dumps(value).encode())
        described[field] = {"kind": shares[field], "form": form, "bytes": size}
    return described
