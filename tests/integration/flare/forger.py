"""The coordinator's part of a job, if the coordinator asks one silo what it likes: requests from a file.

A test sends this along with a job, for the coordinator only; the silo gets the job that unmodified software
makes of the same settings, and the requests come through the same carrier.
"""

import json
from pathlib import Path

from nvflare.collab import collab

from cosilo.engines.flare import alterations
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.protocol.carrier import Ask, Failure

alterations.send_bytes_only()
alterations.tell_no_contents()


class Forger:
    def __init__(self, silo, folder, contract):
        self.silo, self.folder, self.contract = silo, folder, contract

    @collab.main
    def coordinate(self):
        folder = Path(self.folder)
        carrier = FlareCarrier({site.name: site for site in collab.clients})
        answers = []
        for about in json.loads((folder / "asks.json").read_text()):
            ask = Ask(about["number"], about["step"], bytes.fromhex(about["body"]), self.contract)
            (answer,) = carrier.call([self.silo], lambda _, ask=ask: ask, None)
            answers.append(as_json(answer.content))
        carrier.close()
        (folder / "answers.part").write_text(json.dumps(answers))
        (folder / "answers.part").rename(folder / "answers.json")


def as_json(content):
    """A reply as it came, or why there is none."""
    if isinstance(content, Failure):
        return {"kind": content.kind.value, "failure": content.text}
    return {"reply": content.hex()}
