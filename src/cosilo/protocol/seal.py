"""Seals: what a silo states about an exchange and its own audit log, and both parties sign where they can.

A seal goes with every reply and every failure, outside of them. The coordinator keeps the last seal of each
silo and sends it back with its next request; the silo then checks that its audit log still has what the seal
says. So a log that was cut, rewritten or replaced by an older copy is noticed at the next request. Between
organisations both sign (`cosilo.engines.flare.signing`); on one machine and on Ray seals are not signed.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

#: What is signed begins with this, so that the signature is good for nothing else.
DOMAIN = "cosilo seal 1"


@dataclass(frozen=True)
class Seal:
    """A statement about one exchange.

    Attributes
    ----------
    number
        The number of the request.
    request, reply
        Their SHA-256; of a failure, that of its line.
    failed
        1 if the reply was a failure, else 0.
    length, head
        The number of lines of the silo's audit log before the line about the reply, and the hash of the last
        of these.
    silo, coordinator
        The signatures of both; empty without keys.
    """

    number: int
    request: str = ""
    reply: str = ""
    length: int = 0
    head: str = ""
    failed: int = 0
    silo: str = ""
    coordinator: str = ""

    def statement(self, run: str, contract: str, silo: str) -> bytes:
        """Return what is signed: the seal, and which run, contract and silo it belongs to."""
        exchange = [self.number, self.request, self.reply, self.failed]
        parts = [DOMAIN, run, contract, silo, *exchange, self.length, self.head]
        return json.dumps(parts, ensure_ascii=True, separators=(",", ":")).encode()

    def values(self) -> dict[str, Any]:
        """Return the seal as JSON has it, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value or name == "number"}

    @classmethod
    def read(cls, values: Any) -> "Seal | None":
        """Return the seal that `values` described; None if it is not one."""
        if not isinstance(values, Mapping) or not set(values) <= _TYPES.keys() or "number" not in values:
            return None
        for name, value in values.items():
            long = isinstance(value, str) and len(value) > _LONGEST
            if type(value) is not _TYPES[name] or long or (isinstance(value, int) and value < 0):
                return None
        return cls(**values)


_TYPES = {field.name: int if field.name in ("number", "length", "failed") else str for field in fields(Seal)}
#: The most characters of a signature.
_LONGEST = 2000
