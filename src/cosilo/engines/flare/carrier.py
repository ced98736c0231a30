"""Asks between organisations: calls of a function that NVIDIA FLARE publishes at each silo."""

import math
import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

from cosilo.engines.flare.signing import SealsOfCoordinator
from cosilo.engines.local.in_process import too_late
from cosilo.protocol.carrier import Answer, Ask, Asks, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.participant import Procedure
from cosilo.protocol.seal import Seal

#: Seconds without contact after which a silo counts as lost.
LOST_AFTER = 15.0
#: Seconds after which a silo that is busy with a step says so, repeatedly.
BUSY = 2.0
#: Bytes of messages that are on their way at the same time: FLARE makes a copy of each.
_ON_THE_WAY = 2**28
#: What it says while it is not ready for any step yet.
OPENING = {"opening": True}
#: Seconds that a silo has to read its data and its model; the time of a step begins after that.
READY_WITHIN = 600.0
#: Characters of a silo's failure message that are kept.
_LINE = 1000


class FlareCarrier:
    """Calls `answer` at the silos of a FLARE job; `sites` are its proxies of them, by silo.

    No call takes long: a silo that is busy says so, and is called again. So it is soon noticed when a silo is
    gone, and a connection that breaks for some seconds costs nothing. `hold` is called before every step and
    may end the run's job here, between two steps. `admitted` are the silos that are still of the federation;
    None: all. With `seals` every reply has to come with a seal that the silo signed, and requests go out with
    the last one, signed by both; None: seals are not signed, as on one machine.
    """

    def __init__(
        self,
        sites: Mapping[str, Any],
        hold: Callable[[], None] = lambda: None,
        admitted: Callable[[], Container[str]] | None = None,
        seals: SealsOfCoordinator | None = None,
    ) -> None:
        self._sites = sites
        self._seals = seals
        self._hold = hold
        self._admitted = admitted
        #: Silos that were lost; FLARE brings a site back with the next job only.
        self._lost: set[str] = set()
        self._closed = Event()

    def open(self, procedure: Procedure, contract: Contract, folder: Path) -> None:
        """Nothing to do: each silo gets ready by itself when the job reaches it."""

    def close(self) -> None:
        """Stop calling silos."""
        self._closed.set()

    def call(self, silos: Sequence[str], asks: Asks, timeout: float | None) -> Iterator[Answer]:
        """Ask all silos at once, or as many as can be sent to at once: a message is made when it is sent."""
        self._hold()
        admitted = silos if self._admitted is None else self._admitted()
        came: Queue[Answer | int] = Queue()
        waiting, missing, on_the_way = deque(silos), len(silos), 0
        while missing:
            while waiting and on_the_way < _ON_THE_WAY:
                name = waiting.popleft()
                if name not in admitted:
                    came.put(Answer(name, Failure(FailureKind.ERROR, f"silo {name!r}: was removed")))
                elif name in self._lost or name not in self._sites:
                    came.put(Answer(name, _lost(name)))
                else:
                    ask = asks(name)
                    on_the_way += len(ask.body)
                    Thread(target=self._ask, args=(came, name, [ask], timeout), daemon=True).start()
            answer = came.get()
            if isinstance(answer, int):
                on_the_way -= answer
                continue
            if isinstance(answer.content, Failure) and answer.content.kind is FailureKind.LOST:
                self._lost.add(answer.silo)
            missing -= 1
            yield answer

    def _ask(self, came: "Queue[Answer | int]", name: str, asks: list[Ask], timeout: float | None) -> None:
        """Call until there is an answer, the silo is lost or its time is up.

        When the message is there, its bytes are told, and it is kept no longer: `asks` is emptied for that.
        """
        asked = started = last_seen = time.monotonic()
        message = _message(asks.pop())
        number, size = message["number"], len(message["body"])
        digest = sha256(message["body"]).hexdigest()
        answer: Answer | None = None
        while answer is None and not self._closed.is_set():
            reply = self._called(name, message)
            now = time.monotonic()
            if reply is None:
                time.sleep(0.5)
            else:
                last_seen, answer = now, self._answer(name, reply, number, digest)
                if "body" in message:
                    message = {"number": number}
                    came.put(size)
                if reply == OPENING and now - asked < READY_WITHIN:
                    started = now
            if answer is None and timeout is not None and now - started > timeout:
                answer = Answer(name, too_late(name, timeout))
            elif answer is None and now - last_seen > LOST_AFTER:
                answer = Answer(name, _lost(name))
        if "body" in message:
            came.put(size)
        came.put(answer or Answer(name, _lost(name)))

    def _answer(self, name: str, reply: object, number: int, request: str) -> Answer | None:
        """Return what a silo sent, or what it says is wrong; None while it is busy.

        Anything else is a bad reply. `request` is the SHA-256 of what it was sent.
        """
        match reply:
            case {"busy": True, **rest} | {"opening": True, **rest} if not rest:
                return None
            case {"reply": bytes() as content, "seconds": float() as seconds, **envelope}:
                if not 0 <= seconds < math.inf:
                    return _bad(name, "a message of another form")
                answer = Answer(name, content, seconds)
                told = content
            case {"failure": [("refused" | "learner" | "error") as kind, str() as text], **envelope}:
                # One line that names the silo, whatever it sends.
                line, prefix = " ".join(text.split())[:_LINE], f"silo {name!r}: "
                line = line if line.startswith(prefix) else prefix + line
                answer = Answer(name, Failure(FailureKind(kind), line))
                told = text.encode()
                if not envelope:  # it could not take part at all
                    return answer
            case _:
                what = "something that cannot be read" if isinstance(reply, Exception) else ""
                return _bad(name, what or f"a {type(reply).__name__}")
        if envelope.keys() - {"certificate", "seal"}:
            return _bad(name, "a message of another form")
        seal = Seal.read(envelope.get("seal"))
        exchange = (number, request, sha256(told).hexdigest(), int(isinstance(answer.content, Failure)))
        if seal is None or (seal.number, seal.request, seal.reply, seal.failed) != exchange:
            return _bad(name, "a reply with a seal that is not about it")
        if self._seals is not None:
            seal = self._seals.accept(name, seal, str(envelope.get("certificate", "")))
            if seal is None:
                return _bad(name, "a reply whose seal it did not sign")
        return replace(answer, seal=seal)

    def _called(self, name: str, message: Mapping[str, Any]) -> Any:
        """What a silo says; None if it could not be reached."""
        call = self._sites[name](timeout=LOST_AFTER)
        try:
            return call.answer(**message) if "step" in message else call.wait(**message)
        except Exception as error:
            # A reply that FLARE refuses to read comes from a silo that is there; asking again would not help.
            unreadable = any(word in str(error).lower() for word in ("decompos", "serializ", "fobs"))
            return error if unreadable else None


def _message(ask: Ask) -> dict[str, Any]:
    """Return an ask as it is sent."""
    message = {"number": ask.number, "step": ask.step, "body": ask.body, "contract": ask.contract}
    return message if ask.last is None else {**message, "last": ask.last.values()}


def _bad(name: str, what: str) -> Answer:
    text = f"silo {name!r}: sent {what} where a reply is expected"
    return Answer(name, Failure(FailureKind.UNREADABLE, text))


def _lost(name: str) -> Failure:
    return Failure(FailureKind.LOST, f"silo {name!r}: not connected; rejoins when it reconnects")
