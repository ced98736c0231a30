"""Requests to a silo's boundary in tests, as a coordinator would make them."""

from pathlib import Path
from typing import Any

from cosilo.coordination.boundary import Boundary
from cosilo.engines.local.in_process import open_boundary
from cosilo.protocol.carrier import Answer, Ask
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant
from cosilo.protocol.seal import Seal
from cosilo.protocol.wire import encode


def opened(silo: Participant, method: Any, folder: Path, seed: int = 0) -> Boundary:
    """A silo's boundary in a run with this silo alone."""
    return open_boundary(silo, method, Contract.of(method, seed), folder)


def asked(
    border: Boundary, number: int, step: str, body: bytes | None = None, last: Seal | None = None
) -> Answer:
    """The answer to a request that comes under the contract of the run."""
    content = encode({}) if body is None else body
    return border.answer(Ask(number, step, content, border.agreement.contract.hash, last))
