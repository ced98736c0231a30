"""Asks to silos in this process, one after the other."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cosilo.coordination.agreement import Agreement, Limits
from cosilo.coordination.boundary import Boundary
from cosilo.engines.local.threads import OneThread
from cosilo.protocol.carrier import Answer, Asks, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant, Procedure


def open_boundary(
    silo: Participant,
    procedure: Procedure,
    contract: Contract,
    folder: Path,
    within: str | None = None,
    read_limits: Callable[[], Limits] | None = None,
) -> Boundary:
    """Return a silo's boundary; an institution asks its members in the same process.

    `read_limits` reads the limits of the day, where the silo's owner may change them during a run.
    """
    agreement = Agreement(contract, silo, procedure, folder, read_limits)
    return Boundary(silo, procedure, agreement, folder, InProcess, within)


class InProcess:
    """A carrier for silos in this process.

    A step cannot be stopped here: its reply is refused when it comes too late.

    Parameters
    ----------
    silos
        All of them.
    within
        The institution whose members they are, if they are.
    """

    def __init__(self, silos: Sequence[Participant], within: str | None = None) -> None:
        self._silos = list(silos)
        self._within = within
        self._boundaries: dict[str, Boundary] = {}
        self._threads: OneThread | None = None

    def open(self, procedure: Procedure, contract: Contract, folder: Path) -> None:
        """Cap this process at one thread, and open the silos."""
        if self._within is None:  # else the carrier of the institution's asks has already done it
            self._threads = OneThread()
        self._boundaries = {
            silo.name: open_boundary(silo, procedure, contract, folder / silo.name, self._within)
            for silo in self._silos
        }

    def close(self) -> None:
        """Close the silos; they then hold what their records say."""
        for boundary in self._boundaries.values():
            boundary.close()
        self._boundaries = {}
        if self._threads:
            self._threads.release()
            self._threads = None

    def call(self, silos: Sequence[str], asks: Asks, timeout: float | None) -> Iterator[Answer]:
        """Ask the silos for a step."""
        for name in silos:
            started = time.monotonic()
            answer = self._boundaries[name].answer(asks(name))
            if timeout is not None and time.monotonic() - started > timeout:
                answer = Answer(name, too_late(name, timeout))
            yield answer


def too_late(name: str, timeout: float) -> Failure:
    """The failure of a silo that took longer than it may."""
    return Failure(FailureKind.TIMEOUT, f"silo {name!r}: took longer than its timeout of {timeout:g} s")
