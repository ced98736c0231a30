"""The coordinator's part of a job, if the coordinator asks one silo what it likes: requests from a file.

A test sends this along with a job, for the coordinator only; the silo gets the job that unmodified software
makes of the same settings, and the requests come through the same carrier.
"""

import json
from dataclasses import replace
from pathlib import Path

from nvflare.collab import collab

from cosilo.engines.flare import alterations
from cosilo.engines.flare.admission import admitted
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.engines.flare.signing import SealsOfCoordinator, Signatory
from cosilo.protocol.carrier import Ask, Failure

alterations.send_bytes_only()
alterations.tell_no_contents()


class Forger:
    def __init__(self, run, silo, folder, contract):
        self.run, self.silo, self.folder, self.contract = run, silo, folder, contract

    @collab.main
    def coordinate(self):
        folder, kit = Path(self.folder), Path(collab.workspace.get_root_dir())
        signatory = Signatory.of(kit, "server")
        seals = SealsOfCoordinator(self.run, self.contract, signatory, lambda name: admitted(kit).get(name))
        carrier = FlareCarrier({site.name: site for site in collab.clients}, seals=seals)
        answers, last = [], None
        for about in json.loads((folder / "asks.json").read_text()):
            seal = None if about["seal"] is None else changed(last, about["seal"])
            ask = Ask(about["number"], about["step"], bytes.fromhex(about["body"]), self.contract, seal)
            (answer,) = carrier.call([self.silo], lambda _, ask=ask: ask, None)
            answers.append(as_json(answer.content))
            last = answer.seal or last
        carrier.close()
        (folder / "answers.part").write_text(json.dumps(answers))
        (folder / "answers.part").rename(folder / "answers.json")


def changed(seal, field):
    """The seal with another sixth character in a field; as it is if no field is named."""
    if not field:
        return seal
    text = getattr(seal, field)
    return replace(seal, **{field: text[:5] + ("1" if text[5] == "0" else "0") + text[6:]})


def as_json(content):
    """A reply as it came, or why there is none."""
    if isinstance(content, Failure):
        return {"kind": content.kind.value, "failure": content.text}
    return {"reply": content.hex()}
