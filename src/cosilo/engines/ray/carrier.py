"""Asks to silos on the nodes of a Ray cluster."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from cosilo.config import build
from cosilo.config.settings import validate
from cosilo.engines.local.in_process import too_late
from cosilo.engines.ray.host import unpacked
from cosilo.engines.ray.hosts import Hosts, RemoteHost
from cosilo.errors import RunError
from cosilo.protocol.carrier import Answer, Asks, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Participant, Procedure
from cosilo.protocol.seal import Seal

#: From this many bytes on, a message is put into the object store: it then goes to each node once.
_LARGE = 2**16


class RayCarrier:
    """A carrier for silos that hosts own.

    The silos of a host that is lost, with its node or alone, go on elsewhere from their records, and the
    one that was in the middle of a step is asked once more. A step that takes longer than its timeout is
    stopped with its host.

    Parameters
    ----------
    run
        The run's directory, which all nodes see.
    silos
        All of them, as they are here.
    """

    def __init__(self, run: Path, silos: Sequence[Participant]) -> None:
        values, source = build.read_recipe(run, "run it on the local engine")
        self._hosts = Hosts(run, silos, validate(values, source.name).workers)
        self._put: tuple[bytes, Any] = (b"", None)
        self.contract: Contract | None = None

    def open(self, procedure: Procedure, contract: Contract, folder: Path) -> None:
        """Start the hosts, and have the silos made."""
        self.contract = contract
        for line in self._hosts.settle().values():
            raise RunError(line)

    def close(self) -> None:
        """End the hosts."""
        self._hosts.close()
        self._put = (b"", None)

    def call(self, silos: Sequence[str], asks: Asks, timeout: float | None) -> Iterator[Answer]:
        """Ask the silos for a step, one at a time per host: a timeout is that of one silo."""

        def ask(host: RemoteHost, name: str) -> Any:
            one = asks(name)
            last = None if one.last is None else one.last.values()
            head = {"number": one.number, "step": one.step, "contract": one.contract, "last": last}
            agreed = {} if self.contract is None else self.contract.values()
            return host.actor.answer.remote(name, head, self._sent(one.body), agreed)

        self._hosts.grow()
        return _Asks(self._hosts, ask, timeout).answers(silos)

    def _sent(self, body: bytes) -> Any:
        """A message as an argument; a large one is put into the object store once, not for every silo."""
        if len(body) < _LARGE:
            return body
        if body is not self._put[0]:
            self._put = (body, ray.put(body))
        return self._put[1]


class _Asks:
    """The asks of one step: which silos wait at which host, and what the hosts are doing."""

    def __init__(self, hosts: Hosts, ask: Callable[[RemoteHost, str], Any], timeout: float | None) -> None:
        self._hosts, self._ask, self._timeout = hosts, ask, timeout
        self._waiting: defaultdict[RemoteHost, deque[str]] = defaultdict(deque)
        #: By what comes back: the host, the silo whose step it does (None: it makes silos), and since when.
        self._busy: dict[Any, tuple[RemoteHost, str | None, float]] = {}
        self._repeated: set[str] = set()

    def answers(self, silos: Sequence[str]) -> Iterator[Answer]:
        """One for each silo, in the order in which they come."""
        yield from self._queue(silos)
        while self._busy:
            ready, _ = ray.wait(list(self._busy), timeout=self._patience())
            for ref in ready:
                host, name, _ = self._busy.pop(ref)
                answer = _received(ref, name or "")
                if answer is None:
                    yield from self._repeat(host, name)
                    continue
                self._occupy(host)  # before the answer is handled, so that the host does not wait for that
                if name is not None:
                    yield answer
            for host, name in self._late():
                waiting = self._give_up(host)
                yield Answer(name, too_late(name, self._timeout or 0.0))
                yield from self._queue(waiting)

    def _queue(self, silos: Sequence[str]) -> Iterator[Answer]:
        """Have these asked where they are now; those that the cluster has no place for are lost."""
        unplaced = self._hosts.settle()
        for name in silos:
            if name in unplaced:
                yield Answer(name, Failure(FailureKind.LOST, unplaced[name]))
            else:
                self._waiting[self._hosts.at(name)].append(name)
        for host in list(self._waiting):
            self._occupy(host)

    def _occupy(self, host: RemoteHost) -> None:
        if any(one is host for one, _, _ in self._busy.values()):
            return
        if not host.told:
            self._busy[host.tell()] = (host, None, time.monotonic())
        elif self._waiting[host]:
            name = self._waiting[host].popleft()
            self._busy[self._ask(host, name)] = (host, name, time.monotonic())

    def _repeat(self, host: RemoteHost, name: str | None) -> Iterator[Answer]:
        """A host is lost: its silos are as they were before the step, and are asked once more, elsewhere."""
        waiting = self._give_up(host)
        asked, waiting = (waiting, []) if name is None else ([name], waiting)
        gone = [one for one in asked if one in self._repeated]
        self._repeated.update(asked)
        for one in gone:
            text = f"silo {one!r}: its host on the cluster died in the middle of the step, twice"
            yield Answer(one, Failure(FailureKind.LOST, text))
        yield from self._queue([one for one in asked if one not in gone] + waiting)

    def _give_up(self, host: RemoteHost) -> list[str]:
        """End a host; returns those of its silos that wait to be asked."""
        self._hosts.lose(host)
        return list(self._waiting.pop(host, ()))

    def _late(self) -> list[tuple[RemoteHost, str]]:
        """The hosts whose silo takes longer than it may, with that silo; nobody waits for them any more."""
        if self._timeout is None:
            return []
        since = time.monotonic() - self._timeout
        late = {ref: (host, name) for ref, (host, name, at) in self._busy.items() if name and at < since}
        self._busy = {ref: doing for ref, doing in self._busy.items() if ref not in late}
        return list(late.values())

    def _patience(self) -> float | None:
        began = [at for _, name, at in self._busy.values() if name is not None]
        if self._timeout is None or not began:
            return None
        return max(0.0, min(began) + self._timeout - time.monotonic()) + 0.01


def _received(ref: Any, name: str) -> Answer | None:
    """What a host answered; None if it is lost."""
    try:
        head, content = unpacked(ray.get(ref))
    except RayTaskError as error:
        last = [line.strip() for line in str(error).splitlines() if line.strip()][-1]
        raise RunError(f"silo {name!r}: its host failed: {last}") from error
    except RayError:  # its process, its node, or what it had sent
        return None
    if "broken" in head:
        raise RunError(head["broken"])
    if not head["ok"]:
        failure = Failure(FailureKind(head["kind"]), head["text"])
        return Answer(name, failure, seal=Seal.read(head.get("seal")))
    return Answer(name, content, head.get("seconds", 0.0), seal=Seal.read(head.get("seal")))
