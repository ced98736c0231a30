"""What somebody who follows a run is told."""

import math
import time
from collections.abc import Callable
from typing import Any

from cosilo.text import listing

Tell = Callable[[str], None]


class Story:
    """Tells what happens in a run, and after a while who keeps it waiting.

    >>> story = Story(print, patience=0.0)
    >>> story({"event": "ask", "step": "hello", "silos": ["north", "south"]})
    hello: asked 2 silos
    >>> story({"event": "reply", "step": "hello", "silo": "south"})
    >>> story.wait()
    hello: still waiting for north; its `cosilo join` says if it is at work or waits for approval
    """

    def __init__(self, tell: Tell, patience: float = 30.0) -> None:
        self._tell, self._patience = tell, patience
        self._step, self._missing, self._since = "", list[str](), math.inf

    def __call__(self, event: dict[str, Any]) -> None:
        """Something happened."""
        match event:
            case {"event": "ask", "step": step, "silos": silos}:
                self._step, self._missing, self._since = step, list(silos), time.monotonic()
                self._tell(f"{step}: asked {len(silos)} silos")
            case {"event": "answered", "step": step, "seconds": seconds}:
                self._tell(f"{step}: done in {seconds:.1f} s")
            case {"event": "failure", "text": text}:
                self._tell(text)
            case {"event": "resume"}:
                self._tell("continues where it stopped")
        if event["event"] in ("reply", "failure") and event.get("silo") in self._missing:
            self._missing.remove(event["silo"])

    def wait(self) -> None:
        """Nothing happened."""
        if self._missing and time.monotonic() - self._since >= self._patience:
            self._tell(
                f"{self._step}: still waiting for {listing(self._missing)}; its `cosilo join` says if it is "
                "at work or waits for approval"
            )
            self._since = math.inf  # once for an ask
