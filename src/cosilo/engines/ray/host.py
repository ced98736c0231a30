"""What runs on a node: an actor that owns some silos for the whole run."""

import json
import os
import platform
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from cosilo.engines.local.memory import keep_freed_memory
from cosilo.engines.local.threads import OneThread
from cosilo.errors import ConfigError, CosiloError, RunError

# The rest is imported where it is used: a host says at once that it has a place.
if TYPE_CHECKING:
    from cosilo.coordination.boundary import Boundary
    from cosilo.federation.federation import Federation
    from cosilo.protocol.participant import Participant, Procedure

#: Seconds that a host which counts as lost may still be busy with a silo's step.
_PATIENCE = 300.0


class Host:
    """Owns silos of a run, which it makes from the recipe, where it runs.

    What it returns are bytes: a line of JSON, then the message, if there is one.

    Parameters
    ----------
    run
        The run's directory, which all nodes see.
    data
        Where named datasets are, if whoever started the run said so.
    """

    def __init__(self, run: str, data: str | None) -> None:
        OneThread()
        keep_freed_memory()
        if data is not None:
            os.environ["COSILO_DATA"] = data
        self._run = Path(run)
        self._silos: dict[str, Participant] = {}
        self._boundaries: dict[str, Boundary] = {}
        self._method: Procedure

    def placed(self) -> bytes:
        """Says that it has a place."""
        return packed({"ok": True})

    def own(self, names: Sequence[str]) -> bytes:
        """Own exactly these silos from now on: make those that it has not, forget the others."""
        for name in self._silos.keys() - set(names):
            del self._silos[name]
            if boundary := self._boundaries.pop(name, None):
                boundary.close()
        wanted = set(names) - self._silos.keys()
        try:
            if wanted:
                federation = _made(self._run, wanted)
                self._method = federation.method
                self._silos |= {silo.name: silo for silo in federation.silos if silo.name in wanted}
            for name in wanted:
                self._silos[name].preload()
        except Exception as error:
            traceback.print_exc()  # into the log that Ray keeps of this process
            text = str(error) if isinstance(error, CosiloError) else f"{type(error).__name__}: {error}"
            lines = [f"node {platform.node()}: {line}" for line in text.splitlines() if line]
            return packed({"ok": False, "broken": "\n".join(lines)})
        return packed({"ok": True})

    def answer(self, name: str, head: dict[str, Any], body: bytes, contract: dict[str, Any]) -> bytes:
        """Ask one of its silos for a step; `head` is the request without its body.

        A host that was lost with its node may still be there and at work: nobody else opens a silo meanwhile.
        """
        from cosilo.engines.local.in_process import open_boundary
        from cosilo.protocol.carrier import Ask, Failure
        from cosilo.protocol.contract import Contract
        from cosilo.protocol.seal import Seal
        from cosilo.runs.locks import locked

        folder = self._run / "silos" / name
        try:
            with locked(folder, _PATIENCE):
                if name not in self._boundaries:
                    silo = self._silos[name]
                    agreed = Contract.read(contract)
                    self._boundaries[name] = open_boundary(silo, self._method, agreed, folder)
                ask = Ask(head["number"], head["step"], body, head["contract"], Seal.read(head["last"]))
                answer = self._boundaries[name].answer(ask)
        except CosiloError as error:  # the silo cannot even be opened, or its disk fails
            return packed({"ok": False, "broken": f"node {platform.node()}: {error}"})
        seal = None if answer.seal is None else answer.seal.values()
        if isinstance(answer.content, Failure):
            failed = {"ok": False, "kind": answer.content.kind, "text": answer.content.text}
            return packed({**failed, "seal": seal})
        return packed({"ok": True, "seconds": answer.seconds, "seal": seal}, answer.content)


def _made(run: Path, names: set[str]) -> "Federation":
    """The federation of a run's recipe; of silos with files of their own, only those that are wanted."""
    from cosilo.config import build

    if not os.access(run / "recipe.json", os.R_OK):
        raise RunError(f"{run}: cannot be read here; wants a folder that all nodes share: --dir FOLDER")
    values, source = build.read_recipe(run, "run it on the local engine")
    if not os.access(source.folder, os.R_OK):
        raise ConfigError(
            f"{source.folder}: cannot be read here; wants {source.name}, its data and its own code in a "
            "folder that all nodes share"
        )
    if "silo" in values:
        own = [silo for silo in values["silo"] if normalize("NFC", silo["name"]) in names]
        values = {**values, "silo": own}
    return build.federation(values, source)


def packed(head: dict[str, Any], content: bytes = b"") -> bytes:
    """A line of JSON, then bytes."""
    return json.dumps(head).encode() + b"\n" + content


def unpacked(data: bytes) -> tuple[dict[str, Any], bytes]:
    """What `packed` made.

    >>> unpacked(packed({"ok": True}, b"message"))
    ({'ok': True}, b'message')
    """
    end = data.index(b"\n") + 1
    return json.loads(data[:end]), data[end:]
