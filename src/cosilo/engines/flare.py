"""The engine between organisations: asks are calls of a function that NVIDIA FLARE publishes at each silo."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from cosilo.engines.base import Answer
from cosilo.methods.base import Method
from cosilo.runs.journal import Failure

#: A silo that does not say for so many seconds that it is alive is lost.
LOST_AFTER = 20.0
#: How often it is asked for that while a step is under way.
_BEAT = 2.0
#: How long a call without a timeout may take: FLARE wants a number.
_FOREVER = 30 * 24 * 3600.0


class FlareEngine:
    """Calls `answer` at the silos of a FLARE job; `sites` are its proxies of them, by silo.

    A silo that is not among them, or that is gone, does not answer; whether it is still there is asked while
    a step is under way, so that nobody waits for a silo that was switched off. `hold` is called before every
    step and may end the run's job here, between two steps.
    """

    def __init__(self, sites: Mapping[str, Any], hold: Callable[[], None] = lambda: None) -> None:
        self._sites = sites
        self._hold = hold
        #: Silos that were lost; FLARE brings a site back with the next job only.
        self.lost: set[str] = set()

    def open(self, method: Method, seed: int, folder: Path) -> None:
        """Nothing: a silo gets ready where it is, when the job comes to it."""

    def close(self) -> None:
        """Nothing."""

    def call(
        self,
        number: int,
        step: str,
        silos: Sequence[str],
        body: Callable[[str], bytes],
        timeout: float | None,
    ) -> Iterator[Answer]:
        """Ask all silos at once."""
        self._hold()
        answers: Queue[Answer] = Queue()
        started = time.monotonic()
        waiting: dict[str, float] = {}  # when each was last known to be there
        for name in silos:
            if name in self.lost or name not in self._sites:
                yield Answer(name, _lost(name), 0.0)
                continue
            waiting[name] = started
            arguments = (answers, name, number, step, body(name), timeout)
            Thread(target=self._ask, args=arguments, daemon=True).start()
        beats: Queue[str] = Queue()
        next_beat = started + _BEAT
        while waiting:
            try:
                answer = answers.get(timeout=0.2)
            except Empty:
                now = time.monotonic()
                for name in _drained(beats):
                    if name in waiting:
                        waiting[name] = now
                if now >= next_beat:
                    next_beat = now + _BEAT
                    for name in waiting:
                        Thread(target=self._beat, args=(beats, name), daemon=True).start()
                for name in [name for name, seen in waiting.items() if now - seen > LOST_AFTER]:
                    answers.put(Answer(name, _lost(name), now - started))
                continue
            if answer.silo in waiting:  # else it is the late answer of one that was given up
                del waiting[answer.silo]
                if isinstance(answer.content, Failure) and answer.content.kind == "lost":
                    self.lost.add(answer.silo)
                yield answer

    def _ask(
        self, answers: Queue[Answer], name: str, number: int, step: str, body: bytes, timeout: float | None
    ) -> None:
        from nvflare.collab.api.exceptions import CollabCallError, RunAborted

        started = time.monotonic()
        content: bytes | Failure
        try:
            reply = self._sites[name](timeout=timeout or _FOREVER).answer(number=number, step=step, body=body)
            content = _content(name, reply)
        except CollabCallError as error:
            late = isinstance(error.cause, TimeoutError)
            content = _late(name, timeout or _FOREVER) if late else _lost(name)
        except RunAborted:
            content = Failure("lost", f"silo {name!r}: the job was stopped")
        except Exception as error:  # a reply that FLARE cannot even read must not end the round
            content = Failure("bad", f"silo {name!r}: its reply cannot be read ({type(error).__name__})")
        answers.put(Answer(name, content, time.monotonic() - started))

    def _beat(self, beats: Queue[str], name: str) -> None:
        try:
            if self._sites[name](timeout=LOST_AFTER, optional=True).alive() is True:
                beats.put(name)
        except Exception:
            return


def _content(name: str, reply: object) -> bytes | Failure:
    """What a silo sent, or what it says is wrong; anything else is a bad reply."""
    match reply:
        case {"reply": bytes() as content, **rest} if not rest:
            return content
        case {"failure": [str() as kind, str() as text], **rest} if not rest:
            return Failure(kind, text)
    return Failure("bad", f"silo {name!r}: sent a {type(reply).__name__} where a reply is expected")


def _drained(queue: Queue[str]) -> list[str]:
    return [queue.get() for _ in range(queue.qsize())]


def _lost(name: str) -> Failure:
    return Failure("lost", f"silo {name!r}: is not there; it takes part again when it is back")


def _late(name: str, timeout: float) -> Failure:
    return Failure("timeout", f"silo {name!r}: took longer than its timeout of {timeout:g} s")
